//! What classes are called: any strings or integers.

use std::fmt;

use serde::{Deserialize, Serialize};

/// What a class is called.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Label {
    /// A number.
    Number(i64),
    /// A name.
    Name(String),
}

impl Label {
    /// A label that is a class number, as an index.
    pub fn number(&self) -> Option<usize> {
        match self {
            Self::Number(number) => usize::try_from(*number).ok(),
            Self::Name(_) => None,
        }
    }
}

impl fmt::Display for Label {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(formatter),
            Self::Name(name) => name.fmt(formatter),
        }
    }
}

impl From<&str> for Label {
    fn from(name: &str) -> Self {
        Self::Name(name.to_owned())
    }
}

impl From<String> for Label {
    fn from(name: String) -> Self {
        Self::Name(name)
    }
}

impl From<i64> for Label {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}

impl From<i32> for Label {
    fn from(number: i32) -> Self {
        Self::Number(number.into())
    }
}

impl From<u32> for Label {
    fn from(number: u32) -> Self {
        Self::Number(number.into())
    }
}

impl From<usize> for Label {
    fn from(number: usize) -> Self {
        Self::Number(number as i64)
    }
}
