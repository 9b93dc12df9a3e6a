//! The names of a configuration's keys, and which was meant by one that is none of them.

use dpcl::{
    Error, Settings,
    config::{self, Keys as _},
    methods,
};

use crate::failure::Usage;

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
    let of_a_method = key.contains('.');
    let valid = if of_a_method {
        format!("valid keys: {}", siblings.join(", "))
    } else {
        let tables: Vec<&str> = methods::all().iter().map(|info| info.section).collect();
        let known = known().join(", ");
        format!("valid keys: {known}; tables of a method's own keys: {}", tables.join(", "))
    };
    let meant = if of_a_method { config::meant(key, siblings) } else { config::meant(key, &known()) };
    let hint = match meant {
        Some(meant) => format!("did you mean `{meant}`? {valid}"),
        None => valid,
    };
    Usage::with_hint(error.to_string(), hint).into()
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
    }
}
