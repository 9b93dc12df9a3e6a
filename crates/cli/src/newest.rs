//! Which checkpoint is meant by a path: a file, or the newest in a run's folder. Nothing is changed in folders: a run may
//! be at work in them.

use std::path::{Path, PathBuf};

use dpcl::folder::{CHECKPOINT_FOLDER, RunFolder};

use crate::failure::Usage;

/// The file itself; of a run's folder or its `checkpoint` folder the newest file; of a grid's folder that of its only
/// run.
pub fn checkpoint(asked: &Path) -> anyhow::Result<PathBuf> {
    if !asked.is_dir() {
        return Ok(asked.to_owned());
    }
    if let Some(found) = in_run(asked) {
        return Ok(found);
    }
    let runs: Vec<PathBuf> = below(asked).into_iter().filter(|run| in_run(run).is_some()).collect();
    match &runs[..] {
        [run] => Ok(in_run(run).unwrap_or_else(|| run.clone())),
        [] => {
            let hint = "name a `.ckpt` file, or the folder of a run: it has a folder `checkpoint`";
            Err(Usage::with_hint(format!("{} holds no checkpoint", asked.display()), hint).into())
        }
        several => {
            let names: Vec<String> = several.iter().map(|run| run.display().to_string()).collect();
            let problem = format!("{} holds the checkpoints of {} runs", asked.display(), names.len());
            Err(Usage::with_hint(problem, format!("name one of them: {}", names.join(", "))).into())
        }
    }
}

/// The newest checkpoint of a run.
pub fn in_run(run: &Path) -> Option<PathBuf> {
    let run = if run.ends_with(CHECKPOINT_FOLDER) { run.parent()? } else { run };
    RunFolder::at(run).newest_checkpoint()
}

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    found.sort();
    found
}
