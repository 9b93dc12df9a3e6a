//! Runs that are not begun from nothing: those on record that were cut off, and those that take a learner further.

use std::path::{Path, PathBuf};

use dpcl::{
    Checkpoint,
    config::{Role, role_of},
    folder::RunFolder,
};
use toml::{Table, Value};

use crate::{
    failure::Usage,
    grid::{Grid, Planned, Wishes},
    newest,
};

/// Name of the grid of a learner that is taken further, unless it is given another.
pub const NAME: &str = "further";

/// The keys of a checkpoint's learner, as the lowest layer of a configuration: not those of the data it was made on, nor
/// of what it began with itself.
pub fn keys(from: &Path) -> anyhow::Result<Table> {
    let from = &newest::checkpoint(from)?;
    let mut table = Checkpoint::read(from)?.config.to_table()?;
    table.retain(|key, _| match role_of(key) {
        Role::Learning | Role::Incidental => true,
        // Whether damaged images are passed over is a habit of those who run it, whatever the data.
        Role::Stream => key == "on_bad_image",
        Role::Origin | Role::Name | Role::Surroundings => false,
    });
    let path = from.to_str().ok_or_else(|| Usage::new("`--from` must be a path that is valid Unicode"))?;
    table.insert("from".into(), Value::from(path));
    Ok(table)
}

/// The runs on record in a run's or a grid's folder, each with its own configuration.
pub fn resume(folder: &Path, flags: &Table, wishes: &Wishes) -> anyhow::Result<Grid> {
    let Wishes { jobs, threads, .. } = *wishes;
    let mut grid = Grid { runs: Vec::new(), folders: Vec::new(), jobs, threads, given: Vec::new() };
    for path in dpcl_report::read::find_paths(&[folder.to_owned()])? {
        let folder = RunFolder::at(&path);
        let mut config = folder.config()?;
        if let Some(Value::String(data)) = flags.get("data_dir") {
            config.settings.data_dir = Some(data.into());
        }
        let setup = config.check()?;
        let title = path.canonicalize().unwrap_or_else(|_| path.clone());
        let title = title.file_name().unwrap_or_default().to_string_lossy().into_owned();
        grid.runs.push(Planned { title, folder, config, setup });
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = parent.map_or_else(|| PathBuf::from("."), PathBuf::from);
        let parent = if path == Path::new(".") { PathBuf::from("..") } else { parent };
        if !grid.folders.contains(&parent) {
            grid.folders.push(parent);
        }
    }
    Ok(grid)
}
