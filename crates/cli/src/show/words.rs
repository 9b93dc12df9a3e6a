//! Numbers as people read them.

use std::time::Duration;

use dpcl::Progress;
use dpcl_report::record::RunResult;

use crate::{conductor::Outcome, output};

/// `0:07`, `12:34` or `3:02:01`.
pub fn duration(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let (hours, minutes, seconds) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes}:{seconds:02}") }
}

/// Time left if it goes on as it went so far; `None` before anything is known.
pub fn left(progress: &Progress, elapsed: Duration) -> Option<Duration> {
    let share = progress.share();
    let seconds = elapsed.as_secs_f64() * (1.0 - share) / (share - progress.earlier);
    Duration::try_from_secs_f64(seconds).ok()
}

/// Loss, learning rate, accuracy and time left, each of constant width so that lines do not dance.
pub fn standing(progress: &Progress, elapsed: Duration) -> String {
    let loss = progress.loss.map_or("–".into(), |loss| format!("{loss:.3}"));
    let rate = progress.rate.map_or("–".into(), |rate| format!("{rate:.1e}"));
    let accuracy = progress.accuracy.map_or("–".into(), percent);
    let left = left(progress, elapsed).map_or("–".into(), duration);
    format!("loss {loss:>5} lr {rate:>6} acc {accuracy:>7} {left:>5} left")
}

/// What a person should know of a run, in lines of at most a width.
pub fn notice(title: &str, text: &str, width: usize) -> Vec<String> {
    let mut lines = output::wrap(&format!("{title}: {text}"), width.saturating_sub(2).max(20));
    lines.iter_mut().skip(1).for_each(|line| line.insert_str(0, "  "));
    lines
}

/// `63.2 %`.
pub fn percent(share: f64) -> String {
    format!("{:.1} %", share * 100.0)
}

/// How a run ended, in half a line.
pub fn ending(outcome: &Outcome) -> String {
    match outcome {
        Outcome::Finished(result) => {
            let seconds = Duration::from_secs_f64((result.train_seconds + result.eval_seconds).max(0.0));
            format!("{} in {}", scores(result), duration(seconds))
        }
        Outcome::Kept(result) => format!("{}, finished earlier and kept", scores(result)),
        Outcome::Interrupted => "stopped".into(),
        Outcome::Failed(_) => "failed".into(),
    }
}

fn scores(result: &RunResult) -> String {
    let value = |share: Option<f64>| share.map_or("–".into(), percent);
    format!("ACC {}, FM {}", value(result.metrics.acc), value(result.metrics.fm))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_grow_by_hours_only_when_needed() {
        assert_eq!(duration(Duration::from_secs(7)), "0:07");
        assert_eq!(duration(Duration::from_secs(754)), "12:34");
        assert_eq!(duration(Duration::from_secs(3 * 3600 + 121)), "3:02:01");
    }

    #[test]
    fn standing_has_one_width_and_no_number_before_the_first_step() {
        let mut progress = Progress {
            samples: 0,
            total: 100,
            updates: 0,
            planned: 0,
            earlier: 0.0,
            loss: None,
            rate: None,
            accuracy: None,
        };
        let before = standing(&progress, Duration::from_secs(5));
        assert_eq!(before, "loss     – lr      – acc       –     – left");
        progress = Progress {
            samples: 25,
            loss: Some(1.2345),
            rate: Some(2.9e-4),
            accuracy: Some(0.6321),
            ..progress
        };
        let after = standing(&progress, Duration::from_secs(5));
        assert_eq!(after, "loss 1.234 lr 2.9e-4 acc  63.2 %  0:15 left");
        assert_eq!(before.chars().count(), after.chars().count());
        progress.earlier = 0.125;
        assert_eq!(left(&progress, Duration::from_secs(5)), Some(Duration::from_secs(30)));
    }

    #[test]
    fn a_long_notice_is_broken_and_set_in() {
        let lines = notice("er-seed1", "one two three four five six", 24);
        assert_eq!(lines, ["er-seed1: one two", "  three four five six"]);
    }

    #[test]
    fn time_is_left_as_long_as_steps_are() {
        let progress = Progress {
            samples: 100,
            total: 100,
            updates: 50,
            planned: 200,
            earlier: 0.0,
            loss: None,
            rate: None,
            accuracy: None,
        };
        assert_eq!(left(&progress, Duration::from_secs(5)), Some(Duration::from_secs(15)));
    }
}
