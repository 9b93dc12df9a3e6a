//! How far an event log went, and what stood in it.

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

/// A place in the event log and what stands before it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Mark {
    /// Bytes before it.
    pub bytes: u64,
    /// MD5 of those bytes, in hexadecimal digits.
    pub md5: String,
}

/// Follows an event log as it is written.
#[derive(Clone, Default)]
pub struct Trail {
    bytes: u64,
    digest: Md5,
}

impl Trail {
    /// The log grew.
    pub fn add(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len() as u64;
        self.digest.update(bytes);
    }

    /// The end of the log.
    pub fn mark(&self) -> Mark {
        let md5 = self.digest.clone().finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        Mark { bytes: self.bytes, md5 }
    }
}
