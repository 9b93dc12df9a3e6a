//! Arriving samples wait until there are enough of them for the stream's part of a batch, and each earns a share of a
//! training step.
//!
//! Here it is decided how many steps samples are worth, not what a step does. Nothing is handed out at task ends, so
//! samples of two tasks may wait together, and a last few that never fill their part of a batch are not learned unless
//! somebody calls [`Arrivals::flush`].

use serde::{Deserialize, Serialize};

/// Samples on their way from the stream to the learner.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Arrivals<T> {
    capacity: usize,
    updates_per_sample: f64,
    most_aside: u64,
    credit: Credit,
    items: Vec<T>,
}

/// Samples that are due to be learned, and how many training steps they pay for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Due<T> {
    /// The samples, in order of arrival.
    pub items: Vec<T>,
    /// Training steps to take, possibly none.
    pub updates: usize,
}

/// What was earned and what was spent.
///
/// Counts instead of a running sum: `samples · updates_per_sample − updates` is rounded once however long the stream,
/// where adding 0.1 again and again would drift below the whole numbers that matter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Credit {
    /// Samples that have arrived.
    pub samples: u64,
    /// Training steps handed out.
    pub updates: u64,
    /// Samples set aside instead of taken in since samples were handed out last.
    #[serde(default)]
    pub aside: u64,
}

/// A step that lacks less than this is granted: it covers decimals such as 0.29 · 100 = 28.999… that binary floats
/// leave short.
const SHORTFALL: f64 = 1e-6;

impl Credit {
    /// Steps earned and not handed out, at the given rate.
    pub fn left(&self, updates_per_sample: f64) -> f64 {
        self.samples as f64 * updates_per_sample - self.updates as f64
    }

    /// Whole steps that a number of samples earns at the given rate.
    pub fn earned(samples: u64, updates_per_sample: f64) -> u64 {
        (samples as f64 * updates_per_sample + SHORTFALL).max(0.0) as u64
    }

    fn spend(&mut self, updates_per_sample: f64) -> usize {
        let whole = (self.left(updates_per_sample) + SHORTFALL).max(0.0) as usize;
        self.updates += whole as u64;
        self.aside = 0;
        whole
    }
}

impl<T> Arrivals<T> {
    /// Hands out `capacity` samples at a time (taken as at least 1), each worth `updates_per_sample` training steps.
    pub fn new(capacity: usize, updates_per_sample: f64) -> Self {
        let capacity = capacity.max(1);
        Self { capacity, updates_per_sample, most_aside: 0, credit: Credit::default(), items: Vec::new() }
    }

    /// The same for a stream of which up to `most` samples are ever set aside.
    pub fn setting_aside(self, most: usize) -> Self {
        Self { most_aside: most as u64, ..self }
    }

    /// Takes one sample in; hands all out when they are enough.
    pub fn push(&mut self, item: T) -> Option<Due<T>> {
        self.items.push(item);
        self.credit.samples += 1;
        (self.items.len() >= self.capacity).then(|| self.hand_out())
    }

    /// Counts a sample that earns its steps without being taken in.
    pub fn set_aside(&mut self) {
        self.credit.samples += 1;
        self.credit.aside += 1;
    }

    /// Hands out fewer than enough, with the whole steps they and earlier rests have earned.
    pub fn flush(&mut self) -> Option<Due<T>> {
        (!self.items.is_empty()).then(|| self.hand_out())
    }

    /// Samples that wait, in order of arrival.
    pub fn items(&self) -> &[T] {
        &self.items
    }

    /// What was earned and spent, to be saved beside the items.
    pub fn credit(&self) -> Credit {
        self.credit
    }

    /// Steps earned and not handed out.
    pub fn credit_left(&self) -> f64 {
        self.credit.left(self.updates_per_sample)
    }

    /// Whether samples could have waited like this, at the same capacity and rate: they were not enough, and what was
    /// earned and not spent is what they, those set aside meanwhile and less than one step from before are worth.
    pub fn could_stand_at(&self, items: usize, credit: Credit) -> bool {
        if items >= self.capacity || credit.aside > self.most_aside {
            return false;
        }
        let arrived = items as u64 + credit.aside;
        let earned = arrived as f64 * self.updates_per_sample;
        arrived <= credit.samples && (-0.5..earned + 1.5).contains(&credit.left(self.updates_per_sample))
    }

    /// Continues where others of the same capacity and rate stood.
    pub fn restore(&mut self, items: Vec<T>, credit: Credit) {
        self.items = items;
        self.credit = credit;
    }

    fn hand_out(&mut self) -> Due<T> {
        Due { items: std::mem::take(&mut self.items), updates: self.credit.spend(self.updates_per_sample) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn updates(arrivals: &mut Arrivals<usize>, samples: usize) -> Vec<usize> {
        (0..samples).filter_map(|sample| arrivals.push(sample)).map(|due| due.updates).collect()
    }

    #[test]
    fn samples_kept_out_earn_steps_for_the_others() {
        let mut arrivals = Arrivals::new(2, 1.0);
        arrivals.set_aside();
        arrivals.push('a');
        arrivals.set_aside();
        assert_eq!(arrivals.push('b'), Some(Due { items: vec!['a', 'b'], updates: 4 }));
    }

    #[test]
    fn three_updates_a_sample_make_twenty_four_for_eight() {
        let mut arrivals = Arrivals::new(8, 3.0);
        assert_eq!(updates(&mut arrivals, 20), [24, 24]);
        assert_eq!(arrivals.items(), [16, 17, 18, 19]);
        assert_eq!(arrivals.credit_left(), 12.0);
    }

    #[test]
    fn small_rates_save_up() {
        let mut arrivals = Arrivals::new(8, 0.1);
        assert_eq!(updates(&mut arrivals, 16), [0, 1]);
        assert!((arrivals.credit_left() - 0.6).abs() < 1e-12);
    }

    #[test]
    fn it_is_known_how_samples_could_have_waited() {
        let mut arrivals = Arrivals::new(8, 0.3);
        for sample in 0..100 {
            let (items, credit) = (arrivals.items().len(), arrivals.credit());
            assert!(arrivals.could_stand_at(items, credit), "{sample}");
            assert!(!arrivals.could_stand_at(8, credit), "a full one would have been handed out");
            arrivals.push(sample);
        }
        let credit = arrivals.credit();
        assert!(!arrivals.could_stand_at(4, Credit { samples: u64::MAX, ..credit }));
        assert!(!arrivals.could_stand_at(4, Credit { updates: u64::MAX, ..credit }));
        assert!(!Arrivals::<usize>::new(8, 3.0).could_stand_at(4, credit), "of another rate");
    }

    #[test]
    fn what_was_set_aside_counts_in_how_samples_could_have_waited() {
        let mut arrivals = Arrivals::new(4, 3.0).setting_aside(40);
        for sample in 0..100 {
            let (items, credit) = (arrivals.items().len(), arrivals.credit());
            assert!(arrivals.could_stand_at(items, credit), "{sample}");
            assert_eq!(Arrivals::<usize>::new(4, 3.0).could_stand_at(items, credit), credit.aside == 0);
            match sample < 10 || (50..80).contains(&sample) {
                true => arrivals.set_aside(),
                false => drop(arrivals.push(sample)),
            }
        }
        let credit = Credit { aside: 41, samples: 41, updates: 0 };
        assert!(!arrivals.could_stand_at(0, credit), "more than can be");
    }

    #[test]
    fn a_flush_pays_what_the_rest_has_earned() {
        let mut arrivals = Arrivals::new(8, 0.75);
        assert_eq!(arrivals.flush(), None);
        assert!(updates(&mut arrivals, 3).is_empty());
        assert_eq!(arrivals.flush(), Some(Due { items: vec![0, 1, 2], updates: 2 }));
        assert_eq!(arrivals.credit_left(), 0.25);
        assert_eq!(arrivals.flush(), None);
    }

    #[test]
    fn decimal_rates_count_like_decimals() {
        // 0.29 · 100 is 28.999999999999996 in binary, and a running sum of 0.1 falls short of 1 after ten terms.
        assert_eq!(updates(&mut Arrivals::new(100, 0.29), 100), [29]);
        assert_eq!(updates(&mut Arrivals::new(10, 0.1), 1_000_000), vec![1; 100_000]);
    }

    proptest! {
        #[test]
        fn every_sample_is_handed_out_once_and_every_whole_step_is_paid(
            capacity in 1_usize..40, hundredths in 0_usize..400, samples in 0_usize..500,
        ) {
            let mut arrivals = Arrivals::new(capacity, hundredths as f64 / 100.0);
            let mut out = Vec::new();
            let mut paid = 0;
            for due in (0..samples).filter_map(|sample| arrivals.push(sample)) {
                prop_assert_eq!(due.items.len(), capacity);
                out.extend(due.items);
                paid += due.updates;
                prop_assert_eq!(paid, out.len() * hundredths / 100);
            }
            out.extend_from_slice(arrivals.items());
            prop_assert_eq!(out, (0..samples).collect::<Vec<_>>());
        }

        #[test]
        fn a_restored_arrivals_continues(capacity in 1_usize..9, stop in 0_usize..50, rate in 0.0_f64..3.0) {
            let mut whole = Arrivals::new(capacity, rate);
            let expected: Vec<_> = (0..50).filter_map(|sample| whole.push(sample)).collect();
            let mut first = Arrivals::new(capacity, rate);
            let mut found: Vec<_> = (0..stop).filter_map(|sample| first.push(sample)).collect();
            let saved = serde_json::to_string(&first.credit()).unwrap();
            let mut second = Arrivals::new(capacity, rate);
            second.restore(first.items().to_vec(), serde_json::from_str(&saved).unwrap());
            found.extend((stop..50).filter_map(|sample| second.push(sample)));
            prop_assert_eq!(found, expected);
        }
    }
}
