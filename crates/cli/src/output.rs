//! Where text goes: data to stdout, talk to stderr. Knows terminals, their width and whether they want colour;
//! knows nothing of what is said.
//!
//! What is said may hold names of files and classes, and those may hold anything, orders to a terminal among it. So plain
//! text has its control characters shown; only text whose styles were made here goes out as it is.

use std::{
    borrow::Cow,
    io::{self, IsTerminal, Write},
};

use anyhow::Context;

/// Width assumed where there is no terminal to ask.
const WIDTH: usize = 80;

/// Writes data to stdout: as they are to a file or a program, without control characters to a terminal.
pub fn data(text: &str) -> anyhow::Result<()> {
    styled_data(&if io::stdout().is_terminal() { harmless(text) } else { Cow::Borrowed(text) })
}

/// Writes data whose names are without control characters and that may have styles. A reader that has gone away, such as
/// `head`, is no failure.
pub fn styled_data(text: &str) -> anyhow::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(error).context("cannot write to standard output")
        }
        _ => Ok(()),
    }
}

/// Says a line to the person at the terminal, without control characters.
pub fn talk(line: impl AsRef<str>) {
    styled_talk(harmless(line.as_ref()));
}

/// Says a line whose names are without control characters and that may have styles. There is nobody to tell when that
/// fails.
pub fn styled_talk(line: impl AsRef<str>) {
    let mut stderr = io::stderr().lock();
    let _ = writeln!(stderr, "{}", line.as_ref());
}

/// The text with its control characters shown as `\u{1b}`, line ends and tabs apart.
pub fn harmless(text: &str) -> Cow<'_, str> {
    let harmful = |letter: char| letter.is_control() && letter != '\n' && letter != '\t';
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let show = |letter: char| match harmful(letter) {
        true => letter.escape_unicode().to_string(),
        false => letter.to_string(),
    };
    Cow::Owned(text.chars().map(show).collect())
}

/// Columns of the terminal behind stdout.
pub fn data_width() -> usize {
    columns(&console::Term::stdout())
}

/// Columns of the terminal behind stderr.
pub fn talk_width() -> usize {
    columns(&console::Term::stderr())
}

/// Whether data may carry terminal styles.
pub fn data_colour() -> bool {
    io::stdout().is_terminal() && console::colors_enabled()
}

/// Whether somebody watches stdout on a terminal.
pub fn data_is_watched() -> bool {
    io::stdout().is_terminal()
}

/// Whether somebody watches stderr on a terminal that can redraw lines.
pub fn watched() -> bool {
    io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|kind| kind != "dumb")
}

fn columns(terminal: &console::Term) -> usize {
    terminal.size_checked().map_or(WIDTH, |(_, columns)| usize::from(columns))
}

/// Breaks text at spaces into lines of at most `width` characters; longer words stay whole.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_to_a_terminal_are_shown_and_not_given() {
        assert_eq!(harmless("a\tb\nc – ü"), "a\tb\nc – ü");
        let orders = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{7f}\r";
        let shown = r"\u{1b}]0;owned\u{7}\u{1b}[2J\u{9b}31m\u{7f}\u{d}";
        assert_eq!(harmless(orders), shown);
    }

    #[test]
    fn wrap_breaks_at_spaces_and_keeps_long_words_whole() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("a /very/long/path b", 5), ["a", "/very/long/path", "b"]);
        assert_eq!(wrap("", 5), Vec::<String>::new());
    }
}
