//! Checksums inside altered files put right: a stranger would do that too.

use flate2::Crc;

/// Of every chunk of a PNG file, as far as its lengths lead.
pub fn png(bytes: &mut Vec<u8>) {
    let mut at = 8;
    while let Some(header) = bytes.get(at..at + 8) {
        let length = u32::from_be_bytes([header[0], header[1], header[2], header[3]]) as usize;
        let end = at + 8 + length;
        let Some(body) = bytes.get(at + 4..end) else { return };
        let mut crc = Crc::new();
        crc.update(body);
        let sum = crc.sum().to_be_bytes();
        let Some(place) = bytes.get_mut(end..end + 4) else { return };
        place.copy_from_slice(&sum);
        at = end + 4;
    }
}

/// Of every header of a tar archive, as far as its lengths lead.
pub fn tar(bytes: &mut Vec<u8>) {
    const BLOCK: usize = 512;
    let mut at = 0;
    while let Some(block) = bytes.get_mut(at..at + BLOCK) {
        let mut header = tar::Header::new_old();
        header.as_mut_bytes().copy_from_slice(block);
        if block.iter().all(|&byte| byte == 0) {
            return;
        }
        header.set_cksum();
        block.copy_from_slice(header.as_bytes());
        let length = header.entry_size().unwrap_or(0).min(bytes.len() as u64) as usize;
        at += BLOCK + length.next_multiple_of(BLOCK);
    }
}
