//! A terminal that does not write `^C` where bars are drawn: it would move the cursor to another line, and a bar that no
//! longer is where it was drawn cannot be taken away.

#[cfg(unix)]
use rustix::termios::{LocalModes, OptionalActions, Termios, tcgetattr, tcsetattr};

/// Holds the terminal's modes as they were; they return when it is dropped.
pub struct Quiet {
    #[cfg(unix)]
    modes: Option<Termios>,
}

impl Quiet {
    /// Quiets the terminal behind stderr, if there is one.
    #[cfg(unix)]
    pub fn terminal() -> Self {
        let modes = tcgetattr(std::io::stderr()).ok();
        if let Some(modes) = &modes {
            let mut quiet = modes.clone();
            quiet.local_modes.remove(LocalModes::ECHOCTL);
            // Bars that leave a line behind are no reason to give up.
            let _ = tcsetattr(std::io::stderr(), OptionalActions::Now, &quiet);
        }
        Self { modes }
    }

    /// Nothing is known of terminals here.
    #[cfg(not(unix))]
    pub fn terminal() -> Self {
        Self {}
    }
}

#[cfg(unix)]
impl Drop for Quiet {
    fn drop(&mut self) {
        if let Some(modes) = &self.modes {
            let _ = tcsetattr(std::io::stderr(), OptionalActions::Now, modes);
        }
    }
}
