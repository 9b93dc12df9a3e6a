//! What to do about an image that cannot be read: its file has gone, or is damaged.

use crate::config::choices;

/// Whether a run goes on without an image that cannot be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnBadImage {
    /// The run stops with an error that names the file.
    #[default]
    Fail,
    /// The image is left out: of what is learned, of an evaluation's totals, of the measured mean and deviation. The
    /// record counts it.
    Skip,
}

choices!(OnBadImage: Fail = "fail", Skip = "skip");
