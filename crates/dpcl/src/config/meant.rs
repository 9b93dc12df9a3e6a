//! Which key was probably meant by a name that no key has.

use super::{Keys, Settings};
use crate::methods;

/// How alike two names must be for one to be taken for a slip of the other.
const ALIKE: f64 = 0.85;

/// The key that was probably meant, dotted, where one is near; `known` are the keys that the name's table may have.
pub fn meant(name: &str, known: &[impl AsRef<str>]) -> Option<String> {
    let own = if name.contains('.') { None } else { own_key(name) };
    own.or_else(|| closest(name, known))
}

/// Every key of a configuration's own level: keys common to all methods, then the tables of methods' own keys.
pub fn common_names() -> Vec<&'static str> {
    let mut names: Vec<&str> = Settings::keys().into_iter().map(|key| key.name).collect();
    names.extend(methods::section_names());
    names
}

/// A method's own key of that name.
fn own_key(name: &str) -> Option<String> {
    let has = |info: &&methods::MethodInfo| (info.keys.list)().iter().any(|key| key.name == name);
    methods::all().into_iter().find(has).map(|info| format!("{}.{name}", info.section))
}

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
    fn a_slip_is_recognised_and_a_method_s_own_key_found() {
        assert_eq!(meant("memmory", &common_names()).as_deref(), Some("memory"));
        assert_eq!(meant("candidates", &common_names()).as_deref(), Some("mir.candidates"));
        assert_eq!(meant("dpcl.sigma", &["dpcl.heads", "dpcl.sigma_a"]).as_deref(), Some("dpcl.sigma_a"));
        assert_eq!(meant("xyz", &common_names()), None);
    }
}
