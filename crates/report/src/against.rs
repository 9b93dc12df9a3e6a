//! The rows of a setting against one of them, seed by seed.
//!
//! Runs of one seed learn one and the same stream, and some streams are harder than others. The differences between
//! runs of a seed leave that out, so their mean says more than the difference of two means. Knows no format;
//! `words.rs` makes tables and notes of it.

mod words;

use crate::error::{Error, Result};
use crate::group::{Group, Run, Setting};
use crate::statistics::Estimate;
use crate::student;
use crate::{Report, values};

/// What is compared unless metrics are asked for by name, as far as it was measured.
const USUAL: [&str; 4] = ["acc", "fm", "a_auc", "ece"];

/// What a reader wants to know.
#[derive(Clone, Debug, PartialEq)]
pub struct Asked {
    /// Name of the row that the others are compared with, as it is shown; or how only one of them begins.
    pub against: String,
    /// Metrics by their names in the record; none for the usual ones.
    pub metrics: Vec<String>,
    /// A difference that is worth knowing of, in points of percent.
    pub margin: f64,
}

/// What a report compares: [`Asked`], with names that exist.
#[derive(Clone, Debug)]
pub(crate) struct Compared {
    pub against: String,
    pub metrics: Vec<&'static str>,
    pub margin: f64,
}

/// Which of two is better, as far as the differences tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The 95 % interval leaves out 0, on the better side.
    Ahead,
    /// It leaves out 0 on the worse side.
    Behind,
    /// It holds 0, or there is none.
    Undecided,
}

/// One metric of a row minus that of its opponent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Difference {
    /// Mean and deviation over the pairs of runs that both measured it; `None` without a pair.
    pub estimate: Option<Estimate>,
    /// Its 95 % interval, from two pairs on.
    pub interval: Option<(f64, f64)>,
    /// Which is better.
    pub outcome: Outcome,
    /// Pairs that would see a difference of the margin; `None` for too many or where nothing is known of the deviation.
    pub needed: Option<usize>,
}

impl Difference {
    /// Of differences seed by seed; `margin` in their unit.
    pub fn of(differences: &[f64], lower_is_better: bool, margin: f64) -> Self {
        let estimate = Estimate::of(differences);
        let interval = estimate.as_ref().and_then(student::interval);
        let outcome = match interval {
            Some((low, _)) if low > 0.0 => Outcome::Ahead,
            Some((_, high)) if high < 0.0 => Outcome::Behind,
            _ => Outcome::Undecided,
        };
        let deviation = estimate.and_then(|estimate| estimate.deviation);
        Self {
            estimate,
            interval,
            outcome: if lower_is_better { outcome.reversed() } else { outcome },
            needed: deviation.and_then(|deviation| student::seeds_to_decide(deviation, margin)),
        }
    }

    /// How many pairs it is of.
    pub fn pairs(&self) -> usize {
        self.estimate.map_or(0, |estimate| estimate.count)
    }
}

impl Outcome {
    fn reversed(self) -> Self {
        match self {
            Self::Ahead => Self::Behind,
            Self::Behind => Self::Ahead,
            Self::Undecided => Self::Undecided,
        }
    }
}

/// A row beside the one it is compared with.
pub struct Rival<'a> {
    /// The row.
    pub group: &'a Group,
    /// One a metric.
    pub differences: Vec<Difference>,
    /// Seeds that only the opponent has.
    pub lacking: Vec<u64>,
    /// Seeds that only this row has.
    pub further: Vec<u64>,
    /// Seeds whose two runs were made on different instruction sets.
    pub other_sets: Vec<u64>,
}

/// All rows of a setting against one of them.
pub struct Comparison<'a> {
    /// That one.
    pub opponent: &'a Group,
    /// What is compared, by its names in the record.
    pub metrics: Vec<&'static str>,
    /// A difference that is worth knowing of, in points of percent.
    pub margin: f64,
    /// The others, in the setting's order; never empty.
    pub rivals: Vec<Rival<'a>>,
}

impl Report {
    /// Shows in every format how the rows differ from one of them.
    pub fn compare(&mut self, asked: &Asked) -> Result<()> {
        let known = || values(&Default::default()).map(|(name, _)| name);
        let metric = |name: &String| {
            let unknown = || Error::UnknownName {
                kind: "metric",
                name: name.clone(),
                known: known().map(str::to_owned).to_vec(),
            };
            known().into_iter().find(|metric| metric == name).ok_or_else(unknown)
        };
        let metrics = asked.metrics.iter().map(metric).collect::<Result<Vec<_>>>()?;
        let usual = metrics.is_empty();
        let against = row(&self.settings, &asked.against)?;
        let mut compared =
            Compared { against, metrics: if usual { USUAL.to_vec() } else { metrics }, margin: asked.margin };
        let (measured, absent): (Vec<_>, Vec<_>) =
            compared.metrics.iter().copied().partition(|metric| self.measures(&compared, metric));
        if usual {
            compared.metrics = measured;
        } else {
            self.notes.extend(absent.iter().map(|metric| format!("no pair of runs has {metric}")));
        }
        for setting in &self.settings {
            if Comparison::of(setting, &compared).is_none() {
                self.notes.push(format!("{}: nothing to compare with {}", setting.name, compared.against));
            }
        }
        self.compared = Some(compared);
        Ok(())
    }

    /// What there is to compare in a setting, if it was asked for.
    pub fn comparison<'a>(&self, setting: &'a Setting) -> Option<Comparison<'a>> {
        Comparison::of(setting, self.compared.as_ref()?)
    }

    /// What is compared, if that was asked for.
    pub(crate) fn compared(&self) -> Option<&Compared> {
        self.compared.as_ref()
    }

    fn measures(&self, compared: &Compared, metric: &str) -> bool {
        self.settings.iter().any(|setting| {
            let opponent = setting.groups.iter().find(|group| group.name == compared.against);
            let others = setting.groups.iter().filter(|group| group.name != compared.against);
            opponent.is_some_and(|opponent| {
                others.into_iter().any(|group| !differences(group, opponent, metric).is_empty())
            })
        })
    }
}

impl<'a> Comparison<'a> {
    fn of(setting: &'a Setting, compared: &Compared) -> Option<Self> {
        let opponent = setting.groups.iter().find(|group| group.name == compared.against)?;
        let rival = |group: &'a Group| Rival {
            group,
            differences: compared
                .metrics
                .iter()
                .map(|metric| {
                    let values = differences(group, opponent, metric);
                    Difference::of(&values, lower_is_better(metric), compared.margin / 100.0)
                })
                .collect(),
            lacking: missing(opponent, group),
            further: missing(group, opponent),
            other_sets: pairs(group, opponent)
                .filter(|(own, other)| own.result.isa != other.result.isa)
                .map(|(own, _)| own.result.seed)
                .collect(),
        };
        let others = setting.groups.iter().filter(|group| group.name != opponent.name);
        let rivals: Vec<Rival> = others.map(rival).collect();
        let Compared { metrics, margin, .. } = compared.clone();
        (!rivals.is_empty()).then_some(Self { opponent, metrics, margin, rivals })
    }
}

/// Whether a metric counts what should not be: forgetting, errors of calibration, risk.
pub fn lower_is_better(metric: &str) -> bool {
    ["fm", "f_last", "ece", "aurc"].iter().any(|start| metric.starts_with(start))
}

/// The run of the same seed.
pub fn partner<'a>(run: &Run, other: &'a Group) -> Option<&'a Run> {
    other.runs.iter().find(|candidate| candidate.result.seed == run.result.seed)
}

fn pairs<'a>(group: &'a Group, opponent: &'a Group) -> impl Iterator<Item = (&'a Run, &'a Run)> {
    group.runs.iter().filter_map(|run| Some((run, partner(run, opponent)?)))
}

fn differences(group: &Group, opponent: &Group, metric: &str) -> Vec<f64> {
    let value = |run: &Run| values(&run.metrics).into_iter().find(|(name, _)| *name == metric)?.1;
    let difference = |(own, other)| Some(value(own)? - value(other)?);
    // A damaged record can hold numbers that are none.
    pairs(group, opponent).filter_map(difference).filter(|difference| difference.is_finite()).collect()
}

/// Seeds of the first that the second lacks.
fn missing(of: &Group, from: &Group) -> Vec<u64> {
    of.runs.iter().filter(|run| partner(run, from).is_none()).map(|run| run.result.seed).collect()
}

/// The whole name of the row that is asked for.
fn row(settings: &[Setting], asked: &str) -> Result<String> {
    let mut names: Vec<&str> = Vec::new();
    for group in settings.iter().flat_map(|setting| &setting.groups) {
        if !names.contains(&group.name.as_str()) {
            names.push(&group.name);
        }
    }
    if names.contains(&asked) {
        return Ok(asked.to_owned());
    }
    let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let found: Vec<&str> = names.iter().copied().filter(|name| name.starts_with(asked)).collect();
    match found.as_slice() {
        [one] => Ok((*one).to_owned()),
        [] => Err(Error::UnknownName { kind: "row", name: asked.to_owned(), known: owned(&names) }),
        several => Err(Error::Ambiguous { name: asked.to_owned(), found: owned(several) }),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn hand_worked_differences() {
        // Mean 0.04, s = 0.01, t₀.₉₇₅;₂ = 4.302653: 0.04 ± 0.024841. For 3 points (4.302653 + 1.060660)²/9 = 3.2 is more
        // than 3 pairs, (3.182446 + 0.978472)²/9 = 1.9 is not more than 4.
        let ahead = Difference::of(&[0.03, 0.04, 0.05], false, 0.03);
        let (low, high) = ahead.interval.unwrap();
        assert!((low - 0.015_159).abs() < 1e-6 && (high - 0.064_841).abs() < 1e-6);
        assert_eq!((ahead.outcome, ahead.needed, ahead.pairs()), (Outcome::Ahead, Some(4), 3));
        assert_eq!(Difference::of(&[0.03, 0.04, 0.05], true, 0.03).outcome, Outcome::Behind);
        assert_eq!(Difference::of(&[-0.03, -0.04, -0.05], false, 0.03).outcome, Outcome::Behind);
        assert_eq!(Difference::of(&[-0.01, 0.04, 0.05], false, 0.03).outcome, Outcome::Undecided);
    }

    #[test]
    fn one_pair_decides_nothing_and_equal_pairs_decide_at_once() {
        let one = Difference::of(&[0.2], false, 0.03);
        assert_eq!((one.outcome, one.interval, one.needed), (Outcome::Undecided, None, None));
        let none = Difference::of(&[], false, 0.03);
        assert_eq!((none.outcome, none.pairs(), none.needed), (Outcome::Undecided, 0, None));
        let equal = Difference::of(&[0.2, 0.2], false, 0.03);
        assert_eq!((equal.outcome, equal.needed), (Outcome::Ahead, Some(2)));
        assert_eq!(Difference::of(&[0.0, 0.0], false, 0.03).outcome, Outcome::Undecided);
    }

    #[test]
    fn every_metric_has_a_better_side() {
        let lower: Vec<&str> = values(&Default::default())
            .into_iter()
            .map(|(name, _)| name)
            .filter(|name| lower_is_better(name))
            .collect();
        for name in ["fm", "fm_signed", "fm_max", "f_last", "fm_task_ids", "ece", "aurc_confidence"] {
            assert!(lower.contains(&name), "{name}");
        }
        assert!(lower.iter().all(|name| !name.starts_with('a') || name.starts_with("aurc")), "{lower:?}");
    }

    proptest! {
        #[test]
        fn swapping_sides_turns_everything_round(
            own in prop::collection::vec(0.0..1.0_f64, 0..9),
            other in prop::collection::vec(0.0..1.0_f64, 9),
        ) {
            let forth: Vec<f64> = own.iter().zip(&other).map(|(own, other)| own - other).collect();
            let back: Vec<f64> = own.iter().zip(&other).map(|(own, other)| other - own).collect();
            let (forth, back) = (Difference::of(&forth, false, 0.03), Difference::of(&back, false, 0.03));
            prop_assert_eq!(forth.outcome, back.outcome.reversed());
            prop_assert_eq!(forth.needed, back.needed);
            prop_assert_eq!(forth.estimate.map(|forth| forth.mean), back.estimate.map(|back| 0.0 - back.mean));
            prop_assert_eq!(forth.interval, back.interval.map(|(low, high)| (0.0 - high, 0.0 - low)));
            if let (Some(estimate), Some((low, high))) = (forth.estimate, forth.interval) {
                prop_assert!(low <= estimate.mean && estimate.mean <= high);
            }
        }
    }
}
