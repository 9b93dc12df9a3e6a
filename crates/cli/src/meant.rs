//! Which of the names that exist was meant by one that is none of them.

/// How alike two names are from which one may be a slip of the other, 0 to 1.
const ALIKE: f64 = 0.85;

/// The first of the most similar names, if any is similar. Of names in tables, the table counts as much as the rest.
pub fn closest(wrong: &str, known: &[impl AsRef<str>]) -> Option<String> {
    let plain = |name: &str| name.to_lowercase().replace('-', "_");
    let wrong = plain(wrong);
    let likeness = |name: &str| match (wrong.split_once('.'), name.split_once('.')) {
        (Some((table, key)), Some((of, name))) => {
            let [tables, keys] =
                [(table, of), (key, name)].map(|(one, other)| strsim::jaro_winkler(one, other));
            // A right key in a wrong table is close whatever the table is called.
            if keys == 1.0 { 0.9 + tables / 10.0 } else { tables.min(keys) }
        }
        (None, Some((_, name))) => strsim::jaro_winkler(name, &wrong),
        _ => strsim::jaro_winkler(name, &wrong),
    };
    let scored = known.iter().rev().map(|name| (likeness(&plain(name.as_ref())), name.as_ref()));
    let close = scored.filter(|(likeness, _)| *likeness > ALIKE);
    close.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, name)| name.to_owned())
}

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
    fn a_slip_is_close_and_another_word_is_not() {
        let names = ["er", "er-ace", "dpcl", "finetune"];
        assert_eq!(closest("finetun", &names).as_deref(), Some("finetune"));
        assert_eq!(closest("ER_ACE", &names).as_deref(), Some("er-ace"));
        assert_eq!(closest("gdumb", &names), None);
        let keys = ["dpcl.heads", "dpcl.sigma_a", "mir.candidates"];
        assert_eq!(closest("dpc.heads", &keys).as_deref(), Some("dpcl.heads"));
        assert_eq!(closest("er.heads", &keys).as_deref(), Some("dpcl.heads"));
        assert_eq!(closest("dpcl.head", &keys).as_deref(), Some("dpcl.heads"));
        assert_eq!(closest("dpcl.width", &keys), None);
    }

    #[test]
    fn a_hint_begins_with_the_question() {
        assert_eq!(
            asked(Some("er".into()), Some("known: er".into())).unwrap(),
            "did you mean `er`? known: er"
        );
        assert_eq!(asked(None, None), None);
    }
}
