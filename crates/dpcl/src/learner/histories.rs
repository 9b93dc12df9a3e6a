//! What a learner can say of the disagreement it remembers.

use super::Learner;
use crate::method::HistoryCheck;

impl Learner {
    /// How well the disagreement remembered of stored samples goes with what is measured on them now, on a clean pass
    /// through the memory; `None` where nothing is remembered.
    pub fn check_histories(&self) -> Option<HistoryCheck> {
        self.method.check_histories(&self.core)
    }
}
