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

/// The first of the most similar names, if any is similar.
pub fn closest(wrong: &str, known: &[impl AsRef<str>]) -> Option<String> {
    let likeness = |key: &str| strsim::jaro_winkler(tail(key), tail(wrong));
    let scored = known.iter().rev().map(|key| (likeness(key.as_ref()), key.as_ref()));
    let close = scored.filter(|(likeness, _)| *likeness > ALIKE);
    close.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, key)| key.to_owned())
}

/// The key without its table.
fn tail(key: &str) -> &str {
    key.rsplit('.').next().unwrap_or(key)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_recognised_and_a_method_s_own_key_found() {
        assert_eq!(meant("memmory", &common_names()).as_deref(), Some("memory"));
        assert_eq!(meant("candidates", &common_names()).as_deref(), Some("mir.candidates"));
        assert_eq!(meant("dpcl.sigma", &["dpcl.heads", "dpcl.sigma_a"]).as_deref(), Some("dpcl.sigma_a"));
        assert_eq!(meant("xyz", &common_names()), None);
    }
}
