//! How the program was called, for records and for advice that can be typed as it is.

use std::env;

/// The command as a person could give it again.
pub fn command() -> String {
    let arguments = env::args_os().skip(1).map(|argument| quote(&argument.to_string_lossy()));
    std::iter::once("dpcl".to_owned()).chain(arguments).collect::<Vec<_>>().join(" ")
}

/// What stands before a subcommand: `cargo run` where the program was started through it.
pub fn program() -> &'static str {
    if env::var_os("CARGO_PKG_NAME").is_some() { "cargo run --release --" } else { "dpcl" }
}

/// The arguments that were given, with one flag set to another value.
pub fn arguments_with(flag: &str, value: &str) -> String {
    replace(env::args().skip(1), flag, value)
}

fn replace(arguments: impl Iterator<Item = String>, flag: &str, value: &str) -> String {
    let mut kept = Vec::new();
    let mut arguments = arguments;
    while let Some(argument) = arguments.next() {
        if argument == flag {
            arguments.next();
        } else if !argument.starts_with(&format!("{flag}=")) {
            kept.push(quote(&argument));
        }
    }
    kept.extend([flag.to_owned(), quote(value)]);
    kept.join(" ")
}

/// Quotes for a POSIX shell, only where needed. Line breaks become spaces: a command is one line of a record.
fn quote(argument: &str) -> String {
    let argument = argument.replace(['\n', '\r'], " ");
    if argument.contains(char::is_control) {
        return format!("$'{}'", argument.chars().map(in_dollar_quotes).collect::<String>());
    }
    let plain = |letter: char| letter.is_alphanumeric() || "-_=./,:+@%^~".contains(letter);
    if !argument.is_empty() && argument.chars().all(plain) {
        return argument;
    }
    format!("'{}'", argument.replace('\'', r"'\''"))
}

/// A character as shells read it between `$'` and `'`.
fn in_dollar_quotes(letter: char) -> String {
    match letter {
        '\'' | '\\' => format!("\\{letter}"),
        letter if letter.is_ascii_control() => format!("\\x{:02x}", u32::from(letter)),
        letter if letter.is_control() => format!("\\u{:04x}", u32::from(letter)),
        letter => letter.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_is_replaced_wherever_it_stood() {
        let given = |text: &str| text.split(' ').map(String::from).collect::<Vec<_>>().into_iter();
        assert_eq!(replace(given("run --seeds 2 small"), "--seeds", "1..3"), "run small --seeds 1..3");
        assert_eq!(replace(given("run --seeds=2"), "--seeds", "1..3"), "run --seeds 1..3");
        assert_eq!(replace(given("run small"), "--seeds", "1..3"), "run small --seeds 1..3");
    }

    #[test]
    fn only_what_a_shell_would_take_apart_is_quoted() {
        assert_eq!(quote("--seeds=1..3"), "--seeds=1..3");
        assert_eq!(quote("a b"), "'a b'");
        assert_eq!(quote("it's"), r"'it'\''s'");
        assert_eq!(quote(""), "''");
        assert_eq!(quote("a\nb"), "'a b'");
        assert_eq!(quote("k\u{7f}it's\u{9b}"), r"$'k\x7fit\'s\u009b'");
    }
}
