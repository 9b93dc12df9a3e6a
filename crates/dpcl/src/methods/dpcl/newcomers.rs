//! The disagreement on stream samples between their training steps and their offer to the memory.

use crate::config::choices;

/// Which of its measurements a stream sample is offered with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offered {
    /// That of the last step.
    #[default]
    Last,
    /// The mean of all steps.
    Mean,
}

choices!(Offered: Last = "last", Mean = "mean");

/// What was measured on the samples that arrived last; each is gone once its sample was offered.
#[derive(Clone, Debug, Default)]
pub struct Newcomers(Vec<Option<Measured>>);

#[derive(Clone, Copy, Debug)]
struct Measured {
    sum: f64,
    count: f64,
}

impl Newcomers {
    /// After a further step on the same samples, with what was measured on each; nothing is left where nothing was.
    #[must_use]
    pub fn after(self, offered: Offered, rows: Option<&[f64]>) -> Self {
        let Some(rows) = rows else { return Self::default() };
        let same = self.0.len() == rows.len() && self.0.iter().all(Option::is_some);
        let before = self.0.into_iter().flatten().filter(|_| offered == Offered::Mean && same);
        let before = before.map(Some).chain(std::iter::repeat(None));
        let add = |(&value, before): (&f64, Option<Measured>)| {
            let Measured { sum, count } = before.unwrap_or(Measured { sum: 0.0, count: 0.0 });
            Some(Measured { sum: sum + value, count: count + 1.0 })
        };
        Self(rows.iter().zip(before).map(add).collect())
    }

    /// What the sample of a row is offered with, once.
    pub fn take(&mut self, row: usize) -> Option<f64> {
        let Measured { sum, count } = self.0.get_mut(row)?.take()?;
        Some(sum / count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(mut newcomers: Newcomers, rows: usize) -> Vec<Option<f64>> {
        (0..rows).map(|row| newcomers.take(row)).collect()
    }

    #[test]
    fn a_sample_is_offered_with_its_last_measurement_or_with_their_mean() {
        let steps: [&[f64]; 3] = [&[0.1, 0.5], &[0.2, 0.5], &[0.6, 0.2]];
        let all = |offered| {
            steps.iter().fold(Newcomers::default(), |before, rows| before.after(offered, Some(rows)))
        };
        assert_eq!(taken(all(Offered::Last), 3), [Some(0.6), Some(0.2), None]);
        let means = taken(all(Offered::Mean), 3);
        assert!((means[0].unwrap() - 0.3).abs() < 1e-12 && (means[1].unwrap() - 0.4).abs() < 1e-12);
        assert_eq!(means[2], None);
    }

    #[test]
    fn samples_that_were_offered_leave_nothing_to_those_after_them() {
        let mut newcomers = Newcomers::default().after(Offered::Mean, Some(&[0.1, 0.5]));
        assert_eq!((newcomers.take(0), newcomers.take(0), newcomers.take(1)), (Some(0.1), None, Some(0.5)));
        let newcomers = newcomers.after(Offered::Mean, Some(&[0.3, 0.7]));
        assert_eq!(taken(newcomers.clone(), 2), [Some(0.3), Some(0.7)]);
        // Nor does a step in which nothing was measured.
        let newcomers = newcomers.after(Offered::Mean, None);
        assert_eq!(taken(newcomers, 2), [None, None]);
    }
}
