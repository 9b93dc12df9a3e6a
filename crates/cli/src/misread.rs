//! Arguments that cannot be read: what the parser says of them, in words for people who do not write programs.

use clap::error::ErrorKind;

use crate::output;

/// What parsers of numbers say, and what that means.
const WORDS: [(&str, &str); 7] = [
    ("invalid digit found in string", "must be a whole number"),
    ("cannot parse integer from empty string", "must be a whole number"),
    ("number too large to fit in target type", "is too large"),
    ("number too small to fit in target type", "is too small"),
    ("invalid float literal", "must be a number"),
    ("cannot parse float from empty string", "must be a number"),
    (" is not in 0..=4294967295", " must be a whole number up to 4294967295"),
];

/// Tells it and ends the process, with 2 for what is wrong and 0 for help that was asked for.
pub fn refuse(error: &clap::Error) -> ! {
    if error.kind() != ErrorKind::ValueValidation {
        error.exit();
    }
    let rendered = error.render();
    let colour = console::colors_enabled_stderr();
    let text = if colour { rendered.ansi().to_string() } else { rendered.to_string() };
    output::talk(plain(&text).trim_end());
    std::process::exit(error.exit_code());
}

fn plain(text: &str) -> String {
    WORDS.iter().fold(text.to_owned(), |text, (said, meant)| text.replace(said, meant))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_asked_for_in_plain_words() {
        let told = |value: &str| {
            let command = clap::Command::new("toy")
                .arg(clap::Arg::new("count").value_parser(clap::value_parser!(u32)))
                .arg(clap::Arg::new("share").value_parser(clap::value_parser!(f64)));
            let arguments = ["toy"].into_iter().chain(value.split(' '));
            plain(&command.try_get_matches_from(arguments).unwrap_err().to_string())
        };
        assert!(told("x").contains("must be a whole number"), "{}", told("x"));
        assert!(told("5000000000").contains("must be a whole number up to"), "{}", told("5000000000"));
        assert!(told("1 x").contains("must be a number"), "{}", told("1 x"));
    }
}
