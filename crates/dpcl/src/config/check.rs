//! What is refused beyond ranges, as far as can be told without data.

use super::Setup;
use crate::{
    device,
    error::{Error, Result},
    learner::AverageStatistics,
    memory::Memory,
    method::Knowledge,
    rate,
};

impl Setup {
    /// Refuses names nothing has, before anything is built.
    pub(super) fn check_names(&self) -> Result<()> {
        self.architecture()?;
        device::named(&self.device)?;
        rate::build(self)?;
        Memory::new(&self.memory_scheme, 0, self.seed)?;
        Ok(())
    }

    /// Refuses values that are in range and still cannot be run.
    pub(super) fn refuse_what_does_not_go_together(&self) -> Result<()> {
        self.stream().check()?;
        if self.batch % 2 == 1 {
            let problem = format!("must be an even number of at least 2, not {}", self.batch);
            return Err(Error::bad_key("batch", problem));
        }
        if self.pad_crop > self.size {
            let problem = format!("must be at most the image size, {}, not {}", self.size, self.pad_crop);
            return Err(Error::bad_key("pad_crop", problem));
        }
        if !super::is_plain_name(&self.label) {
            return Err(Error::bad_key("label", "must be a plain name: it becomes a folder"));
        }
        if !self.test_dirs.is_empty() && self.from.is_none() {
            let problem = "test what a learner knew before, so they need a learner to begin with: `--from`";
            return Err(Error::bad_key("test_dirs", problem));
        }
        if self.from.is_some() && self.method.knowledge == Knowledge::TaskIds {
            return Err(Error::FromWithTasks { method: self.method.name.to_owned() });
        }
        if self.rebuild && self.method.knowledge == Knowledge::None {
            let problem =
                format!("needs a method that is told where tasks end, and `{}` is not", self.method.name);
            return Err(Error::bad_key("rebuild", problem));
        }
        let measured = self.average_statistics == AverageStatistics::Memory;
        if measured && (self.average == 0 || self.memory_scheme == "none") {
            let problem = format!(
                "`memory` needs an average and a memory; `average` is {} and `memory_scheme` is `{}`",
                self.average, self.memory_scheme
            );
            return Err(Error::bad_key("average_statistics", problem));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Settings};
    use crate::{learner::AverageStatistics, memory::SCHEMES, rate::RATES};

    fn refused(change: impl FnOnce(&mut Settings)) -> String {
        let mut config = Config::default();
        change(&mut config.settings);
        config.check().unwrap_err().to_string()
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
        assert_eq!(
            refused(|settings| settings.n = 120.0),
            "configuration key `n`: must be between 0 and 100, not 120"
        );
        assert!(refused(|settings| settings.m = f64::NAN).contains("`m`"));
        assert!(refused(|settings| settings.tasks = Some(0)).contains("`tasks`"));
        assert!(refused(|settings| settings.per_class = Some(0)).contains("`per_class`"));
        assert!(refused(|settings| settings.holdout = Some(0)).contains("`holdout`"));
        let measured = |average| {
            refused(|settings| {
                (settings.average, settings.average_statistics) = (Some(average), AverageStatistics::Memory);
                settings.memory_scheme = (average > 0).then(|| "none".into());
            })
        };
        assert!(measured(0).contains("`average` is 0"), "{}", measured(0));
        assert!(measured(10).contains("`memory_scheme` is `none`"), "{}", measured(10));
    }

    #[test]
    fn what_passes_can_be_written() {
        assert!(refused(|settings| settings.seed = u64::MAX).contains("`seed`"));
        assert!(refused(|settings| settings.eval_period = Some(u64::MAX)).contains("`eval_period`"));
        assert!(refused(|settings| settings.memory = Some(usize::MAX)).contains("`memory`"));
        let mut config = Config::default();
        config.settings.seed = i64::MAX as u64;
        assert!(config.check().unwrap().to_toml().contains("9223372036854775807"));
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
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains("`dpcl.no_such_key`"), "{error}");
        let config = Config::from_toml("method = 'er'\n[dpcl]\nkappa = 0.2").unwrap();
        assert!(!config.check().unwrap().to_table().contains_key("dpcl"));
    }

    #[test]
    fn what_does_not_go_together_is_found_without_data() {
        let config = Config::from_toml("method = 'dpcl'\nasymmetric = true").unwrap();
        let error = config.check().unwrap_err().to_string();
        assert!(error.contains("`asymmetric`"), "{error}");
    }

    #[test]
    fn a_period_of_measurements_is_recorded_where_something_is_measured() {
        let recorded = |key: &str, name: &str| {
            let setup = Config::from_toml(&format!("{key} = '{name}'")).unwrap().check().unwrap();
            assert_eq!(setup.imp_period, 1, "{name}: settled in any case");
            setup.to_table().contains_key("imp_period")
        };
        for name in SCHEMES.iter().map(|scheme| scheme.name).filter(|&name| name != "pim") {
            assert_eq!(recorded("memory_scheme", name), name == "clib", "{name}");
        }
        for name in RATES.iter().map(|rate| rate.name).filter(|&name| name != "pima") {
            assert_eq!(recorded("rate", name), name == "clib", "{name}");
        }
    }

    #[test]
    fn what_only_the_data_know_is_not_recorded_before_they_are_open() {
        let setup = Config::default().check().unwrap();
        assert_eq!((setup.mean, setup.pad_crop, setup.is_open("mean")), ([0.5; 3], 4, true));
        assert!(!setup.to_table().contains_key("mean"));
        let given = Config::from_toml("mean = [0.1, 0.2, 0.3]").unwrap().check().unwrap();
        assert!(given.to_table().contains_key("mean") && !given.to_table().contains_key("std"));
    }
}
