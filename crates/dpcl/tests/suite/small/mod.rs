//! Runs as small as they get, on the built-in images or on a folder of plain grey ones.

#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses some of it, and a test may fail")]

use std::{fs, path::Path, sync::atomic::AtomicBool};

use dpcl::{Config, Image, Run, Watch, data};
use dpcl_report::record::{Event, RunResult};

/// Side of the images of a folder.
pub const SIDE: usize = 16;

/// A little of everything that decides how long a run takes.
pub const QUICK: &str =
    "model = 'slim'\nwidth = 4\nupdates = 1.0\nautoaugment = 'none'\nthreads = 1\neval_period = 0\n";

/// An image of one grey.
pub fn plain(side: usize, value: u8) -> Image {
    Image { height: side, width: side, pixels: vec![value; side * side * 3].into() }
}

/// Two classes, dark and light, of `train` training images and three test images each; sizes differ.
pub fn folder(root: &Path, train: u8) {
    for (class, value) in [("dark", 20), ("light", 200)] {
        for (half, count) in [("train", train), ("test", 3)] {
            let folder = root.join(half).join(class);
            fs::create_dir_all(&folder).unwrap();
            for copy in 0..count {
                let image = plain(12 + 4 * usize::from(copy % 3), value + copy);
                fs::write(folder.join(format!("{copy:02}.png")), data::png(&image)).unwrap();
            }
        }
    }
}

/// A run on such a folder.
pub fn folder_config(root: &Path, more: &str) -> Config {
    let text = format!("{QUICK}dataset = 'folder'\nsize = {SIDE}\ntasks = 2\nmemory = 8\nbatch = 4\n{more}");
    let mut config = Config::from_toml(&text).unwrap();
    config.settings.data_dir = Some(root.to_owned());
    config
}

/// A run with what it wrote down; `during` is called with every event before it is kept.
pub fn record(config: &Config, mut during: impl FnMut(&Event)) -> (Vec<Event>, dpcl::Result<RunResult>) {
    let run = Run::open(config).unwrap();
    let mut events = Vec::new();
    let mut keep = |event: &Event| {
        during(event);
        events.push(event.clone());
        Ok(())
    };
    let stop = AtomicBool::new(false);
    let mut watch =
        Watch { event: &mut keep, progress: &mut |_| {}, keep: &mut |_, _, _| Ok(()), stop: &stop };
    let result = run.execute(&mut watch);
    (events, result)
}

/// The whole chain of causes, as the command line shows it.
pub fn told(error: &dyn std::error::Error) -> String {
    let source = error.source().map(|source| format!(": {}", told(source))).unwrap_or_default();
    format!("{error}{source}")
}

/// A run on the built-in images.
pub fn built_in(more: &str) -> Config {
    Config::from_toml(&format!("{QUICK}{more}")).unwrap()
}

/// A run that must come to its end.
pub fn finished(config: &Config) -> (Vec<Event>, RunResult) {
    let (events, result) = record(config, |_| {});
    (events, result.unwrap())
}
