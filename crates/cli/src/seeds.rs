//! Seeds as people write them: `7`, `1,2,5` or `1..3` with both ends included.

use std::str::FromStr;

use toml::Value;

/// A list of seeds, in the order given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seeds(pub Vec<u64>);

/// Far more than anybody runs; a typing error should not ask for a billion runs.
const MOST: usize = 1000;

impl FromStr for Seeds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let mut seeds = Vec::new();
        for part in text.split(',').map(str::trim) {
            match part.split_once("..") {
                None => seeds.push(number(part)?),
                Some((first, last)) => {
                    let (first, last) = (number(first)?, number(last.trim_start_matches('='))?);
                    if last < first {
                        return Err(format!("`{part}` goes backwards"));
                    }
                    if last - first >= MOST as u64 {
                        return Err(format!("`{part}` is more than {MOST} seeds"));
                    }
                    seeds.extend(first..=last);
                }
            }
        }
        Self(seeds).checked()
    }
}

impl Seeds {
    /// Reads the value of the `seeds` key: a number, a list of numbers or the written form.
    pub fn of_value(value: &Value) -> Result<Self, String> {
        let whole = |value: &Value| {
            let number = value.as_integer().and_then(|number| u64::try_from(number).ok());
            number.ok_or_else(|| format!("`{value}` is not a seed: seeds are whole numbers from 0"))
        };
        match value {
            Value::String(text) => text.parse(),
            Value::Array(list) => Self(list.iter().map(whole).collect::<Result<_, _>>()?).checked(),
            value => Ok(Self(vec![whole(value)?])),
        }
    }

    fn checked(self) -> Result<Self, String> {
        for (position, seed) in self.0.iter().enumerate() {
            if self.0[..position].contains(seed) {
                return Err(format!("seed {seed} is given twice"));
            }
        }
        match self.0.len() {
            0 => Err("no seed is given".into()),
            count if count > MOST => Err(format!("{count} seeds are more than {MOST}")),
            _ => Ok(self),
        }
    }
}

/// TOML has no whole numbers beyond 63 bits, so neither have seeds.
fn number(text: &str) -> Result<u64, String> {
    let number = text.trim().parse::<u64>().ok().filter(|&number| i64::try_from(number).is_ok());
    number.ok_or_else(|| format!("`{text}` is not a seed: write `7`, `1,2,5` or `1..3`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_include_both_ends() {
        assert_eq!("1..3".parse(), Ok(Seeds(vec![1, 2, 3])));
        assert_eq!("5,1..2".parse(), Ok(Seeds(vec![5, 1, 2])));
        assert_eq!("7".parse(), Ok(Seeds(vec![7])));
    }

    #[test]
    fn nonsense_is_refused_with_the_reason() {
        for (text, reason) in [
            ("3..1", "backwards"),
            ("1,1", "twice"),
            ("x", "not a seed"),
            ("", "not a seed"),
            ("1..9999999", "more than"),
            ("18446744073709551615", "not a seed"),
        ] {
            let error = text.parse::<Seeds>().unwrap_err();
            assert!(error.contains(reason), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_may_hold_a_number_a_list_or_the_written_form() {
        assert_eq!(Seeds::of_value(&Value::Integer(4)), Ok(Seeds(vec![4])));
        assert_eq!(Seeds::of_value(&Value::from(vec![1, 2])), Ok(Seeds(vec![1, 2])));
        assert_eq!(Seeds::of_value(&Value::from("1..2")), Ok(Seeds(vec![1, 2])));
        assert!(Seeds::of_value(&Value::Integer(-1)).is_err());
    }
}
