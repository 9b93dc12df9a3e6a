//! What a person who learns their own images should know before the run begins.

use super::Run;
use crate::{checkpoint::Checkpoint, data::Unreadable, learner::Label, stream::Credit};

/// With fewer training steps a class than this, answers are hardly better than chance.
const FEW_STEPS: u64 = 100;

/// How many names are shown of a long list.
const MOST_NAMED: usize = 8;

impl Run {
    /// What was found in the data, which classes will not be tested, and whether there are enough training steps.
    pub fn advice(&self) -> Vec<String> {
        let findings = &self.dataset.findings;
        let mut advice = findings.notes.clone();
        advice.extend(passed_over(&findings.unreadable));
        advice.extend(self.budget());
        if let Some(path) = &self.setup.from
            && let Ok(checkpoint) = Checkpoint::read(path)
        {
            advice.extend(self.untested(&checkpoint));
        }
        advice
    }

    /// Says so where images of one's own are few and seen too seldom to be learned. Published protocols are what they
    /// are.
    fn budget(&self) -> Option<String> {
        let setup = &self.setup;
        if !self.has_own_images() || setup.from.is_some() {
            return None;
        }
        let samples: u64 = self.schedule.tasks.iter().map(|task| task.samples.len() as u64).sum();
        let classes: u64 = self.schedule.tasks.iter().map(|task| task.classes.len() as u64).sum();
        let steps = Credit::earned(samples, setup.updates);
        if samples == 0 || steps >= FEW_STEPS * classes {
            return None;
        }
        let enough = (FEW_STEPS * classes).div_ceil(samples);
        Some(format!(
            "{samples} images and --updates {} make {} training steps a class, too few to learn much: give at least \
             --updates {enough}, or more images",
            setup.updates,
            steps / classes.max(1),
        ))
    }

    /// Whether the data are a folder of somebody's own images.
    pub(super) fn has_own_images(&self) -> bool {
        self.dataset.train.images.file_name(0).is_some()
            && crate::data::info(self.setup.dataset.as_str()).is_ok_and(|info| info.classes.is_none())
    }

    /// Names the classes of a learner that there is nothing to test on.
    fn untested(&self, checkpoint: &Checkpoint) -> Option<String> {
        let labels: Vec<Label> = checkpoint.state.get("labels").ok()?;
        let names = labels.iter().map(|label| checkpoint.class_name(label));
        let strange: Vec<String> = names.filter(|name| !self.dataset.classes.contains(name)).collect();
        (!strange.is_empty()).then(|| {
            format!(
                "not tested, though known: {}; to test them too, name the folder they were learned from first: \
                 --data-dir OLD --data-dir NEW",
                named(&strange)
            )
        })
    }
}

/// Names images that are passed over.
fn passed_over(unreadable: &[Unreadable]) -> Option<String> {
    let files: Vec<String> =
        unreadable.iter().map(|Unreadable { file, problem }| format!("{file} ({problem})")).collect();
    let plural = if files.len() == 1 { "image" } else { "images" };
    (!files.is_empty()).then(|| format!("{} unreadable {plural}: {}", files.len(), named(&files)))
}

/// The first names of a list, and how many there are beyond.
pub(super) fn named(names: &[String]) -> String {
    let shown = names.iter().take(MOST_NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST_NAMED) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_are_cut_and_counted() {
        let names: Vec<String> = (0..11).map(|number| format!("c{number}")).collect();
        assert_eq!(named(&names[..2]), "c0, c1");
        assert_eq!(named(&names), "c0, c1, c2, c3, c4, c5, c6, c7 and 3 more");
    }
}
