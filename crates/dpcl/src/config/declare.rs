//! Structs of keys, declared once.
//!
//! [`keys!`] makes a struct from a list of keys, each with its meaning, type, default and whatever [`Key`] can be told
//! about it. A field may also be a struct of keys itself: its keys then stand beside the others, and its default says
//! what they start from.

use toml::Table;

use super::{
    key::{Key, Standard},
    value::{Kind, Value},
};
use crate::error::{Error, Result};

/// A field of a struct of keys: a value, or a whole group of keys.
pub trait Part {
    /// The keys in it, with its own values as their defaults.
    fn declared(&self, key: Key) -> Vec<Key>;

    /// Takes its values out of a table.
    ///
    /// # Errors
    /// When one is of another kind.
    fn take(&mut self, key: &Key, table: &mut Table) -> Result<()>;

    /// Puts its values into a table.
    ///
    /// # Errors
    /// When TOML has no form for one.
    fn put(&self, key: &Key, table: &mut Table) -> Result<()>;

    /// Refuses values out of range, or that do not go together.
    ///
    /// # Errors
    /// Names the key.
    fn check(&self, key: &Key) -> Result<()>;
}

impl<T: Value> Part for T {
    fn declared(&self, mut key: Key) -> Vec<Key> {
        // A name of something registered is told apart from any text where it is declared.
        if !matches!(key.kind, Kind::Choice(_)) {
            key.kind = T::kind();
        }
        if let (Standard::Nothing, Ok(Some(value))) = (&key.default, self.written()) {
            key.default = Standard::Value(value);
        }
        // As records write it: a whole number may stand for a number.
        let written = |absent: &toml::Value| T::read(absent)?.written().ok()?;
        key.absent = key.absent.map(|absent| written(&absent).unwrap_or(absent));
        vec![key]
    }

    fn take(&mut self, key: &Key, table: &mut Table) -> Result<()> {
        let Some(value) = table.remove(key.name) else { return Ok(()) };
        let problem = || match (T::kind(), value.as_str()) {
            (Kind::Choice(known), Some(name)) => Error::UnknownValue {
                key: key.name.to_owned(),
                name: name.to_owned(),
                known: known.into_iter().map(str::to_owned).collect(),
            },
            (kind, _) => Error::bad_key(key.name, format!("must be {kind}, not {value}")),
        };
        *self = T::read(&value).ok_or_else(problem)?;
        Ok(())
    }

    fn put(&self, key: &Key, table: &mut Table) -> Result<()> {
        if let Some(value) = self.written().map_err(|problem| Error::bad_key(key.name, problem))? {
            table.insert(key.name.to_owned(), value);
        }
        Ok(())
    }

    fn check(&self, key: &Key) -> Result<()> {
        self.written().map_err(|problem| Error::bad_key(key.name, problem))?;
        match self.numbers().into_iter().find(|number| !key.range.holds(*number)) {
            Some(number) => Err(Error::bad_key(key.name, key.range.problem(number))),
            None => Ok(()),
        }
    }
}

/// A struct whose fields are keys.
pub trait Declared {
    /// Each field with what is declared of it.
    fn parts(&self) -> Vec<(Key, &dyn Part)>;

    /// What is refused beyond ranges.
    ///
    /// # Errors
    /// Names the key.
    fn also(&self) -> Result<()>;

    /// Every key, with the present values as defaults.
    fn list(&self) -> Vec<Key> {
        self.parts().into_iter().flat_map(|(key, part)| part.declared(key)).collect()
    }

    /// Refuses values out of range, or that do not go together.
    ///
    /// # Errors
    /// Names the key.
    fn check(&self) -> Result<()> {
        self.parts().into_iter().try_for_each(|(key, part)| part.check(&key))?;
        self.also()
    }

    /// Its keys with their values.
    ///
    /// # Errors
    /// When TOML has no form for a value; not after [`Declared::check`].
    fn table(&self) -> Result<Table> {
        let mut table = Table::new();
        self.parts().into_iter().try_for_each(|(key, part)| part.put(&key, &mut table))?;
        Ok(table)
    }
}

/// A struct of keys that can be read from a table.
pub trait Keys: Declared + Default {
    /// Each field with what is declared of it.
    fn parts_mut(&mut self) -> Vec<(Key, &mut dyn Part)>;

    /// Every key there is, with its default.
    fn keys() -> Vec<Key> {
        Self::default().list()
    }

    /// Reads a table in today's spelling; keys that it lacks have their defaults. Ranges are left to
    /// [`Declared::check`].
    ///
    /// # Errors
    /// When a key is unknown or its value of another kind.
    fn read(mut table: Table) -> Result<Self> {
        let mut keys = Self::default();
        keys.parts_mut().into_iter().try_for_each(|(key, part)| part.take(&key, &mut table))?;
        match table.keys().next() {
            Some(unknown) => {
                let known = Self::keys().iter().map(|key| key.name.to_owned()).collect();
                let inner = table[unknown].as_table().and_then(|table| table.keys().next());
                let key = inner.map_or_else(|| unknown.clone(), |inner| format!("{unknown}.{inner}"));
                Err(Error::UnknownKey { key, known })
            }
            None => Ok(keys),
        }
    }
}

/// Declares a struct of keys. Each field has a doc comment, which is its line of help, a type, a default and what else
/// [`Key`] can be told; fields that are structs of keys are groups, whose keys stand beside the others. `also` names a
/// function that refuses what ranges cannot say.
///
/// ```
/// use dpcl::keys;
///
/// keys! {
///     /// Own keys of `mir`.
///     pub struct MirKeys {
///         /// Stored samples looked at in each step.
///         candidates: usize = 50, at_least(1);
///     }
/// }
/// ```
#[macro_export]
macro_rules! keys {
    (
        $(#[$attribute:meta])*
        $visibility:vis struct $Name:ident {
            $(
                $(#[doc = $help:literal])+
                $field:ident: $type:ty = $default:expr $(, $fact:ident($($argument:expr),*))*;
            )*
        }
        $(also $rule:path;)?
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        $visibility struct $Name {
            $( $(#[doc = $help])+ pub $field: $type, )*
        }

        impl Default for $Name {
            fn default() -> Self {
                Self { $( $field: $default, )* }
            }
        }

        impl $crate::config::Declared for $Name {
            fn parts(&self) -> Vec<($crate::config::Key, &dyn $crate::config::Part)> {
                vec![$(
                    (
                        $crate::config::Key::new(stringify!($field), &[$($help),+])$(.$fact($($argument),*))*,
                        &self.$field as &dyn $crate::config::Part,
                    ),
                )*]
            }

            fn also(&self) -> $crate::error::Result<()> {
                $( $rule(self)?; )?
                Ok(())
            }
        }

        impl $crate::config::Keys for $Name {
            fn parts_mut(&mut self) -> Vec<($crate::config::Key, &mut dyn $crate::config::Part)> {
                vec![$(
                    (
                        $crate::config::Key::new(stringify!($field), &[$($help),+])$(.$fact($($argument),*))*,
                        &mut self.$field as &mut dyn $crate::config::Part,
                    ),
                )*]
            }
        }

        impl $crate::config::Part for $Name {
            fn declared(&self, _group: $crate::config::Key) -> Vec<$crate::config::Key> {
                $crate::config::Declared::list(self)
            }

            fn take(&mut self, _group: &$crate::config::Key, table: &mut toml::Table) -> $crate::error::Result<()> {
                let parts = $crate::config::Keys::parts_mut(self);
                parts.into_iter().try_for_each(|(key, part)| part.take(&key, table))
            }

            fn put(&self, _group: &$crate::config::Key, table: &mut toml::Table) -> $crate::error::Result<()> {
                let parts = $crate::config::Declared::parts(self);
                parts.into_iter().try_for_each(|(key, part)| part.put(&key, table))
            }

            fn check(&self, _group: &$crate::config::Key) -> $crate::error::Result<()> {
                $crate::config::Declared::check(self)
            }
        }
    };
}

pub use keys;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Role;

    keys! {
        /// A group.
        struct Inner {
            /// How many.
            count: usize = 2, at_least(1);
            /// How far
            /// it goes.
            share: f64 = 0.5, named("inner_share"), above(0), at_most(1), absent_as(1);
        }
    }

    keys! {
        /// Keys with a group among them.
        struct Outer {
            /// Whether at all.
            on: bool = true, once(&["enabled"]);
            /// The group.
            inner: Inner = Inner { count: 3, ..Inner::default() };
        }
        also refuse_off_with_many;
    }

    fn refuse_off_with_many(keys: &Outer) -> Result<()> {
        if !keys.on && keys.inner.count > 5 {
            return Err(Error::bad_key("count", "is too much when off"));
        }
        Ok(())
    }

    fn read(text: &str) -> Result<Outer, String> {
        let keys = Outer::read(text.parse().unwrap()).map_err(|error| error.to_string())?;
        Declared::check(&keys).map_err(|error| error.to_string())?;
        Ok(keys)
    }

    #[test]
    fn a_declaration_says_everything_about_its_keys() {
        let keys = Outer::keys();
        let names: Vec<&str> = keys.iter().map(|key| key.name).collect();
        assert_eq!(names, ["on", "count", "inner_share"]);
        assert_eq!(keys[2].help, "How far it goes");
        assert_eq!((keys[1].default_text(), keys[2].default_text()), ("3".into(), "0.5".into()));
        assert_eq!(keys[1].values_text(), "a whole number, at least 1");
        assert_eq!((keys[0].role, keys[0].aliases), (Role::Learning, &["enabled"][..]));
        assert_eq!((&keys[1].absent, &keys[2].absent), (&None, &Some(1.0.into())), "as a record has it");
    }

    #[test]
    fn a_table_is_read_over_the_defaults_of_whoever_holds_the_group() {
        let keys = read("inner_share = 1").unwrap();
        assert_eq!((keys.on, keys.inner.count, keys.inner.share), (true, 3, 1.0));
        let table = keys.table().unwrap();
        assert_eq!(table, "on = true\ncount = 3\ninner_share = 1.0".parse().unwrap());
        assert_eq!(Outer::read(table).unwrap(), keys);
    }

    #[test]
    fn what_cannot_be_read_or_run_is_refused_by_key() {
        let problem = |text| read(text).unwrap_err();
        assert_eq!(
            problem("count = 'many'"),
            "configuration key `count`: must be a whole number, not \"many\""
        );
        assert_eq!(problem("count = 0"), "configuration key `count`: must be at least 1, not 0");
        assert_eq!(problem("share = 1"), "unknown configuration key `share`");
        assert!(problem("on = false\ncount = 6").contains("when off"));
    }
}
