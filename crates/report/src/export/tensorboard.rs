//! Curves as TensorBoard reads them: one file of events a run, in its record format (lengths and masked CRC-32C around
//! protocol buffers). Steps are stream samples; times are not on record, so a sample counts as a second.

use crate::group::Run;
use crate::metrics::accuracy;
use crate::record::Event;

/// A run's file of events.
pub fn events(run: &Run) -> Vec<u8> {
    let mut file = Vec::new();
    record(&mut file, &message(0, None, &[]));
    for event in &run.record.events {
        let (samples, values) = match event {
            Event::Evaluation { samples, classes, .. } => match accuracy(classes) {
                Some(share) => (*samples, vec![("accuracy/any-time".to_owned(), share)]),
                None => continue,
            },
            Event::Progress { samples, loss, rate, counters, .. } => {
                let mut values =
                    vec![("training/loss".to_owned(), *loss), ("training/rate".to_owned(), *rate)];
                values.extend(counters.iter().map(|(name, number)| (format!("counters/{name}"), *number)));
                (*samples, values)
            }
            _ => continue,
        };
        record(&mut file, &message(samples, Some(()), &values));
    }
    file
}

/// An `Event`: wall time (1), step (2), and either the version of the file (3) or a summary (5) of tagged (1) numbers (2).
fn message(step: u64, summary: Option<()>, values: &[(String, f64)]) -> Vec<u8> {
    let mut message = vec![0x09];
    message.extend((step as f64).to_le_bytes());
    message.push(0x10);
    varint(&mut message, step);
    if summary.is_none() {
        field(&mut message, 0x1a, b"brain.Event:2");
        return message;
    }
    let mut all = Vec::new();
    for (tag, number) in values {
        let mut value = Vec::new();
        field(&mut value, 0x0a, tag.as_bytes());
        value.push(0x15);
        value.extend((*number as f32).to_le_bytes());
        field(&mut all, 0x0a, &value);
    }
    field(&mut message, 0x2a, &all);
    message
}

fn field(message: &mut Vec<u8>, key: u8, bytes: &[u8]) {
    message.push(key);
    varint(message, bytes.len() as u64);
    message.extend(bytes);
}

fn varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

fn record(file: &mut Vec<u8>, data: &[u8]) {
    let length = (data.len() as u64).to_le_bytes();
    file.extend(length);
    file.extend(masked(&length).to_le_bytes());
    file.extend(data);
    file.extend(masked(data).to_le_bytes());
}

/// The checksum as the format masks it, so that a checksum of checksums is not one.
fn masked(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C, bit by bit: files are small.
fn crc32c(bytes: &[u8]) -> u32 {
    let step = |crc: u32| if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
    !bytes.iter().fold(!0, |crc, &byte| (0..8).fold(crc ^ u32::from(byte), |crc, _| step(crc)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checksum_is_the_published_one() {
        // RFC 3720, B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    #[test]
    fn numbers_of_any_length_and_a_whole_message() {
        let mut bytes = Vec::new();
        varint(&mut bytes, 300);
        assert_eq!(bytes, [0xac, 0x02]);
        let message = message(1, Some(()), &[("a".to_owned(), 0.5)]);
        // Time 1.0, step 1, one value: tag "a", 0.5.
        let expected = [
            0x09, 0, 0, 0, 0, 0, 0, 0xf0, 0x3f, 0x10, 1, 0x2a, 10, 0x0a, 8, 0x0a, 1, b'a', 0x15, 0, 0, 0,
            0x3f,
        ];
        assert_eq!(message, expected);
    }
}
