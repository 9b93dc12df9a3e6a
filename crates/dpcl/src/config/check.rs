//! Which values of the common keys can be run, as far as can be told without data.

use super::Settings;
use crate::{
    device,
    error::{Error, Result},
    memory::Memory,
    model::Architecture,
    rate,
};

/// More threads than any machine this is made for; each costs memory whether it works or not.
const MOST_THREADS: usize = 1024;

impl Settings {
    /// Refuses names nothing has, before anything is built.
    pub(super) fn check_names(&self) -> Result<()> {
        Architecture::named(&self.model, self.width, self.bn_eps, self.bn_momentum)?;
        device::named(&self.device)?;
        if let Some(rate) = &self.rate {
            rate::build(rate, self)?;
        }
        if let Some(scheme) = &self.memory_scheme {
            Memory::new(scheme, 0, self.seed)?;
        }
        Ok(())
    }

    /// Refuses values out of range.
    pub(super) fn check(&self) -> Result<()> {
        self.check_can_be_written()?;
        self.stream().check()?;
        positive("lr", self.lr)?;
        positive("lr_decay", self.lr_decay)?;
        positive("bn_eps", self.bn_eps)?;
        positive("cutmix_alpha", self.cutmix_alpha)?;
        positive("updates", self.updates.unwrap_or(1.0))?;
        share("bn_momentum", self.bn_momentum)?;
        share("cutmix_prob", self.cutmix_prob.unwrap_or(0.0))?;
        match self.batch {
            Some(batch) if batch < 2 || batch % 2 == 1 => {
                let problem = format!("must be an even number of at least 2, not {batch}");
                return Err(Error::bad_key("batch", problem));
            }
            _ => {}
        }
        if self.imp_period == Some(0) {
            return Err(Error::bad_key("imp_period", "must be at least 1"));
        }
        self.check_images()?;
        if self.threads > MOST_THREADS {
            let problem = format!("must be at most {MOST_THREADS}, not {}", self.threads);
            return Err(Error::bad_key("threads", problem));
        }
        let label = self.label.as_deref().unwrap_or_default();
        if label.is_empty() || label.contains(['/', '\\']) || label.starts_with('.') {
            return Err(Error::bad_key("label", "must be a plain name: it becomes a folder"));
        }
        Ok(())
    }

    fn check_images(&self) -> Result<()> {
        if self.size.is_some_and(|size| size < 8) {
            return Err(Error::bad_key("size", "must be at least 8 pixels"));
        }
        if let Some(mean) = self.mean.iter().flatten().find(|mean| !mean.is_finite()) {
            return Err(Error::bad_key("mean", format!("must be three finite numbers, and one is {mean}")));
        }
        for &std in self.std.iter().flatten() {
            positive("std", f64::from(std))?;
        }
        match (self.pad_crop, self.size) {
            (Some(padding), Some(size)) if padding > size => {
                let problem = format!("must be at most the image size, {size}, not {padding}");
                Err(Error::bad_key("pad_crop", problem))
            }
            _ => Ok(()),
        }
    }

    /// Refuses what TOML has no form for, so that a checked configuration can always be recorded.
    fn check_can_be_written(&self) -> Result<()> {
        let counts = [
            ("tasks", Some(self.tasks)),
            ("classes", self.classes),
            ("per_class", self.per_class),
            ("first_tasks", self.first_tasks),
            ("holdout", self.holdout),
            ("width", self.width),
            ("size", self.size),
            ("memory", self.memory),
            ("batch", self.batch),
            ("pad_crop", self.pad_crop),
            ("threads", Some(self.threads)),
        ];
        let counts = counts.map(|(key, count)| (key, count.map(|count| count as u64)));
        let numbers =
            [("seed", Some(self.seed)), ("eval_period", self.eval_period), ("imp_period", self.imp_period)];
        for (key, number) in numbers.into_iter().chain(counts) {
            if number.is_some_and(|number| i64::try_from(number).is_err()) {
                return Err(Error::bad_key(key, format!("must be at most {}", i64::MAX)));
            }
        }
        let paths = [
            ("data_dir", &self.data_dir),
            ("split", &self.split),
            ("weights", &self.weights),
            ("from", &self.from),
        ];
        for (key, path) in paths {
            if path.as_ref().is_some_and(|path| path.to_str().is_none()) {
                return Err(Error::bad_key(key, "must be a path that is valid Unicode"));
            }
        }
        Ok(())
    }
}

fn positive(key: &str, value: f64) -> Result<()> {
    (value > 0.0 && value.is_finite())
        .then_some(())
        .ok_or_else(|| Error::bad_key(key, format!("must be a positive number, not {value}")))
}

fn share(key: &str, value: f64) -> Result<()> {
    (0.0..=1.0)
        .contains(&value)
        .then_some(())
        .ok_or_else(|| Error::bad_key(key, format!("must lie between 0 and 1, not {value}")))
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;

    fn refused(change: impl FnOnce(&mut Settings)) -> String {
        let mut config = Config::default();
        change(&mut config.settings);
        config.resolve().unwrap_err().to_string()
    }

    #[test]
    fn values_that_cannot_be_run_are_refused_by_key() {
        assert!(refused(|settings| settings.std = Some([0.2, 0.0, 0.2])).contains("`std`"));
        assert!(refused(|settings| settings.std = Some([f32::NAN; 3])).contains("`std`"));
        assert!(refused(|settings| settings.mean = Some([0.0, f32::INFINITY, 0.0])).contains("`mean`"));
        assert_eq!(
            refused(|settings| settings.pad_crop = Some(33)),
            "configuration key `pad_crop`: must be at most the image size, 32, not 33"
        );
    }

    #[test]
    fn what_passes_can_be_written() {
        assert!(refused(|settings| settings.seed = u64::MAX).contains("`seed`"));
        assert!(refused(|settings| settings.eval_period = Some(u64::MAX)).contains("`eval_period`"));
        assert!(refused(|settings| settings.memory = Some(usize::MAX)).contains("`memory`"));
        let mut config = Config::default();
        config.settings.seed = i64::MAX as u64;
        assert!(config.resolve().unwrap().to_toml().contains("9223372036854775807"));
    }

    #[cfg(unix)]
    #[test]
    fn paths_must_be_text() {
        use std::os::unix::ffi::OsStringExt as _;
        let path = std::path::PathBuf::from(std::ffi::OsString::from_vec(vec![b'd', 0xff]));
        assert!(refused(|settings| settings.data_dir = Some(path)).contains("`data_dir`"));
    }

    #[test]
    fn other_methods_tables_are_checked_too() {
        let config = Config::from_toml("method = 'er'\n[dpcl]\nno_such_key = 1").unwrap();
        let error = config.resolve().unwrap_err().to_string();
        assert!(error.contains("`dpcl.no_such_key`"), "{error}");
        let config = Config::from_toml("method = 'er'\n[dpcl]\nkappa = 0.2").unwrap();
        assert!(config.resolve().unwrap().sections.is_empty());
    }

    #[test]
    fn what_does_not_go_together_is_found_without_data() {
        let config = Config::from_toml("method = 'dpcl'\ncutmix_prob = 0.5\n[dpcl]\npfi = true").unwrap();
        let error = config.resolve().unwrap_err().to_string();
        assert!(error.contains("`cutmix_prob`"), "{error}");
    }

    #[test]
    fn one_value_has_one_name() {
        let config = Config::from_toml("updates_per_sample = 2.0").unwrap();
        assert_eq!(config.settings.updates, Some(2.0));
        let error = Config::from_toml("updates = 1.0\nupdates_per_sample = 2.0").unwrap_err().to_string();
        assert!(error.contains("`updates_per_sample`") && error.contains("only one"), "{error}");
    }
}
