//! Every method keeps what methods promise: those that come with the program, and DPCL with its paper's own values. One
//! test a method, so that they run side by side.

/// A test a method, and one that none is left out.
macro_rules! every_method {
    ($($test:ident: $method:literal,)*) => {
        $(
            #[test]
            fn $test() {
                dpcl::contract::check(concat!("method = '", $method, "'")).unwrap();
            }
        )*

        #[test]
        fn no_method_is_left_out() {
            let registered: Vec<&str> = dpcl::methods::METHODS.iter().map(|info| info.name).collect();
            assert_eq!(registered, [$($method),*]);
        }
    };
}

every_method! {
    dpcl: "dpcl",
    er: "er",
    er_ace: "er-ace",
    er_cpr: "er-cpr",
    der_plus_plus: "der++",
    mir: "mir",
    nfm: "nfm",
    dro: "dro",
    clib: "clib",
    bic: "bic",
    ewc_plus_plus: "ewc++",
    fs_dgpm: "fs-dgpm",
    oddl: "oddl",
    gdumb: "gdumb",
    ccll: "ccll",
    ctn: "ctn",
    finetune: "finetune",
    joint: "joint",
}

#[test]
fn dpcl_literal() {
    dpcl::contract::check(include_str!("../../../../presets/dpcl-literal.toml")).unwrap();
}

#[test]
fn an_averaged_learner_with_a_teacher() {
    dpcl::contract::check("method = 'er'\naverage = 20\nteacher = 1.0").unwrap();
}

#[test]
fn an_averaged_learner_with_statistics_of_its_memory() {
    dpcl::contract::check("method = 'er'\naverage = 20\naverage_statistics = 'memory'").unwrap();
}

#[test]
fn averaged_heads_with_distributions_and_a_teacher() {
    dpcl::contract::check("method = 'dpcl'\naverage = 20\nteacher = 1.0").unwrap();
}

#[test]
fn an_averaged_base_under_a_controller() {
    dpcl::contract::check("method = 'ctn'\naverage = 20\nlr = 0.05").unwrap();
}

#[test]
fn the_newest_samples() {
    dpcl::contract::check("method = 'er'\nmemory_scheme = 'ring'").unwrap();
}

#[test]
fn an_averaged_network_that_is_trained_at_task_ends() {
    dpcl::contract::check("method = 'gdumb'\naverage = 20").unwrap();
}

#[test]
fn a_broken_promise_names_the_method_and_what_was_found() {
    let broken = dpcl::contract::check("method = 'er'\nlr = 1e-12").unwrap_err().to_string();
    assert!(broken.starts_with("er: a run beats chance: "), "{broken}");
}
