//! The averaged network: an exponential average of weights and running statistics along the way training takes.
//!
//! After every optimiser step a ← a + κ(θ − a), κ = 1 / horizon, over the encoder's weights and running statistics and
//! every head. The average answers; training never sees it. It begins with the network itself, and its horizon is never
//! longer than a quarter of the steps taken ([`share`]): an average over 1,000 steps would else answer with random
//! weights for most of them. A head's new row enters with its present value.

use super::{Heads, Model, Network};
use crate::{
    error::{Error, Result},
    state::{Persist, State},
};

/// Steps taken for each step of the horizon.
const STEPS_PER_HORIZON: f64 = 4.0;

/// A network that follows another.
#[derive(Clone)]
pub struct Average {
    network: Network,
    horizon: f64,
    steps: u64,
}

impl Average {
    /// An average over `horizon` steps that begins with `network`.
    pub fn of(network: &Network, horizon: u64) -> Self {
        Self { network: network.clone(), horizon: horizon as f64, steps: 0 }
    }

    /// What answers.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// What answers, to change.
    pub(super) fn network_mut(&mut self) -> &mut Network {
        &mut self.network
    }

    /// A step begins: how far the average will move, and what is to be moved.
    pub(super) fn step(&mut self) -> (f64, &mut Network) {
        let share = share(self.horizon, self.steps);
        self.steps += 1;
        (share, &mut self.network)
    }

    /// Heads have grown: their new rows enter with their values.
    pub(super) fn grow(&mut self, heads: &Heads) {
        let (_, average) = self.network.parts_mut();
        average.grow_like(heads);
    }
}

/// How far an average over `horizon` steps moves in a step, after `steps` others.
fn share(horizon: f64, steps: u64) -> f64 {
    let beginning = 1.0 / (1.0 + steps as f64 / STEPS_PER_HORIZON);
    beginning.max(1.0 / horizon)
}

/// What answers for a model: its average if it has one.
impl Model {
    /// The same model with an average over `horizon` steps that answers for it; 0 has none.
    #[must_use]
    pub fn averaged(mut self, horizon: u64) -> Self {
        self.average = (horizon > 0).then(|| Average::of(&self.network, horizon));
        self
    }

    /// The network that answers: the average where one is kept.
    pub fn answering(&self) -> &Network {
        self.average.as_ref().map_or(&self.network, Average::network)
    }

    /// The average, where one is kept.
    pub fn average(&self) -> Option<&Average> {
        self.average.as_ref()
    }
}

/// Under which name a model saves its average.
pub(super) const PART: &str = "average";

impl Average {
    /// Takes up a saved average of `network`; one that was saved without begins with it.
    pub(super) fn restore(&mut self, state: &State, network: &Network) -> Result<()> {
        if !state.values.contains_key(&format!("{PART}.steps")) {
            (self.network, self.steps) = (network.clone(), 0);
            return Ok(());
        }
        state.load_part(PART, self)?;
        let [found, expected] = [&self.network, network].map(|network| network.heads().classes());
        if found != expected {
            let problem = format!("is {found}, but the network has {expected}");
            return Err(Error::BadState { key: format!("{PART}.heads.classes"), problem });
        }
        Ok(())
    }
}

impl Persist for Average {
    fn save(&self, state: &mut State) {
        state.put("steps", &self.steps);
        self.network.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.steps = state.get_counted("steps")?;
        self.network.load(state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_horizon_grows_to_its_length() {
        let shares: Vec<f64> = [0, 4, 400, 3_996, 1_000_000].map(|steps| share(1000.0, steps)).to_vec();
        assert_eq!(shares, [1.0, 0.5, 1.0 / 101.0, 0.001, 0.001]);
        assert_eq!(share(1.0, 5_000), 1.0);
    }
}
