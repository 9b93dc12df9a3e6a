//! What opening a data set found that people should know. Telling it is the caller's business.

/// How a data set was read, where that is not plain.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub struct Findings {
    /// What was passed over or decided, a line each.
    pub notes: Vec<String>,
    /// Training images of each class to test on, the last ones, where the set has no half for that.
    pub holdout: Option<usize>,
    /// Images that were found to be unreadable and passed over.
    pub unreadable: Vec<Unreadable>,
}

/// An image that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Unreadable {
    /// What it is called inside its set.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

impl Findings {
    /// Notes that the last images of each class are kept for testing.
    pub(super) fn hold_out(&mut self, count: usize) {
        self.holdout = Some(count);
        let last = if count == 1 { "the last image".to_owned() } else { format!("the last {count}") };
        let verb = if count == 1 { "is" } else { "are" };
        self.notes.push(format!(
            "there is no folder to test on, so {last} of each class {verb} kept for testing (another number: --holdout)"
        ));
    }
}
