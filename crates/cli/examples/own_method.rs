//! A method of one's own, in a crate of one's own: focal replay. Registered, it is one among the others in all that the
//! `dpcl` command can do; `tests/suite/own_method.rs` puts it through the contract suite.
//!
//! ```sh
//! cargo run --release --example own_method -- list methods
//! cargo run --release --example own_method -- run --method er,er-focal --first-tasks 2
//! ```
//!
//! Loss: (1/B) Σᵢ (1 − e^{−ℓᵢ})^γ·ℓᵢ with ℓᵢ the cross-entropy of row i: rows that are answered well count less.

use std::process::ExitCode;

use dpcl::{
    Result, keys,
    method::{
        Batch, MethodInfo, OwnKeys, Persist, REHEARSAL, Rehearsal, Rehearse, Replay, Training,
        cross_entropy_rows, forward,
    },
};

/// How it is listed and built.
pub static ER_FOCAL: MethodInfo = MethodInfo {
    name: "er-focal",
    about: "experience replay that looks at hard rows",
    section: "focal",
    cutmix: 0.0,
    keys: OwnKeys::of::<Keys>(),
    build: |setup| Ok(Rehearsal::boxed(Replay::new(setup)?, Focal(setup.own()))),
    ..REHEARSAL
};

keys! {
    /// Own keys of `er-focal`.
    struct Keys {
        /// How much less rows count that are answered well (γ); 0 is experience replay.
        gamma: f64 = 2.0, at_least(0);
    }
}

struct Focal(Keys);

impl Rehearse for Focal {
    fn step(&mut self, training: &mut Training<'_>, batch: Batch) -> Result<f64> {
        let mut pass = training.model.pass();
        let losses = cross_entropy_rows(forward(&mut pass, &batch), &batch.labels);
        let unsure = losses.clone().neg().exp().neg().add_scalar(1.0);
        let loss = (unsure.clamp_min(1e-6).powf_scalar(self.0.gamma) * losses).mean();
        training.step(pass, &loss, &batch)
    }
}

impl Persist for Focal {}

#[allow(dead_code, reason = "the tests have a main of their own")]
fn main() -> ExitCode {
    dpcl::methods::register(&ER_FOCAL).expect("no other method has its name");
    dpcl_cli::main()
}
