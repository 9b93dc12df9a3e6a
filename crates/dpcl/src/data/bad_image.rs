//! What to do about an image that cannot be read: its file has gone, or is damaged.

use serde::{Deserialize, Serialize};

/// Whether a run goes on without an image that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnBadImage {
    /// The run stops with an error that names the file.
    #[default]
    Fail,
    /// The image is left out: of what is learned, of an evaluation's totals, of the measured mean and deviation. The
    /// record counts it.
    Skip,
}

impl OnBadImage {
    /// Both, by the names they have in configurations.
    pub const NAMES: [&str; 2] = ["fail", "skip"];
}
