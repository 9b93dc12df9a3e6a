//! The names of a configuration's keys, taken from the type that reads them, so that no list can fall behind it.

use dpcl::Settings;
use serde::{Deserialize, Deserializer, de};

/// Keys that speak about a grid as a whole: a file may set them, what stands for a method in a grid may not.
pub const OF_GRIDS: [&str; 6] = ["seed", "seeds", "threads", "name", "out", "jobs"];

/// Keys common to all methods, then those only grids have.
pub fn known() -> Vec<&'static str> {
    let mut fields = Fields(&[]);
    // Reading always fails: it only goes as far as asking for the fields.
    let _ = Settings::deserialize(&mut fields);
    let only_of_grids = OF_GRIDS.into_iter().filter(|key| !fields.0.contains(key));
    fields.0.iter().copied().chain(only_of_grids).collect()
}

/// The key that was probably meant.
pub fn closest(wrong: &str) -> Option<&'static str> {
    let scored = known().into_iter().map(|key| (strsim::jaro_winkler(key, wrong), key));
    let close = scored.filter(|(likeness, _)| *likeness > 0.85);
    close.max_by(|one, other| one.0.total_cmp(&other.0)).map(|(_, key)| key)
}

/// A source of nothing that remembers which fields it was asked for.
struct Fields(&'static [&'static str]);

impl<'de> Deserializer<'de> for &mut Fields {
    type Error = de::value::Error;

    fn deserialize_any<V: de::Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Self::Error> {
        Err(de::Error::custom("only fields are read here"))
    }

    fn deserialize_struct<V: de::Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Self::Error> {
        self.0 = fields;
        self.deserialize_any(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_runs_and_of_grids_are_known() {
        for key in ["method", "eval_period", "blurry_order", "seed", "seeds", "jobs"] {
            assert_eq!(known().into_iter().filter(|known| *known == key).count(), 1, "{key}");
        }
    }

    #[test]
    fn a_slip_of_the_pen_is_understood() {
        assert_eq!(closest("memmory"), Some("memory"));
        assert_eq!(closest("eval-period"), Some("eval_period"));
        assert_eq!(closest("xyz"), None);
    }
}
