//! The names of a configuration's keys, and which was meant by one that is none of them.

use dpcl::{
    Error, Settings,
    config::{Key, Keys as _},
    methods,
};

use crate::{failure::Usage, meant};

/// Keys that speak about a grid as a whole: a file may set them, what stands for a method in a grid may not.
pub const OF_GRIDS: [&str; 6] = ["seed", "seeds", "threads", "name", "out", "jobs"];

/// Keys common to all methods, then those only grids have.
pub fn known() -> Vec<&'static str> {
    let mut known: Vec<&str> = Settings::keys().into_iter().map(|key| key.name).collect();
    let only_of_grids: Vec<&str> = OF_GRIDS.into_iter().filter(|key| !known.contains(key)).collect();
    known.extend(only_of_grids);
    known
}

/// Says which keys exist, the one that was probably meant first.
pub fn explain_unknown(error: Error) -> anyhow::Error {
    let Error::UnknownKey { key, known: siblings } = &error else { return error.into() };
    let (meant, valid) = match key.split_once('.').filter(|(table, _)| is_section(table)) {
        Some((table, _)) if siblings.is_empty() => {
            (meant::closest(key, &own_keys()), format!("`{table}` has no keys of its own"))
        }
        Some(_) => {
            let meant = meant::closest(key, siblings).or_else(|| meant::closest(key, &own_keys()));
            (meant, format!("valid keys: {}", siblings.join(", ")))
        }
        None => {
            let tables: Vec<&str> = methods::all().iter().map(|info| info.section).collect();
            let tables = tables.join(", ");
            let valid =
                format!("valid keys: {}; tables of a method's own keys: {tables}", known().join(", "));
            (elsewhere(key).or_else(|| meant::closest(key, &all())), valid)
        }
    };
    let hint = meant::asked(meant, Some(valid)).unwrap_or_default();
    Usage::with_hint(error.to_string(), hint).into()
}

/// The declaration of a key, common or, dotted, a method's own.
pub fn find(dotted: &str) -> Option<Key> {
    match dotted.split_once('.') {
        None => Settings::keys().into_iter().find(|key| key.name == dotted),
        Some((table, name)) => {
            let method = methods::all().into_iter().find(|info| info.section == table)?;
            (method.keys.list)().into_iter().find(|key| key.name == name)
        }
    }
}

fn is_section(name: &str) -> bool {
    methods::all().iter().any(|info| info.section == name)
}

/// A method's own key of that name.
fn elsewhere(name: &str) -> Option<String> {
    let has = |info: &&methods::MethodInfo| (info.keys.list)().iter().any(|key| key.name == name);
    methods::all().into_iter().find(has).map(|info| format!("{}.{name}", info.section))
}

/// Every method's own keys, dotted.
fn own_keys() -> Vec<String> {
    let of = |info: &'static methods::MethodInfo| {
        (info.keys.list)().into_iter().map(move |key| format!("{}.{}", info.section, key.name))
    };
    methods::all().into_iter().flat_map(of).collect()
}

fn all() -> Vec<String> {
    known().into_iter().map(str::to_owned).chain(own_keys()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::Failure;

    fn hint(key: &str, known: &[&str]) -> String {
        let known = known.iter().map(ToString::to_string).collect();
        let error = explain_unknown(Error::UnknownKey { key: key.into(), known });
        Failure::from(&error).hints.concat()
    }

    #[test]
    fn keys_of_runs_and_of_grids_are_known() {
        for key in ["method", "eval_period", "blurry_order", "seed", "seeds", "jobs"] {
            assert_eq!(known().into_iter().filter(|known| *known == key).count(), 1, "{key}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_understood() {
        assert!(hint("memmory", &[]).starts_with("did you mean `memory`?"));
        assert!(hint("eval-period", &[]).starts_with("did you mean `eval_period`?"));
        assert!(hint("xyz", &[]).starts_with("valid keys: method, "));
        assert!(
            hint("dpcl.sigma", &["dpcl.heads", "dpcl.sigma_a"]).starts_with("did you mean `dpcl.sigma_a`?")
        );
        assert!(hint("candidates", &[]).starts_with("did you mean `mir.candidates`?"));
        assert!(hint("dpc.heads", &[]).starts_with("did you mean `dpcl.heads`?"));
        assert!(hint("mir.candidate", &["mir.candidates"]).starts_with("did you mean `mir.candidates`?"));
        assert_eq!(hint("er.heads", &[]), "did you mean `dpcl.heads`? `er` has no keys of its own");
    }
}
