//! What the history of a newcomer begins with.
//!
//! Who takes the place of another was let in because its disagreement happened to be high. A history that starts with
//! that value lies above what later measurements will say, and the more so the more chance there is in them.

use super::Offer;
use crate::config::choices;

/// What the history of a newcomer starts with that takes the place of another sample.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Start {
    /// What it was let in with.
    #[default]
    Offered,
    /// The mean history of its class; of all, if its class has none.
    Class,
    /// The mean history of all.
    Memory,
    /// What it was let in with, until its first measurement in the memory takes that place.
    First,
}

choices!(Start: Offered = "offered", Class = "class", Memory = "memory", First = "first");

impl Start {
    /// The first value, given the class and the history of the samples beside it that have one.
    pub(super) fn value(self, offer: Offer, others: &[(usize, f64)]) -> f64 {
        let mean = |class: Option<usize>| {
            let of_class = others.iter().filter(|(other, _)| class.is_none_or(|class| class == *other));
            let (count, sum) =
                of_class.fold((0, 0.0), |(count, sum), (_, history)| (count + 1, sum + history));
            (count > 0).then(|| sum / f64::from(count))
        };
        let mean = match self {
            Self::Offered | Self::First => None,
            Self::Class => mean(Some(offer.class)).or_else(|| mean(None)),
            Self::Memory => mean(None),
        };
        mean.unwrap_or(offer.disagreement)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Memory, Pim, Place, Sample};
    use super::*;
    use crate::data::Image;

    /// A memory of four slots, classes 0, 0, 0 and 1 with histories 0.1, 0.2, 0.6 and 0.5.
    fn memory(start: Start) -> Memory {
        let mut memory = Memory::under(Box::new(Pim::default()), 4, 1).starting(start);
        for (class, history) in [(0, 0.1), (0, 0.2), (0, 0.6), (1, 0.5)] {
            assert_eq!(offer(&mut memory, class, Some(history)), Place::Append);
        }
        assert_eq!(
            memory.history(),
            [0.1, 0.2, 0.6, 0.5],
            "who takes nobody's place was not chosen by its value"
        );
        memory
    }

    fn offer(memory: &mut Memory, class: usize, disagreement: Option<f64>) -> Place {
        let image = Image { height: 1, width: 1, pixels: vec![0; 3].into() };
        memory.offer(&Sample::new(image, class), disagreement)
    }

    #[test]
    fn a_newcomer_starts_where_it_is_told_to() {
        // Slot 0 goes, the weakest of the largest class; it is not counted in any mean.
        let cases = [
            (Start::Offered, 0, 0.9),
            (Start::First, 0, 0.9),
            (Start::Class, 0, 0.4),
            (Start::Class, 1, 0.5),
            (Start::Class, 2, 1.3 / 3.0),
            (Start::Memory, 0, 1.3 / 3.0),
        ];
        for (start, class, expected) in cases {
            let mut memory = memory(start);
            assert_eq!(offer(&mut memory, class, Some(0.9)), Place::Replace(0));
            let found = memory.history()[0];
            assert!((found - expected).abs() < 1e-12, "{start:?} {class}: {found} for {expected}");
            assert_eq!(offer(&mut memory, class, Some(0.05)), Place::Refuse);

            // Its first measurement: a quarter of the way, or all of it and no change that a rate should hear of.
            let change = memory.rehearsed(&[0], &[0.1], 0.25);
            let (history, told) = match start {
                Start::First => (0.1, None),
                _ => (0.75 * expected + 0.025, Some(0.1 - expected)),
            };
            assert!((memory.history()[0] - history).abs() < 1e-12, "{start:?} {class}");
            assert_eq!(change.is_some(), told.is_some(), "{start:?} {class}");
            let off = change.zip(told).map_or(0.0, |(change, told)| change - told);
            assert!(off.abs() < 1e-12, "{start:?} {class}");
        }
    }

    #[test]
    fn a_history_that_nobody_measured_is_in_no_mean() {
        let mut memory = Memory::under(Box::new(Pim::default()), 3, 1).starting(Start::Memory);
        for (class, history) in [(0, Some(0.3)), (0, Some(0.1)), (1, None)] {
            offer(&mut memory, class, history);
        }
        assert_eq!((0..3).map(|slot| memory.is_measured(slot)).collect::<Vec<_>>(), [true, true, false]);
        assert_eq!(offer(&mut memory, 2, Some(0.7)), Place::Replace(1));
        assert_eq!(memory.history(), [0.3, 0.3, 0.0]);
        // One that was not measured before it came has no history to start.
        assert_eq!(offer(&mut memory, 3, None), Place::Replace(0));
        assert_eq!((memory.history(), memory.is_measured(0)), (&[0.0, 0.3, 0.0][..], false));
    }
}
