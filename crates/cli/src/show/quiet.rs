//! A terminal that does not write `^C` where bars are drawn: it would move the cursor to another line, and a bar that no
//! longer is where it was drawn cannot be taken away.

#[cfg(unix)]
use std::os::fd::AsFd;

#[cfg(unix)]
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Holds the terminal's modes as they were; they return when it is dropped.
#[cfg(unix)]
pub struct Quiet<T: AsFd = std::io::Stderr> {
    terminal: T,
    modes: Option<Termios>,
}

#[cfg(unix)]
impl<T: AsFd> Quiet<T> {
    /// Quiets a terminal; what is none stays as it is.
    pub fn of(terminal: T) -> Self {
        let modes = tcgetattr(&terminal).ok();
        if let Some(modes) = &modes {
            let mut quiet = modes.clone();
            quiet.local_modes.remove(LocalModes::ECHOCTL);
            // Bars that leave a line behind are no reason to give up.
            let _ = tcsetattr(&terminal, OptionalActions::Now, &quiet);
        }
        Self { terminal, modes }
    }
}

#[cfg(unix)]
impl<T: AsFd> Drop for Quiet<T> {
    fn drop(&mut self) {
        if let Some(modes) = &self.modes {
            let _ = tcsetattr(&self.terminal, OptionalActions::Now, modes);
        }
    }
}

/// Nothing is known of terminals elsewhere.
#[cfg(not(unix))]
pub struct Quiet;

#[cfg(not(unix))]
impl Quiet {
    /// Leaves it as it is.
    pub fn of(_terminal: std::io::Stderr) -> Self {
        Self
    }
}

#[cfg(all(test, unix))]
mod tests {
    use rustix::pty::{OpenptFlags, grantpt, openpt, unlockpt};

    use super::*;

    #[test]
    fn a_terminal_is_quiet_as_long_as_there_are_bars() {
        let terminal = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&terminal).unwrap();
        unlockpt(&terminal).unwrap();
        let writes = || tcgetattr(&terminal).unwrap().local_modes.contains(LocalModes::ECHOCTL);
        assert!(writes());
        let quiet = Quiet::of(&terminal);
        assert!(!writes());
        drop(quiet);
        assert!(writes());
    }
}
