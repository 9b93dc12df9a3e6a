//! Which training samples exist: all of them, or the first few of each class, less those held out for testing.
//!
//! Cutting comes before any rule of a scenario, so every rule stays what it is on a smaller set.

use super::StreamSettings;
use crate::error::Result;

/// The training samples of each class that may be learned from, and those that may not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parts {
    /// For each class, positions in the training split, in official order.
    pub train: Vec<Vec<usize>>,
    heldout: Option<Vec<usize>>,
    present: Vec<bool>,
}

impl Parts {
    /// Positions in the training split that make up the test set, ascending; `None` when the test set is the
    /// official one.
    pub fn heldout(&self) -> Option<&[usize]> {
        self.heldout.as_deref()
    }

    /// Whether the uncut set has training samples of the class.
    pub(super) fn has(&self, class: usize) -> bool {
        self.present[class]
    }
}

/// Cuts the training split: the last `holdout` samples of every class are set aside, then only the first `per_class`
/// of the others stay. Every label must be below `class_count`.
///
/// # Errors
/// When the settings cannot be used.
pub fn cut(labels: &[usize], class_count: usize, settings: &StreamSettings) -> Result<Parts> {
    settings.check()?;
    let mut train = vec![Vec::new(); class_count];
    for (position, &class) in labels.iter().enumerate() {
        train[class].push(position);
    }
    let present = train.iter().map(|positions| !positions.is_empty()).collect();

    let heldout = settings.holdout.map(|count| {
        let mut heldout: Vec<usize> =
            train.iter_mut().flat_map(|all| all.split_off(all.len().saturating_sub(count))).collect();
        heldout.sort_unstable();
        heldout
    });
    if let Some(count) = settings.per_class {
        train.iter_mut().for_each(|positions| positions.truncate(count));
    }
    Ok(Parts { train, heldout, present })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LABELS: [usize; 9] = [0, 1, 0, 0, 1, 0, 3, 3, 0];

    fn parts(per_class: Option<usize>, holdout: Option<usize>) -> Parts {
        let settings = StreamSettings { per_class, holdout, ..StreamSettings::default() };
        cut(&LABELS, 4, &settings).unwrap()
    }

    #[test]
    fn nothing_is_cut_unless_asked() {
        let parts = parts(None, None);
        assert_eq!(parts.train, [vec![0, 2, 3, 5, 8], vec![1, 4], vec![], vec![6, 7]]);
        assert_eq!(parts.heldout(), None);
        assert!(parts.has(1) && !parts.has(2));
    }

    #[test]
    fn the_holdout_is_the_end_of_the_whole_class() {
        let parts = parts(Some(2), Some(1));
        assert_eq!(parts.train, [vec![0, 2], vec![1], vec![], vec![6]]);
        assert_eq!(parts.heldout(), Some(&[4, 7, 8][..]));
    }

    #[test]
    fn the_first_samples_stay_in_official_order() {
        assert_eq!(parts(Some(3), None).train[0], [0, 2, 3]);
        assert_eq!(parts(Some(9), None).train[1], [1, 4]);
    }
}
