//! Checksums inside altered files put right: a stranger would do that too.

use flate2::Crc;
use md5::{Digest as _, Md5};

/// Of every chunk of a PNG file, as far as its lengths lead.
pub fn png(bytes: &mut [u8]) {
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
pub fn tar(bytes: &mut [u8]) {
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

/// Of a checkpoint: the header's and the whole file's, in its last 32 bytes.
pub fn checkpoint(bytes: &mut [u8]) {
    const DIGESTS: usize = 32;
    let Some(body) = bytes.len().checked_sub(DIGESTS).filter(|&body| body >= 8) else { return };
    // Text put into the header or taken out moves its end.
    if let Some(end) = json_end(&bytes[8..body]) {
        let spaces = bytes[8 + end..body].iter().take_while(|&&byte| byte == b' ').count();
        bytes[..8].copy_from_slice(&((end + spaces) as u64).to_le_bytes());
    }
    let length = u64::from_le_bytes(bytes[..8].try_into().expect("eight bytes"));
    let header = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(8).min(body);
    let (head, whole) = (Md5::digest(&bytes[..header]), Md5::digest(&bytes[..body]));
    bytes[body..body + DIGESTS / 2].copy_from_slice(&head);
    bytes[body + DIGESTS / 2..].copy_from_slice(&whole);
}

/// Where the JSON object that begins here ends, going by its brackets.
fn json_end(bytes: &[u8]) -> Option<usize> {
    let (mut depth, mut quoted, mut escaped) = (0_usize, false, false);
    for (at, &byte) in bytes.iter().enumerate() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' => escaped = quoted,
            b'"' => quoted = !quoted,
            b'{' if !quoted => depth += 1,
            b'}' if !quoted => {
                depth = depth.checked_sub(1)?;
                if depth == 0 {
                    return Some(at + 1);
                }
            }
            _ => {}
        }
    }
    None
}
