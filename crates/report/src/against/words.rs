//! A comparison as tables and sentences, before any format.

use super::{Comparison, Difference, Outcome, Rival, lower_is_better};
use crate::format::{percent, signed};
use crate::table::{Cell, Row, Table};

/// What stands where nothing is known.
const NOTHING: &str = "–";

impl Outcome {
    /// In a word.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ahead => "ahead",
            Self::Behind => "behind",
            Self::Undecided => "undecided",
        }
    }
}

impl Difference {
    /// The mean with its sign.
    pub fn mean_text(&self) -> String {
        self.estimate.map_or_else(nothing, |estimate| signed(estimate.mean))
    }

    /// The interval's ends in brackets.
    pub fn interval_text(&self) -> String {
        self.interval.map_or_else(nothing, |(low, high)| format!("[{}, {}]", signed(low), signed(high)))
    }

    /// The deviation of the differences.
    pub fn deviation_text(&self) -> String {
        self.estimate.and_then(|estimate| estimate.deviation).map_or_else(nothing, percent)
    }

    /// How many pairs would see the margin.
    pub fn needed_text(&self) -> String {
        match self.needed {
            Some(needed) => needed.to_string(),
            None if self.interval.is_some() => "> 1000".to_owned(),
            None => nothing(),
        }
    }

    /// What was found, in a word.
    pub fn outcome_text(&self) -> &'static str {
        if self.estimate.is_some() { self.outcome.word() } else { NOTHING }
    }
}

fn nothing() -> String {
    NOTHING.to_owned()
}

impl Comparison<'_> {
    /// What stands above it all.
    pub fn heading(&self) -> String {
        format!("Compared with {}", self.opponent.name)
    }

    /// One table a metric, as far as any row has a pair; each with every row.
    pub fn tables(&self) -> Vec<Table> {
        let metrics = self.metrics.iter().enumerate();
        let known = metrics.filter(|(place, _)| {
            self.rivals.iter().any(|rival| rival.differences[*place].estimate.is_some())
        });
        known.map(|(place, metric)| self.table(place, metric)).collect()
    }

    fn table(&self, place: usize, metric: &'static str) -> Table {
        let row = |rival: &Rival| {
            let found = &rival.differences[place];
            let texts = [
                found.mean_text(),
                found.interval_text(),
                found.deviation_text(),
                found.pairs().to_string(),
                found.outcome_text().to_owned(),
                found.needed_text(),
            ];
            let mut cells = texts.map(|mean| Cell { mean, ..Cell::default() });
            cells[4].best = found.outcome != Outcome::Undecided;
            let cells = cells.to_vec();
            Row { name: rival.group.name.clone(), mark: rival.group.mark(), cells }
        };
        let columns = vec![metric, "95 % interval", "sd", "n", "outcome", "needed"];
        Table {
            metrics: columns.len(),
            columns,
            rows: self.rivals.iter().map(row).collect(),
            footnotes: Vec::new(),
        }
    }

    /// What has to be said below the tables.
    pub fn notes(&self) -> Vec<String> {
        let explained = !self.tables().is_empty();
        let mut notes = if explained { self.explanation() } else { Vec::new() };
        notes.extend(self.without_partner());
        let mixed = self.seeds_of(|rival| &rival.other_sets);
        if !mixed.is_empty() {
            notes.push(format!(
                "pairs on two instruction sets, which round differently and so differ by themselves: {mixed}"
            ));
        }
        notes
    }

    fn explanation(&self) -> Vec<String> {
        let lower: Vec<&str> =
            self.metrics.iter().copied().filter(|metric| lower_is_better(metric)).collect();
        let lower = match lower.as_slice() {
            [] => String::new(),
            names => format!("; of {} lower is better", names.join(", ")),
        };
        let points = if self.margin == 1.0 { "point" } else { "points" };
        vec![
            format!(
                "method minus {}, mean over the n seeds both have, in points of percent; sd is the deviation of the \
                 differences; ahead or behind where the 95 % interval (Student's t) leaves out 0{lower}; one interval in \
                 twenty misses the truth by chance",
                self.opponent.name
            ),
            format!(
                "needed: seeds with which a true difference of {} {points} would show in four of five comparisons, if \
                 differences vary by sd",
                self.margin
            ),
        ]
    }

    /// Seeds that only one side has.
    fn without_partner(&self) -> Vec<String> {
        let opponent = &self.opponent.name;
        let lacking = self.sharing(|rival| &rival.lacking);
        let note = |(missed, names): (&[u64], Vec<&str>)| {
            let verb = if names.len() == 1 { "lacks" } else { "lack" };
            format!("{} {verb} {} of {opponent}", names.join(", "), seeds(missed))
        };
        let mut notes: Vec<String> = lacking.into_iter().map(note).collect();
        let further = self.seeds_of(|rival| &rival.further);
        if !further.is_empty() {
            notes.push(format!("{opponent} lacks {further}"));
        }
        notes
    }

    /// `seed 4 of bic, mir; seeds 2, 3 of clib`, for the rows that have any.
    fn seeds_of(&self, of: for<'r> fn(&'r Rival) -> &'r [u64]) -> String {
        let shared = self.sharing(of).into_iter();
        shared
            .map(|(of_them, names)| format!("{} of {}", seeds(of_them), names.join(", ")))
            .collect::<Vec<_>>()
            .join("; ")
    }

    /// Rows by the seeds they have in common, without those that have none.
    fn sharing(&self, of: for<'r> fn(&'r Rival) -> &'r [u64]) -> Vec<(&[u64], Vec<&str>)> {
        let mut shared: Vec<(&[u64], Vec<&str>)> = Vec::new();
        for rival in self.rivals.iter().filter(|rival| !of(rival).is_empty()) {
            match shared.iter_mut().find(|(seeds, _)| *seeds == of(rival)) {
                Some((_, names)) => names.push(&rival.group.name),
                None => shared.push((of(rival), vec![&rival.group.name])),
            }
        }
        shared
    }
}

fn seeds(seeds: &[u64]) -> String {
    let noun = if seeds.len() == 1 { "seed" } else { "seeds" };
    let list: Vec<String> = seeds.iter().map(u64::to_string).collect();
    format!("{noun} {}", list.join(", "))
}
