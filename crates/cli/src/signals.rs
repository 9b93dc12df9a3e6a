//! Ctrl-C and its relatives: a flag is raised, and whoever works looks at it.

use std::sync::{Arc, atomic::AtomicBool};

use anyhow::Context;
use signal_hook::{consts, flag};

use crate::failure;

#[cfg(unix)]
const STOPPING: &[i32] = &[consts::SIGINT, consts::SIGTERM, consts::SIGHUP];
#[cfg(not(unix))]
const STOPPING: &[i32] = &[consts::SIGINT, consts::SIGTERM];

/// Raises the flag when the process is asked to stop.
pub fn set_on_signal(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    for &signal in STOPPING {
        flag::register(signal, Arc::clone(stop)).context("cannot listen for signals")?;
    }
    Ok(())
}

/// The same, and ends the process at once when asked a second time.
pub fn set_on_signal_then_exit(stop: &Arc<AtomicBool>) -> anyhow::Result<()> {
    for &signal in STOPPING {
        // Registered first, so that it sees the flag as the earlier signal left it.
        flag::register_conditional_shutdown(signal, i32::from(failure::INTERRUPTED), Arc::clone(stop))
            .context("cannot listen for signals")?;
    }
    set_on_signal(stop)
}
