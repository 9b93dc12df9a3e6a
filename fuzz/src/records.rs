//! What a run leaves behind.

use std::{cell::OnceCell, fs, path::{Path, PathBuf}};

use dpcl_report::{read, record::RunResult, seal};

thread_local! {
    static FOLDER: OnceCell<PathBuf> = const { OnceCell::new() };
}

/// An event log.
pub fn events(bytes: &[u8]) {
    let _ = read::parse_events(Path::new("events.jsonl"), bytes);
}

/// A result and the checksum in it.
pub fn result(bytes: &[u8]) {
    if let Ok(result) = serde_json::from_slice::<RunResult>(bytes) {
        let _ = seal::is_whole(&result, bytes, b"", b"");
    }
}

/// A whole record, its three files parted by zeros, and every format of its report.
pub fn record(bytes: &[u8]) {
    FOLDER.with(|folder| {
        let folder = folder.get_or_init(|| {
            let folder = crate::folder().join("er-seed1");
            fs::create_dir(&folder).expect("the folder is new");
            folder
        });
        let mut parts = bytes.splitn(3, |&byte| byte == 0);
        for name in ["config.toml", "events.jsonl", "result.json"] {
            fs::write(folder.join(name), parts.next().unwrap_or_default()).expect("there is room");
        }
        if let Ok(report) = dpcl_report::load(&[folder.clone()]) {
            let _ = (report.terminal(80, false), report.markdown(), report.latex(), report.csv(), report.json());
            let _ = report.html();
        }
    });
}
