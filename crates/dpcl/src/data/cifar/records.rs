//! The records of one CIFAR binary file: one or two label bytes, then 1,024 red, 1,024 green, 1,024 blue bytes.

use std::{
    io::{self, Read},
    path::Path,
};

use super::{Format, names::SUPERCLASSES};
use crate::{
    data::packed::colour_bytes,
    error::{Error, Result},
};

/// Height and width of every image.
pub const SIZE: usize = 32;

/// Five times the official training set; a file with more is not CIFAR.
const MOST_RECORDS: usize = 250_000;

/// The official training set, and what memory is set aside for at most before records are seen.
const OFFICIAL_RECORDS: usize = 50_000;

/// Labels and images of one file or several, in order.
#[derive(Debug, Default)]
pub struct Records {
    /// Coarse labels; empty for CIFAR-10.
    pub coarse: Vec<usize>,
    /// Labels.
    pub labels: Vec<usize>,
    /// Images with interleaved channels.
    pub pixels: Vec<u8>,
}

impl Records {
    /// Reads to the end of `reader`; `path` is named in errors and `declared` is the length to expect.
    ///
    /// # Errors
    /// A partial record at the end, a label out of range, too many records, none at all, or a failed read.
    pub fn read(reader: &mut dyn Read, path: &Path, declared: u64, format: &Format) -> Result<Self> {
        Self::read_at_most(MOST_RECORDS, reader, path, declared, format)
    }

    fn read_at_most(
        most: usize,
        reader: &mut dyn Read,
        path: &Path,
        declared: u64,
        format: &Format,
    ) -> Result<Self> {
        let mut record = vec![0; format.label_bytes() + colour_bytes(SIZE)];
        let expected = usize::try_from(declared).unwrap_or(usize::MAX) / record.len();
        let mut records = Self::default();
        records.pixels.reserve_exact(expected.min(OFFICIAL_RECORDS) * colour_bytes(SIZE));
        loop {
            let filled = fill(reader, &mut record).map_err(|error| format.unreadable(path, error))?;
            if filled == 0 {
                break;
            }
            if filled < record.len() {
                let whole = records.labels.len();
                let problem = format!(
                    "{} bytes are not a whole number of {}-byte records",
                    whole * record.len() + filled,
                    record.len()
                );
                return Err(format.damaged(path, problem));
            }
            if records.labels.len() == most {
                return Err(format.damaged(path, format!("holds more than {most} records")));
            }
            records.push(&record, path, format)?;
        }
        if records.labels.is_empty() {
            return Err(format.damaged(path, "is empty".into()));
        }
        Ok(records)
    }

    /// Takes over all records of `other`, after its own.
    pub fn append(&mut self, mut other: Self) {
        if self.labels.is_empty() {
            *self = other;
            return;
        }
        self.coarse.append(&mut other.coarse);
        self.labels.append(&mut other.labels);
        self.pixels.append(&mut other.pixels);
    }

    fn push(&mut self, record: &[u8], path: &Path, format: &Format) -> Result<()> {
        let (labels, planes) = record.split_at(format.label_bytes());
        let number = self.labels.len();
        let check = |label: u8, count: usize, what: &str| {
            let label = usize::from(label);
            if label < count {
                return Ok(label);
            }
            let problem = format!("record {number} has {what} {label}, but there are only {count}");
            Err(Error::bad_data(path, problem, format.other_layout_hint()))
        };
        if let [coarse, label] = *labels {
            self.coarse.push(check(coarse, SUPERCLASSES, "coarse label")?);
            self.labels.push(check(label, format.classes.len(), "fine label")?);
        } else {
            self.labels.push(check(labels[0], format.classes.len(), "label")?);
        }
        interleave(planes, &mut self.pixels);
        Ok(())
    }
}

/// Appends an image given as three whole planes with its channels side by side.
fn interleave(planes: &[u8], pixels: &mut Vec<u8>) {
    let plane = planes.len() / 3;
    let (red, rest) = planes.split_at(plane);
    let (green, blue) = rest.split_at(plane);
    for ((&red, &green), &blue) in red.iter().zip(green).zip(blue) {
        pixels.extend_from_slice(&[red, green, blue]);
    }
}

/// Reads until the buffer is full or the input ends; says how much came.
fn fill(reader: &mut dyn Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match reader.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::{
        super::{CIFAR10, CIFAR100},
        *,
    };

    fn read(bytes: &[u8], format: &Format) -> Result<Records> {
        Records::read(&mut &*bytes, Path::new("some/file.bin"), bytes.len() as u64, format)
    }

    fn record(labels: &[u8], planes: [u8; 3]) -> Vec<u8> {
        let mut bytes = labels.to_vec();
        for value in planes {
            bytes.extend([value; 1024]);
        }
        bytes
    }

    #[test]
    fn planes_become_interleaved_pixels_and_labels_are_kept() {
        let bytes = [record(&[4, 55], [1, 2, 3]), record(&[14, 98], [7, 8, 9])].concat();
        let records = read(&bytes, &CIFAR100).unwrap();
        assert_eq!(records.labels, [55, 98]);
        assert_eq!(records.coarse, [4, 14]);
        assert_eq!(records.pixels.len(), 2 * 3072);
        assert!(records.pixels[..3072].chunks(3).all(|pixel| pixel == [1, 2, 3]));
        assert!(records.pixels[3072..].chunks(3).all(|pixel| pixel == [7, 8, 9]));
        let records = read(&record(&[9], [5, 5, 5]), &CIFAR10).unwrap();
        assert_eq!(records.labels, [9]);
        assert!(records.coarse.is_empty());
    }

    #[test]
    fn a_cut_file_is_refused_with_its_length() {
        let bytes = [record(&[3], [0, 0, 0]), vec![1; 100]].concat();
        let error = read(&bytes, &CIFAR10).unwrap_err();
        assert_eq!(
            error.to_string(),
            "some/file.bin: 3173 bytes are not a whole number of 3073-byte records"
        );
        assert!(error.hint().unwrap().contains("dpcl data fetch cifar10"), "{error:?}");
    }

    #[test]
    fn labels_out_of_range_and_empty_files_are_refused() {
        let error = read(&record(&[10], [0, 0, 0]), &CIFAR10).unwrap_err();
        assert_eq!(error.to_string(), "some/file.bin: record 0 has label 10, but there are only 10");
        let error = read(&record(&[0, 100], [0, 0, 0]), &CIFAR100).unwrap_err();
        assert_eq!(error.to_string(), "some/file.bin: record 0 has fine label 100, but there are only 100");
        let error = read(&record(&[20, 99], [0, 0, 0]), &CIFAR100).unwrap_err();
        assert_eq!(error.to_string(), "some/file.bin: record 0 has coarse label 20, but there are only 20");
        assert_eq!(read(&[], &CIFAR10).unwrap_err().to_string(), "some/file.bin: is empty");
    }

    #[test]
    fn an_endless_file_is_stopped() {
        let path = Path::new("bomb");
        let error = Records::read_at_most(7, &mut io::repeat(0), path, 0, &CIFAR10).unwrap_err();
        assert_eq!(error.to_string(), "bomb: holds more than 7 records");
    }

    #[test]
    fn an_absurd_announced_length_reserves_no_more_than_the_official_set() {
        let bytes = record(&[3], [0, 0, 0]);
        let records = Records::read(&mut &*bytes, Path::new("x"), u64::MAX, &CIFAR10).unwrap();
        assert_eq!(records.labels, [3]);
        assert!(records.pixels.capacity() <= 50_000 * 3072);
    }

    proptest! {
        #[test]
        fn any_bytes_give_records_or_an_error(bytes in proptest::collection::vec(any::<u8>(), 0..9000)) {
            if let Ok(records) = read(&bytes, &CIFAR10) {
                prop_assert_eq!(records.labels.len() * 3073, bytes.len());
                prop_assert!(records.labels.iter().all(|&label| label < 10));
            }
        }
    }
}
