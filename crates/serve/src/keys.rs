//! Idempotency keys: which requests were accepted before, so that a client's retry does not teach twice.

use std::collections::{HashMap, VecDeque};

use md5::{Digest, Md5};

/// Keys that are remembered; the oldest goes first.
const MOST: usize = 10_000;

/// A client's key with what it stood for. Digests only: what a client calls its requests is its own affair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Key {
    /// Digest of the key.
    pub digest: [u8; 16],
    /// Digest of the request it came with.
    pub request: [u8; 16],
}

impl Key {
    /// A key as sent, with everything in the request that says what is to be learned.
    pub fn of<'a>(key: &str, request: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut digest = Md5::new();
        for part in request {
            digest.update((part.len() as u64).to_le_bytes());
            digest.update(part);
        }
        Self { digest: Md5::digest(key.as_bytes()).into(), request: digest.finalize().into() }
    }
}

/// A key of an accepted request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The key.
    pub key: Key,
    /// Samples that the request brought.
    pub samples: u32,
}

/// What is known of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// Nothing.
    New,
    /// The same request was accepted before, with so many samples.
    Accepted(u32),
    /// It came with another request.
    Other,
}

/// The keys of the last accepted requests.
#[derive(Default)]
pub struct Keys {
    order: VecDeque<Kept>,
    known: HashMap<[u8; 16], Kept>,
}

impl Keys {
    /// What is known of a key.
    pub fn look_up(&self, key: &Key) -> Known {
        match self.known.get(&key.digest) {
            None => Known::New,
            Some(kept) if kept.key.request == key.request => Known::Accepted(kept.samples),
            Some(_) => Known::Other,
        }
    }

    /// Remembers a key; one that is known already keeps its place.
    pub fn remember(&mut self, kept: Kept) {
        if self.known.insert(kept.key.digest, kept).is_some() {
            return;
        }
        self.order.push_back(kept);
        if self.order.len() > MOST
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest.key.digest);
        }
    }

    /// Forgets keys of requests that were not accepted after all, newest first.
    pub fn forget_last(&mut self, count: usize) {
        for _ in 0..count {
            if let Some(last) = self.order.pop_back() {
                self.known.remove(&last.key.digest);
            }
        }
    }

    /// All of them, oldest first.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Kept> {
        self.order.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_retry_is_told_from_another_request() {
        let mut keys = Keys::default();
        let first = Key::of("a", [&b"cat"[..], b"pixels"]);
        assert_eq!(keys.look_up(&first), Known::New);
        keys.remember(Kept { key: first, samples: 3 });
        assert_eq!(keys.look_up(&first), Known::Accepted(3));
        // Where one part ends and the next begins makes a difference.
        assert_eq!(keys.look_up(&Key::of("a", [&b"catpixels"[..], b""])), Known::Other);
        assert_eq!(keys.look_up(&Key::of("b", [&b"cat"[..], b"pixels"])), Known::New);
        keys.forget_last(1);
        assert_eq!(keys.look_up(&first), Known::New);
    }

    #[test]
    fn the_oldest_key_is_forgotten_first() {
        let mut keys = Keys::default();
        let key = |number: usize| Key::of(&number.to_string(), []);
        for number in 0..=MOST {
            keys.remember(Kept { key: key(number), samples: 1 });
        }
        assert_eq!(keys.iter().len(), MOST);
        assert_eq!((keys.look_up(&key(0)), keys.look_up(&key(1))), (Known::New, Known::Accepted(1)));
    }
}
