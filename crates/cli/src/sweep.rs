//! Sweeps: keys that are given several values on the command line, of which every combination makes runs of its own.

use dpcl::config::Kind;
use toml::{Table, Value};

use crate::{
    failure::Usage,
    keys,
    layers::{self, lay},
};

/// Far more combinations than anybody runs; a typing error should not ask for a million.
const MOST: usize = 1000;

/// A key with its values.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The key, dotted.
    pub key: String,
    /// Each value as a layer that sets nothing else.
    pub values: Vec<Table>,
}

/// One value of each of some sweeps.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Point {
    /// A layer with these values.
    pub keys: Table,
    /// What tells its runs from those of other points, behind a label; empty where nothing is swept.
    pub suffix: String,
}

impl Sweep {
    /// The values given to a flag; `None` where there is only one.
    pub fn of_flag(key: &str, values: &[Value]) -> Option<Self> {
        let layer = |value: &Value| Table::from_iter([(key.to_owned(), value.clone())]);
        (values.len() > 1).then(|| Self { key: key.to_owned(), values: values.iter().map(layer).collect() })
    }

    /// The values of an assignment such as `lr=0.01,0.001`; `None` where it gives one value, as lists in brackets are, or
    /// the key's values may hold commas themselves.
    pub fn of_assignment(text: &str) -> anyhow::Result<Option<Self>> {
        let Some((key, value)) = text.split_once('=') else { return Ok(None) };
        let parts = apart(value);
        if parts.len() < 2 || layers::is_toml(value) {
            return Ok(None);
        }
        let values = parts
            .iter()
            .map(|part| layers::assignment(&format!("{key}={part}")))
            .collect::<Result<Vec<_>, _>>()?;
        let key = values.first().map(dotted).unwrap_or_default();
        let swept = keys::find(&key).is_some_and(|found| {
            let whole_grid = keys::OF_GRIDS.contains(&found.name) || found.name == "method";
            !matches!(found.kind, Kind::Text | Kind::Path | Kind::Paths) && !whole_grid
        });
        Ok(swept.then_some(Self { key, values }))
    }

    /// Refuses a value that is given twice: both would be the same runs.
    pub fn check(&self) -> anyhow::Result<()> {
        let mut values = self.values.iter().enumerate();
        match values.find(|(place, value)| self.values[..*place].contains(value)) {
            Some((_, value)) => Err(Usage::new(format!("{} is given twice", self.shown(value))).into()),
            None => Ok(()),
        }
    }

    /// `memory=50`: the key without its table, and letters that a folder's name can have.
    fn shown(&self, value: &Table) -> String {
        let name = self.key.rsplit('.').next().unwrap_or(&self.key);
        let text = match innermost(value) {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Float(number)) => number.to_string(),
            Some(value) => value.to_string(),
            None => String::new(),
        };
        let text = text.replace([' ', '[', ']', '"'], "").replace(',', "+").replace(['/', '\\'], "-");
        format!("{name}={text}")
    }
}

/// Every combination, the last sweep's values changing fastest.
pub fn points(sweeps: &[&Sweep]) -> anyhow::Result<Vec<Point>> {
    let count = sweeps.iter().try_fold(1_usize, |count, sweep| count.checked_mul(sweep.values.len()));
    if count.is_none_or(|count| count > MOST) {
        let problem = format!("the values that are given make more than {MOST} combinations");
        return Err(Usage::with_hint(
            problem,
            "give fewer values at a time, each grid with a `--name` of its own",
        )
        .into());
    }
    let mut points = vec![Point::default()];
    for sweep in sweeps {
        let with = |point: &Point, value: &Table| {
            let mut keys = point.keys.clone();
            lay(&mut keys, value.clone());
            Point { keys, suffix: format!("{}-{}", point.suffix, sweep.shown(value)) }
        };
        points = points
            .iter()
            .flat_map(|point| sweep.values.iter().map(move |value| with(point, value)))
            .collect();
    }
    Ok(points)
}

/// The text between commas that stand in no brackets and no quotes.
fn apart(text: &str) -> Vec<&str> {
    let (mut depth, mut quote, mut start) = (0_i32, None, 0);
    let mut parts = Vec::new();
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(letter),
            (None, '[' | '{') => depth += 1,
            (None, ']' | '}') => depth -= 1,
            (None, ',') if depth == 0 => {
                parts.push(text[start..at].trim());
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}

/// The one key that a layer sets, dotted.
pub fn dotted(layer: &Table) -> String {
    match layer.iter().next() {
        Some((key, Value::Table(inner))) => format!("{key}.{}", dotted(inner)),
        Some((key, _)) => key.clone(),
        None => String::new(),
    }
}

fn innermost(layer: &Table) -> Option<&Value> {
    match layer.values().next()? {
        Value::Table(inner) => innermost(inner),
        value => Some(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<(String, Vec<String>)> {
        let sweep = Sweep::of_assignment(text).unwrap()?;
        let shown = sweep.values.iter().map(|value| sweep.shown(value)).collect();
        Some((sweep.key, shown))
    }

    #[test]
    fn several_values_are_a_sweep_and_a_list_is_one_value() {
        let found = |key: &str, shown: &[&str]| {
            Some((key.to_owned(), shown.iter().map(ToString::to_string).collect::<Vec<_>>()))
        };
        assert_eq!(read("lr=0.01,0.001"), found("lr", &["lr=0.01", "lr=0.001"]));
        assert_eq!(read("rate = constant, clib"), found("rate", &["rate=constant", "rate=clib"]));
        assert_eq!(read("dpcl.layers=[0,1],[2]"), found("dpcl.layers", &["layers=0+1", "layers=2"]));
        assert_eq!(read("updates_per_sample=1,2"), found("updates", &["updates=1", "updates=2"]));
        for one in [
            "dpcl.layers=[0,1]",
            "mean=[0.5, 0.5, 0.5]",
            "lr=0.1",
            "label=a,b",
            "split=a,b",
            "no=1,2",
            "seeds=1,2",
            "threads=1,2",
        ] {
            assert_eq!(read(one), None, "{one}");
        }
        assert_eq!(read("method=er,dpcl"), None, "methods are compared, which is a grid already");
    }

    #[test]
    fn every_combination_is_a_point_with_a_suffix_of_its_own() {
        let memory = Sweep::of_flag("memory", &[50.into(), 100.into()]).unwrap();
        let rate = Sweep::of_assignment("lr=0.1,0.2").unwrap().unwrap();
        let found = points(&[&memory, &rate]).unwrap();
        let suffixes: Vec<&str> = found.iter().map(|point| point.suffix.as_str()).collect();
        assert_eq!(
            suffixes,
            ["-memory=50-lr=0.1", "-memory=50-lr=0.2", "-memory=100-lr=0.1", "-memory=100-lr=0.2"]
        );
        assert_eq!(found[3].keys, "memory = 100\nlr = 0.2".parse().unwrap());
        assert_eq!(points(&[]).unwrap(), [Point::default()]);
        assert_eq!(Sweep::of_flag("memory", &[50.into()]), None);
    }

    #[test]
    fn what_nobody_would_run_is_refused() {
        let twice = Sweep::of_flag("memory", &[50.into(), 50.into()]).unwrap();
        assert_eq!(twice.check().unwrap_err().to_string(), "memory=50 is given twice");
        let values: Vec<Value> = (0..200).map(Value::from).collect();
        let many = Sweep::of_flag("memory", &values).unwrap();
        assert!(points(&[&many, &many]).unwrap_err().to_string().contains("more than 1000"));
    }
}
