//! Which of the names that exist was meant by one that is none of them.

pub use dpcl::config::closest;

/// A hint that begins with what was probably meant.
pub fn asked(meant: Option<String>, hint: Option<String>) -> Option<String> {
    match (meant, hint) {
        (Some(meant), Some(hint)) => Some(format!("did you mean `{meant}`? {hint}")),
        (Some(meant), None) => Some(format!("did you mean `{meant}`?")),
        (None, hint) => hint,
    }
}

/// `1 sample`, `3 samples`, `2 classes`.
pub fn counted(count: usize, noun: &str) -> String {
    let ending = match noun {
        _ if count == 1 => "",
        noun if noun.ends_with('s') => "es",
        _ => "s",
    };
    format!("{count} {noun}{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_begins_with_the_question() {
        assert_eq!(
            asked(Some("er".into()), Some("known: er".into())).unwrap(),
            "did you mean `er`? known: er"
        );
        assert_eq!(asked(None, None), None);
    }
}
