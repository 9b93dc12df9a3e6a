//! Progress as one bar a run under way; what has ended scrolls away above.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use console::style;
use dpcl::Progress;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::{quiet::Quiet, tally::Tally, words};
use crate::{
    conductor::{Audience, Outcome},
    output,
};

/// Longest title that still leaves room for a bar in 80 columns.
const LONGEST_TITLE: usize = 16;
const NARROW: usize = 80;
/// Columns more that a title has beside half a line about its end.
const BESIDE_ENDING: usize = 20;
/// Redraws a second.
const REDRAWS: u8 = 10;
/// Time between two looks at the time left of all runs.
const SECOND: Duration = Duration::from_secs(1);

/// Bars on stderr.
pub struct Bars {
    screen: MultiProgress,
    titles: Vec<String>,
    bars: Vec<Option<(ProgressBar, Instant)>>,
    /// Runs done of all runs; only where there are more than can be seen at once.
    overall: Option<ProgressBar>,
    tally: Tally,
    told: Instant,
    /// Notices that were told.
    noticed: BTreeSet<String>,
    _quiet: Quiet,
}

impl Bars {
    /// For runs with these titles.
    pub fn new(titles: Vec<String>) -> Self {
        let screen = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(REDRAWS));
        let overall = (titles.len() > 2).then(|| {
            let bar = screen.add(ProgressBar::new(titles.len() as u64));
            bar.set_style(template("{msg}"));
            bar
        });
        let bars = titles.iter().map(|_| None).collect();
        let (tally, told, noticed) = (Tally::new(titles.len()), Instant::now(), BTreeSet::new());
        let _quiet = Quiet::of(std::io::stderr());
        let mut shown = Self { screen, titles, bars, overall, tally, told, noticed, _quiet };
        shown.count();
        shown
    }

    fn count(&mut self) {
        self.told = Instant::now();
        if let Some(overall) = &self.overall {
            overall.set_message(style(self.tally.words()).dim().for_stderr().to_string());
        }
    }

    /// Columns for titles beside a bar; `further` where there is none.
    fn width(&self, further: usize) -> usize {
        let longest = self.titles.iter().map(|title| title.chars().count()).max().unwrap_or(0);
        longest.min(LONGEST_TITLE + further + output::talk_width().saturating_sub(NARROW) / 2)
    }
}

impl Audience for Bars {
    fn begun(&mut self, run: usize) {
        let bar = match &self.overall {
            Some(overall) => self.screen.insert_before(overall, ProgressBar::new(1)),
            None => self.screen.add(ProgressBar::new(1)),
        };
        bar.set_style(template("{prefix} {wide_bar:.cyan/dim} {msg}").progress_chars("━╸─"));
        bar.set_prefix(fit(&self.titles[run], self.width(0)));
        bar.set_message("opening the data");
        self.bars[run] = Some((bar, Instant::now()));
    }

    fn progress(&mut self, run: usize, progress: &Progress) {
        self.tally.progress(run, progress);
        if self.told.elapsed() >= SECOND {
            self.count();
        }
        let Some((bar, begun)) = &mut self.bars[run] else { return };
        if bar.length() != Some(progress.total) {
            bar.set_length(progress.total);
            // Opening the data says nothing about the speed of learning.
            *begun = Instant::now();
        }
        bar.set_position((progress.share() * progress.total as f64) as u64);
        let digits = progress.total.to_string().len();
        let standing = words::standing(progress, begun.elapsed());
        bar.set_message(format!("{:>digits$}/{} {standing}", progress.samples, progress.total));
    }

    fn notice(&mut self, run: usize, text: &str) {
        // What is found in the data is the same for every run on them.
        if self.noticed.insert(text.to_owned()) {
            for line in words::notice(&self.titles[run], &output::harmless(text), output::talk_width()) {
                let _ = self.screen.println(line);
            }
        }
    }

    fn ended(&mut self, run: usize, outcome: &Outcome) {
        if let Some((bar, _)) = self.bars[run].take() {
            bar.finish_and_clear();
            self.screen.remove(&bar);
        }
        let mark = match outcome {
            Outcome::Finished(_) | Outcome::Kept(_) => style("✓").green(),
            Outcome::Interrupted => style("–").yellow(),
            Outcome::Failed(_) => style("✗").red(),
        };
        let title = fit(&self.titles[run], self.width(BESIDE_ENDING));
        let _ = self.screen.println(format!("{} {title} {}", mark.for_stderr(), words::ending(outcome)));
        self.tally.ended(run);
        self.count();
        if let Some(overall) = self.overall.take_if(|_| self.tally.is_over()) {
            overall.finish_and_clear();
        }
    }

    fn stopping(&mut self) {
        let _ = self.screen.println("stopping: waiting for the runs to close their records");
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        if let Some(overall) = &self.overall {
            overall.finish_and_clear();
        }
    }
}

fn template(text: &str) -> ProgressStyle {
    ProgressStyle::with_template(text).expect("the template is a constant and well formed")
}

/// Pads or cuts to a width; what is cut is the middle: titles begin alike and end with what tells them apart.
fn fit(title: &str, width: usize) -> String {
    let cut = dpcl_report::format::cut(title, "", width as f64, |_| 1.0);
    format!("{cut:<width$}")
}

/// A bar for a download, on stderr; hidden where nobody watches.
pub fn download() -> ProgressBar {
    let target = if output::watched() {
        ProgressDrawTarget::stderr_with_hz(REDRAWS)
    } else {
        ProgressDrawTarget::hidden()
    };
    let bar = ProgressBar::with_draw_target(None, target);
    bar.set_style(
        template("{wide_bar:.cyan/dim} {bytes}/{total_bytes} {bytes_per_sec} {eta} left")
            .progress_chars("━╸─"),
    );
    bar.enable_steady_tick(Duration::from_millis(200));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_title_keeps_its_ends() {
        assert_eq!(fit("er-seed1", 10), "er-seed1  ");
        assert_eq!(fit("a-very-long-label-seed12", 10), "a-ve…eed12");
    }
}
