//! What a compressed file may unpack to: a few hundred bytes can stand for gigabytes of zeros.

use std::io::{self, Read};

use flate2::read::GzDecoder;

/// Bytes that any file may unpack to.
const ALWAYS: u64 = 16 << 20;

/// Times its own length that a longer one may unpack to. Photographs hardly pack at all, and written digits to a fifth.
const TIMES: u64 = 12;

/// The bytes of a compressed file, up to what files of pictures unpack to.
pub(super) struct Unpacked<R> {
    inner: GzDecoder<R>,
    most: u64,
    left: u64,
}

impl<R: Read> Unpacked<R> {
    /// Of a file of `packed` bytes.
    pub fn of(file: R, packed: u64) -> Self {
        let most = packed.saturating_mul(TIMES).max(ALWAYS);
        Self { inner: GzDecoder::new(file), most, left: most }
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        self.left = self.left.checked_sub(read as u64).ok_or_else(|| {
            let problem = format!(
                "unpacks to more than {} bytes, which no file of pictures of its size does",
                self.most
            );
            io::Error::new(io::ErrorKind::InvalidData, problem)
        })?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn unpacked(zeros: u64) -> io::Result<u64> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        io::copy(&mut io::repeat(0).take(zeros), &mut encoder).unwrap();
        encoder.flush().unwrap();
        let bytes = encoder.finish().unwrap();
        io::copy(&mut Unpacked::of(&bytes[..], bytes.len() as u64), &mut io::sink())
    }

    #[test]
    fn what_unpacks_to_more_than_pictures_do_is_damaged() {
        assert_eq!(unpacked(ALWAYS).unwrap(), ALWAYS);
        let error = unpacked(ALWAYS + 1).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().contains("unpacks to more than 16777216 bytes"), "{error}");
    }
}
