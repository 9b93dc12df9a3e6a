//! Altering bytes by chance: what transmission, disks, editors and ill will do to files.

use dpcl::Random;

/// Numbers at which readers overflow, in as many widths as files have.
const EXTREMES: [u64; 10] = [
    0,
    1,
    0x7f,
    0xff,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0xffff_ffff,
    0x7fff_ffff_ffff_ffff,
    0xffff_ffff_ffff_ffff,
];

/// Numbers as they are written, at the edges of what types hold.
const NUMBERS: [&str; 12] = [
    "0",
    "1",
    "2",
    "7",
    "-1",
    "0.5",
    "1e308",
    "255",
    "4294967296",
    "9223372036854775807",
    "18446744073709551615",
    "99999999999999999999",
];

/// Words at which readers of text stumble.
const WORDS: [&str; 22] = [
    "0",
    "-1",
    "1e999",
    "-1e-999",
    "NaN",
    "inf",
    "null",
    "true",
    "[]",
    "{}",
    "\"\"",
    "\u{0}",
    "\u{feff}",
    "\u{202e}é\u{10ffff}",
    "18446744073709551615",
    "18446744073709551616",
    "9223372036854775807",
    "-9223372036854775808",
    "[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[",
    "\"../../etc/passwd\"",
    "\r\n",
    "\\ud800",
];

/// A source of alterations.
pub struct Mutator {
    random: Random,
}

impl Mutator {
    /// The same seed and name alter in the same way.
    pub fn new(seed: u64, name: &str) -> Self {
        Self { random: Random::named(seed, &format!("fuzz-{name}")) }
    }

    /// One of the seeds, altered in one to four places, mostly in one: what is refused for one reason hides others.
    pub fn alter(&mut self, seeds: &[Vec<u8>]) -> Vec<u8> {
        let mut bytes = seeds[self.random.below(seeds.len())].clone();
        let more = if self.random.chance(0.6) { 0 } else { self.random.below(4) };
        for _ in 0..=more {
            self.alter_once(&mut bytes, seeds);
        }
        bytes
    }

    fn alter_once(&mut self, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
        let at = self.place(bytes);
        let range = at..(at + 1 + self.length()).min(bytes.len());
        match self.random.below(14) {
            0 | 1 if at < bytes.len() => bytes[at] ^= 1 << self.random.below(8),
            2 if at < bytes.len() => bytes[at] = self.random.below(256) as u8,
            3 => bytes.truncate(at),
            4 => drop(bytes.drain(range)),
            5 => {
                // Doubled, or many times over: lists that never end.
                let copies = [1, 2, 40][self.random.below(3)];
                let part = bytes[range.clone()].repeat(copies);
                insert(bytes, range.end, &part);
            }
            6 => {
                let new: Vec<u8> = (0..self.length()).map(|_| self.random.below(256) as u8).collect();
                insert(bytes, at, &new);
            }
            7 => self.splice(bytes, at, seeds),
            8 | 9 => self.extreme_number(bytes, at),
            10 => self.word(bytes, at),
            _ => self.written_number(bytes, at),
        }
    }

    /// Anywhere, the beginning more often: headers are there.
    fn place(&mut self, bytes: &[u8]) -> usize {
        let within = if self.random.chance(0.4) { bytes.len().min(64) } else { bytes.len() };
        self.random.below(within + 1)
    }

    fn length(&mut self) -> usize {
        let most = [4, 16, 300][self.random.below(3)];
        self.random.below(most)
    }

    /// Goes on as another seed does from anywhere.
    fn splice(&mut self, bytes: &mut Vec<u8>, at: usize, seeds: &[Vec<u8>]) {
        let other = &seeds[self.random.below(seeds.len())];
        bytes.truncate(at);
        bytes.extend(&other[self.random.below(other.len() + 1)..]);
    }

    fn extreme_number(&mut self, bytes: &mut [u8], at: usize) {
        let number = EXTREMES[self.random.below(EXTREMES.len())];
        let width = [1, 2, 4, 8][self.random.below(4)];
        let little = number.to_le_bytes();
        let mut number = little[..width].to_vec();
        if self.random.chance(0.5) {
            number.reverse();
        }
        for (byte, new) in bytes[at..].iter_mut().zip(number) {
            *byte = new;
        }
    }

    /// Puts a number in the place of the next one that is written there; the text around it stays whole.
    fn written_number(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let Some(start) = bytes[at..].iter().position(u8::is_ascii_digit).map(|next| at + next) else {
            return;
        };
        let is_part = |byte: &&u8| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'-' | b'+');
        let end = start + bytes[start..].iter().take_while(is_part).count();
        let number = NUMBERS[self.random.below(NUMBERS.len())];
        bytes.splice(start..end, number.bytes());
    }

    /// Puts a word in the place of the number, name or byte that begins there, if any.
    fn word(&mut self, bytes: &mut Vec<u8>, at: usize) {
        let word = WORDS[self.random.below(WORDS.len())];
        let old = bytes[at..].iter().take_while(|byte| byte.is_ascii_alphanumeric()).count();
        bytes.splice(at..at + old, word.bytes());
        if word.starts_with('[') && self.random.chance(0.2) {
            insert(bytes, at, &b"[".repeat(50_000));
        }
    }
}

fn insert(bytes: &mut Vec<u8>, at: usize, new: &[u8]) {
    bytes.splice(at..at, new.iter().copied());
}
