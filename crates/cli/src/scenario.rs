//! The scenario that N and M stand for. The i-Blurry family of programs names a scenario by these two alone: all
//! classes disjoint, none, or some. Knows layers of keys, not where they came from.

use toml::{Table, Value};

use crate::failure::Usage;

/// The scenario meant by `n` and `m` where no layer over them names one; `None` where they leave it as it is.
pub fn inferred(below: &Table, above: &Table) -> anyhow::Result<Option<&'static str>> {
    if above.contains_key("scenario") {
        return Ok(None);
    }
    let known = below.get("scenario");
    // Numbers beside a named scenario belong to it and name no other.
    let unnamed = known.is_none().then_some(below);
    let find = |key| number(above, key).or_else(|| number(unnamed?, key));
    let known = known.and_then(Value::as_str);
    match (find("n"), find("m")) {
        (Some(n), _) if n >= 100.0 => Ok(Some("disjoint")),
        (Some(n), _) if n <= 0.0 => Ok(Some("blurry")),
        (Some(_), _) => Ok(Some("i-blurry")),
        (None, Some(_)) if !known.is_some_and(|scenario| scenario.contains("blurry")) => {
            Err(Usage::with_hint(
                format!("`m` says nothing about the scenario `{}`", known.unwrap_or("disjoint")),
                "add `n` (per cent of disjoint classes), or name the scenario `blurry`",
            )
            .into())
        }
        _ => Ok(None),
    }
}

fn number(table: &Table, key: &str) -> Option<f64> {
    match table.get(key)? {
        Value::Integer(number) => Some(*number as f64),
        Value::Float(number) => Some(*number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn infer(below: &str, above: &str) -> Option<&'static str> {
        inferred(&below.parse().unwrap(), &above.parse().unwrap()).unwrap()
    }

    #[test]
    fn numbers_name_a_scenario_from_any_layer() {
        assert_eq!(infer("scenario = 'disjoint'", "n = 50\nm = 10"), Some("i-blurry"));
        assert_eq!(infer("n = 50.0\nm = 10.0", ""), Some("i-blurry"));
        assert_eq!(infer("n = 50.0", "m = 10"), Some("i-blurry"));
        assert_eq!(infer("", "n = 0\nm = 10"), Some("blurry"));
        assert_eq!(infer("", "n = 100"), Some("disjoint"));
        assert_eq!(infer("", ""), None);
    }

    #[test]
    fn a_named_scenario_keeps_the_numbers_beside_it() {
        assert_eq!(infer("scenario = 'rm-blurry'\nn = 50\nm = 10", ""), None);
        assert_eq!(infer("scenario = 'i-blurry'\nn = 50", "m = 30"), None);
        assert_eq!(infer("scenario = 'disjoint'", "scenario = 'superclass'\nn = 50"), None);
    }

    #[test]
    fn mixing_alone_is_refused_where_nothing_is_mixed() {
        for (below, above) in [("scenario = 'disjoint'", "m = 10"), ("m = 10", "")] {
            assert!(inferred(&below.parse().unwrap(), &above.parse().unwrap()).is_err());
        }
    }
}
