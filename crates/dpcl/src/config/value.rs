//! Kinds of values that keys take, and how each is read from TOML and written to it.

use std::{fmt, path::PathBuf};

/// What a key's value is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `true` or `false`.
    Switch,
    /// A whole number, not negative.
    Count,
    /// A number.
    Number,
    /// A text.
    Text,
    /// A path.
    Path,
    /// Any number of paths.
    Paths,
    /// So many numbers.
    Numbers(usize),
    /// Any number of whole numbers.
    Counts,
    /// One of these names.
    Choice(Vec<&'static str>),
}

impl fmt::Display for Kind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch => formatter.write_str("true or false"),
            Self::Count => formatter.write_str("a whole number"),
            Self::Number => formatter.write_str("a number"),
            Self::Text => formatter.write_str("a text"),
            Self::Path => formatter.write_str("a path"),
            Self::Paths => formatter.write_str("a list of paths"),
            Self::Numbers(count) => write!(formatter, "{count} numbers"),
            Self::Counts => formatter.write_str("a list of whole numbers"),
            Self::Choice(names) => write!(formatter, "one of {}", names.join(", ")),
        }
    }
}

/// A value that a key can have.
pub trait Value: Sized {
    /// What it is.
    fn kind() -> Kind;

    /// Reads it; none where TOML holds something else.
    fn read(value: &toml::Value) -> Option<Self>;

    /// Writes it, if there is something to write.
    ///
    /// # Errors
    /// What TOML has no form for.
    fn written(&self) -> Result<Option<toml::Value>, String>;

    /// The numbers in it, which a range is about.
    fn numbers(&self) -> Vec<f64> {
        Vec::new()
    }
}

impl Value for bool {
    fn kind() -> Kind {
        Kind::Switch
    }

    fn read(value: &toml::Value) -> Option<Self> {
        value.as_bool()
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        Ok(Some((*self).into()))
    }
}

impl Value for u64 {
    fn kind() -> Kind {
        Kind::Count
    }

    fn read(value: &toml::Value) -> Option<Self> {
        value.as_integer()?.try_into().ok()
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        let number = i64::try_from(*self).map_err(|_| format!("must be at most {}", i64::MAX))?;
        Ok(Some(number.into()))
    }

    fn numbers(&self) -> Vec<f64> {
        vec![*self as f64]
    }
}

impl Value for usize {
    fn kind() -> Kind {
        Kind::Count
    }

    fn read(value: &toml::Value) -> Option<Self> {
        value.as_integer()?.try_into().ok()
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        (*self as u64).written()
    }

    fn numbers(&self) -> Vec<f64> {
        vec![*self as f64]
    }
}

impl Value for f64 {
    fn kind() -> Kind {
        Kind::Number
    }

    fn read(value: &toml::Value) -> Option<Self> {
        value.as_float().or_else(|| value.as_integer().map(|number| number as Self))
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        Ok(Some((*self).into()))
    }

    fn numbers(&self) -> Vec<f64> {
        vec![*self]
    }
}

impl Value for String {
    fn kind() -> Kind {
        Kind::Text
    }

    fn read(value: &toml::Value) -> Option<Self> {
        value.as_str().map(str::to_owned)
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        Ok(Some(self.as_str().into()))
    }
}

impl Value for PathBuf {
    fn kind() -> Kind {
        Kind::Path
    }

    fn read(value: &toml::Value) -> Option<Self> {
        value.as_str().map(Self::from)
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        let text = self.to_str().ok_or("must be a path that is valid Unicode")?;
        Ok(Some(text.into()))
    }
}

impl Value for Vec<PathBuf> {
    fn kind() -> Kind {
        Kind::Paths
    }

    fn read(value: &toml::Value) -> Option<Self> {
        value.as_array()?.iter().map(PathBuf::read).collect()
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        let paths: Result<Vec<_>, _> = self.iter().map(Value::written).collect();
        let paths: Vec<toml::Value> = paths?.into_iter().flatten().collect();
        // None is what a record without the key says.
        Ok((!paths.is_empty()).then(|| paths.into()))
    }
}

impl<const COUNT: usize> Value for [f64; COUNT] {
    fn kind() -> Kind {
        Kind::Numbers(COUNT)
    }

    fn read(value: &toml::Value) -> Option<Self> {
        let numbers: Option<Vec<f64>> = value.as_array()?.iter().map(f64::read).collect();
        numbers?.try_into().ok()
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        Ok(Some(self.to_vec().into()))
    }

    fn numbers(&self) -> Vec<f64> {
        self.to_vec()
    }
}

impl<const COUNT: usize> Value for [f32; COUNT] {
    fn kind() -> Kind {
        Kind::Numbers(COUNT)
    }

    fn read(value: &toml::Value) -> Option<Self> {
        <[f64; COUNT]>::read(value).map(|numbers| numbers.map(|number| number as f32))
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        self.map(f64::from).written()
    }

    fn numbers(&self) -> Vec<f64> {
        self.map(f64::from).to_vec()
    }
}

impl Value for Vec<usize> {
    fn kind() -> Kind {
        Kind::Counts
    }

    fn read(value: &toml::Value) -> Option<Self> {
        value.as_array()?.iter().map(usize::read).collect()
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        let numbers: Result<Vec<_>, _> = self.iter().map(Value::written).collect();
        Ok(Some(numbers?.into_iter().flatten().collect::<Vec<_>>().into()))
    }

    fn numbers(&self) -> Vec<f64> {
        self.iter().map(|&number| number as f64).collect()
    }
}

impl<T: Value> Value for Option<T> {
    fn kind() -> Kind {
        T::kind()
    }

    fn read(value: &toml::Value) -> Option<Self> {
        T::read(value).map(Some)
    }

    fn written(&self) -> Result<Option<toml::Value>, String> {
        self.as_ref().map_or(Ok(None), Value::written)
    }

    fn numbers(&self) -> Vec<f64> {
        self.as_ref().map(Value::numbers).unwrap_or_default()
    }
}

/// Gives an enum the names it has in configurations, the present one first: `choices!(Lag: Iteration = "iteration", …)`.
/// Does not compile where a variant is left out.
macro_rules! choices {
    ($Name:ty: $($Variant:ident = $name:literal $(| $old:literal)*),+ $(,)?) => {
        impl $Name {
            /// As in configurations and records.
            pub fn name(self) -> &'static str {
                match self {
                    $( Self::$Variant => $name, )+
                }
            }
        }

        impl $crate::config::Value for $Name {
            fn kind() -> $crate::config::Kind {
                $crate::config::Kind::Choice(vec![$( $name ),+])
            }

            fn read(value: &toml::Value) -> Option<Self> {
                match value.as_str()? {
                    $( $name $(| $old)* => Some(Self::$Variant), )+
                    _ => None,
                }
            }

            fn written(&self) -> Result<Option<toml::Value>, String> {
                Ok(Some(self.name().into()))
            }
        }
    };
}

pub(crate) use choices;
