//! Values worked out from something that changes. A value is kept with the key it was worked out for, so that it cannot
//! be used for another: there is no call to forget it, and none to be forgotten.

use std::sync::{Arc, Mutex, PoisonError};

/// The last value worked out, and for which key.
pub struct Cache<K, T>(Mutex<Option<(K, Arc<T>)>>);

impl<K, T> Default for Cache<K, T> {
    fn default() -> Self {
        Self(Mutex::new(None))
    }
}

impl<K: PartialEq, T> Cache<K, T> {
    /// The value for `key`, worked out by `make` unless it is the one that is kept.
    pub fn get(&self, key: K, make: impl FnOnce() -> T) -> Arc<T> {
        // A panic in `make` leaves what was kept before, which its key still describes.
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match &*kept {
            Some((old, value)) if *old == key => Arc::clone(value),
            _ => {
                let value = Arc::new(make());
                *kept = Some((key, Arc::clone(&value)));
                value
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_worked_out_once_a_key() {
        let (cache, mut made) = (Cache::default(), 0);
        for key in [1, 1, 2, 2, 1] {
            let value = cache.get(key, || {
                made += 1;
                key * 10
            });
            assert_eq!(*value, key * 10);
        }
        assert_eq!(made, 3);
    }
}
