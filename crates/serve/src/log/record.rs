//! The bytes of the log: how an accepted request is written down and read back.
//!
//! # Layout, version 1
//!
//! All numbers are little-endian. A segment is a file of one header and records without gaps.
//!
//! | bytes | header of a segment |
//! |---|---|
//! | 8 | `dpcl-log` |
//! | 4 | version of this layout, `1` |
//! | 4 | height and width of the images |
//! | 8 | number of the first sample that can follow |
//! | 4 | CRC-32 of the bytes before |
//!
//! | bytes | a record |
//! |---|---|
//! | 4 | length of its content |
//! | 4 | CRC-32 of its content |
//! | … | content: one byte of kind, then what is below |
//!
//! Kind 1, a request that was accepted whole: number of its first sample (8), whether it had a key (1) and if so digest of
//! key and of request (16 + 16), how many samples (4), and each: length of its label (4), label, image (height · width · 3).
//! Kind 2, the keys of earlier requests: how many (4), and each: digest of key and of request (16 + 16), samples (4).

use dpcl::Image;

use super::Entry;
use crate::keys::{Kept, Key};

/// Length of a segment's header.
pub const HEADER: usize = 28;

/// Bytes before a record's content.
pub const BEFORE: usize = 8;

const MAGIC: &[u8; 8] = b"dpcl-log";
const VERSION: u32 = 1;
const SAMPLES: u8 = 1;
const KEYS: u8 = 2;

/// A record, read.
#[derive(Debug, PartialEq)]
pub enum Record {
    /// An accepted request.
    Samples(Entry),
    /// Keys of earlier requests, oldest first.
    Keys(Vec<Kept>),
}

/// The header of a segment for images of `side` × `side` whose first sample has number `first`.
pub fn header(side: usize, first: u64) -> Vec<u8> {
    let mut bytes = MAGIC.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((side as u32).to_le_bytes());
    bytes.extend(first.to_le_bytes());
    let check = crc32fast::hash(&bytes);
    bytes.extend(check.to_le_bytes());
    bytes
}

/// Side of the images and number of the first sample, from a segment's header.
///
/// # Errors
/// What is wrong with it.
pub fn read_header(bytes: &[u8]) -> Result<(usize, u64), String> {
    let mut reader = Reader(bytes.get(..HEADER).ok_or("it is shorter than a header")?);
    let check = crc32fast::hash(&bytes[..HEADER - 4]);
    if reader.take(MAGIC.len()) != Some(MAGIC) {
        return Err("it is not a log".into());
    }
    let version = reader.number();
    let (side, first, found) = (reader.number(), reader.long(), reader.number());
    if found != Some(check) {
        return Err("its header does not match its checksum".into());
    }
    if version != Some(VERSION) {
        return Err("it was written by a later version of the program".into());
    }
    side.zip(first).map(|(side, first)| (side as usize, first)).ok_or_else(|| "its header is cut off".into())
}

/// Adds a record of an accepted request.
pub fn write_entry(out: &mut Vec<u8>, entry: &Entry) {
    framed(out, |out| {
        out.push(SAMPLES);
        out.extend(entry.first.to_le_bytes());
        out.push(u8::from(entry.key.is_some()));
        if let Some(key) = &entry.key {
            out.extend(key.digest);
            out.extend(key.request);
        }
        out.extend((entry.samples.len() as u32).to_le_bytes());
        for (label, image) in &entry.samples {
            out.extend((label.len() as u32).to_le_bytes());
            out.extend(label.as_bytes());
            out.extend_from_slice(&image.pixels);
        }
    });
}

/// Adds a record of keys.
pub fn write_keys<'a>(out: &mut Vec<u8>, keys: impl ExactSizeIterator<Item = &'a Kept>) {
    framed(out, |out| {
        out.push(KEYS);
        out.extend((keys.len() as u32).to_le_bytes());
        for kept in keys {
            out.extend(kept.key.digest);
            out.extend(kept.key.request);
            out.extend(kept.samples.to_le_bytes());
        }
    });
}

fn framed(out: &mut Vec<u8>, content: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend([0; BEFORE]);
    content(out);
    let (length, check) = ((out.len() - start - BEFORE) as u32, crc32fast::hash(&out[start + BEFORE..]));
    out[start..start + 4].copy_from_slice(&length.to_le_bytes());
    out[start + 4..start + BEFORE].copy_from_slice(&check.to_le_bytes());
}

/// The record that `bytes` begin with and how long it is; `None` where they do not begin with a whole one.
pub fn read(bytes: &[u8], side: usize) -> Option<(Record, usize)> {
    let mut reader = Reader(bytes);
    let length = reader.number()? as usize;
    let check = reader.number()?;
    let content = reader.take(length)?;
    if crc32fast::hash(content) != check {
        return None;
    }
    let mut reader = Reader(content);
    let record = match reader.byte()? {
        SAMPLES => Record::Samples(entry(&mut reader, side)?),
        KEYS => Record::Keys(keys(&mut reader)?),
        _ => return None,
    };
    reader.0.is_empty().then_some((record, BEFORE + length))
}

fn entry(reader: &mut Reader<'_>, side: usize) -> Option<Entry> {
    let first = reader.long()?;
    let key = match reader.byte()? {
        0 => None,
        _ => Some(reader.key()?),
    };
    let count = reader.number()?;
    let mut samples = Vec::new();
    for _ in 0..count {
        let length = reader.number()? as usize;
        let label = std::str::from_utf8(reader.take(length)?).ok()?.to_owned();
        let pixels = reader.take(side.checked_mul(side)?.checked_mul(3)?)?.into();
        samples.push((label, Image { height: side, width: side, pixels }));
    }
    Some(Entry { first, key, samples })
}

fn keys(reader: &mut Reader<'_>) -> Option<Vec<Kept>> {
    let count = reader.number()?;
    (0..count).map(|_| Some(Kept { key: reader.key()?, samples: reader.number()? })).collect()
}

/// Takes bytes from the front; never more than there are.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn byte(&mut self) -> Option<u8> {
        self.array::<1>().map(|[byte]| byte)
    }

    fn number(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    fn key(&mut self) -> Option<Key> {
        Some(Key { digest: self.array()?, request: self.array()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn some() -> Entry {
        let image = |grey| Image { height: 2, width: 2, pixels: vec![grey; 12].into() };
        let samples = vec![("otter \u{1f9a6}".to_owned(), image(7)), ("<b>".to_owned(), image(9))];
        Entry { first: 41, key: Some(Key { digest: [1; 16], request: [2; 16] }), samples }
    }

    #[test]
    fn what_goes_in_comes_out() {
        let mut bytes = Vec::new();
        write_entry(&mut bytes, &some());
        let entry_length = bytes.len();
        let kept = [Kept { key: Key { digest: [3; 16], request: [4; 16] }, samples: 5 }];
        write_keys(&mut bytes, kept.iter());
        let (record, length) = read(&bytes, 2).unwrap();
        assert_eq!((record, length), (Record::Samples(some()), entry_length));
        let (record, length) = read(&bytes[entry_length..], 2).unwrap();
        assert_eq!((record, entry_length + length), (Record::Keys(kept.to_vec()), bytes.len()));
        assert_eq!(read_header(&header(32, 7)), Ok((32, 7)));
    }

    #[test]
    fn every_cut_and_every_flipped_bit_is_noticed() {
        let mut bytes = Vec::new();
        write_entry(&mut bytes, &some());
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end], 2), None, "cut at {end}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&flipped, 2), None, "bit {bit}");
        }
        let header = header(8, 3);
        for bit in 0..header.len() * 8 {
            let mut flipped = header.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(read_header(&flipped).is_err(), "bit {bit} of the header");
        }
    }

    #[test]
    fn a_forged_count_asks_for_no_memory() {
        let mut bytes = Vec::new();
        framed(&mut bytes, |out| {
            out.push(SAMPLES);
            out.extend(0_u64.to_le_bytes());
            out.push(0);
            out.extend(u32::MAX.to_le_bytes());
        });
        assert_eq!(read(&bytes, 2), None);
    }
}
