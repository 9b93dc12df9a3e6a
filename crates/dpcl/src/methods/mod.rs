//! How it learns: every method that can be named in a configuration.
//!
//! A method is a file here and a line in [`METHODS`]; one from another crate joins them with [`register`]. What a method
//! is stands in [`crate::method`], what rehearsal methods share in `rehearsal/`.

mod bic;
mod ccll;
mod clib;
mod ctn;
mod der_plus_plus;
mod dpcl;
mod dro;
mod er;
mod er_ace;
mod er_cpr;
mod ewc_plus_plus;
mod finetune;
mod fs_dgpm;
mod gdumb;
mod joint;
mod mir;
mod nfm;
mod oddl;

use std::{
    fmt,
    sync::{PoisonError, RwLock},
};

use crate::{
    config::{Keys as _, OwnKeys, Settings, Setup},
    error::{Error, Result},
    method::{Answers, Knowledge, Method},
};

/// A method that can be named in a configuration.
pub struct MethodInfo {
    /// Name in configurations, records and tables.
    pub name: &'static str,
    /// The idea in a line.
    pub about: &'static str,
    /// Where its defaults are not what its paper says.
    pub departures: &'static [&'static str],
    /// What it is told.
    pub knowledge: Knowledge,
    /// When its answers are up to date.
    pub answers: Answers,
    /// Name of its table of own keys.
    pub section: &'static str,
    /// Memory scheme unless configured; "none" for methods without memory.
    pub memory_scheme: &'static str,
    /// Rate rule unless configured.
    pub rate: &'static str,
    /// Initial learning rate unless configured.
    pub lr: f64,
    /// Whether head moments survive growth unless configured.
    pub keep_adam: bool,
    /// CutMix probability unless configured.
    pub cutmix: f64,
    /// Steps that the answering weights are averaged over unless configured; 0 for none.
    pub average: u64,
    /// Whether its cross-entropy is asymmetric unless configured.
    pub asymmetric: bool,
    /// Its own keys.
    pub keys: OwnKeys,
    /// Builds it; refuses what does not go together.
    pub build: fn(&Setup) -> Result<Box<dyn Method>>,
}

impl fmt::Debug for MethodInfo {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name)
    }
}

/// What a rehearsal method usually is; one states only its name and where it differs.
pub const REHEARSAL: MethodInfo = MethodInfo {
    name: "",
    about: "",
    departures: &[],
    knowledge: Knowledge::None,
    answers: Answers::AnyTime,
    section: "",
    memory_scheme: "reservoir",
    rate: "exp-reset",
    lr: 3e-4,
    keep_adam: false,
    cutmix: 0.5,
    average: 0,
    asymmetric: false,
    keys: OwnKeys::NONE,
    build: |_| Err(Error::bad_key("method", "has nothing that builds it")),
};

/// The methods that come with the program.
pub static METHODS: &[MethodInfo] = &[
    dpcl::INFO,
    er::INFO,
    er_ace::INFO,
    er_cpr::INFO,
    der_plus_plus::INFO,
    mir::INFO,
    nfm::INFO,
    dro::INFO,
    clib::INFO,
    bic::INFO,
    ewc_plus_plus::INFO,
    fs_dgpm::INFO,
    oddl::INFO,
    gdumb::INFO,
    ccll::INFO,
    ctn::INFO,
    finetune::INFO,
    joint::INFO,
];

/// Methods of other crates, in the order they came.
static REGISTERED: RwLock<Vec<&'static MethodInfo>> = RwLock::new(Vec::new());

/// Lets a method of another crate be named in configurations, listed, run, saved and resumed like any other. To be
/// called before configurations are read; registering the same one again does nothing.
///
/// # Errors
/// When another method has its name or its table, or a common key is called like its table.
pub fn register(info: &'static MethodInfo) -> Result<()> {
    for (key, name) in [("name", info.name), ("section", info.section)] {
        let plain = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "+-_".contains(c));
        if !plain {
            let problem =
                format!("a method's {key} is made of letters, digits, `+`, `-` and `_`, not `{name}`");
            return Err(Error::bad_key("method", problem));
        }
    }
    if Settings::keys().iter().any(|key| key.name == info.section || key.aliases.contains(&info.section)) {
        let problem = format!("its table `{}` is called like a key that all methods have", info.section);
        return Err(Error::bad_key("method", problem));
    }
    // Taken only now: what lists the common keys reads the registry.
    let mut registered = REGISTERED.write().unwrap_or_else(PoisonError::into_inner);
    if registered.iter().any(|known| std::ptr::eq(*known, info)) {
        return Ok(());
    }
    let taken = |known: &MethodInfo| known.name == info.name || known.section == info.section;
    if let Some(other) = METHODS.iter().chain(registered.iter().copied()).find(|known| taken(known)) {
        let problem = format!("`{}` and its table `{}` are there already", other.name, other.section);
        return Err(Error::bad_key("method", problem));
    }
    registered.push(info);
    Ok(())
}

/// Every method that can be named: those that come with the program, then those of other crates.
pub fn all() -> Vec<&'static MethodInfo> {
    let registered = REGISTERED.read().unwrap_or_else(PoisonError::into_inner);
    METHODS.iter().chain(registered.iter().copied()).collect()
}

/// The method of that name.
///
/// # Errors
/// When there is none.
pub fn find(name: &str) -> Result<&'static MethodInfo> {
    let all = all();
    all.iter().copied().find(|info| info.name == name).ok_or_else(|| Error::UnknownName {
        kind: "method",
        name: name.to_owned(),
        known: all.iter().map(|info| info.name.to_owned()).collect(),
    })
}

/// Names of the tables that methods keep their own keys in.
pub(crate) fn section_names() -> Vec<&'static str> {
    all().iter().map(|info| info.section).collect()
}
