//! The parts of a network that others can take the place of while its convolutions stay: batch norms with what they have
//! seen, and heads.

use burn::tensor::Device;

use super::{
    Architecture, Encoder, Heads, Model, Network,
    average::Average,
    weights::{FileLayout, Weights, matrix},
};
use crate::{
    error::Result,
    state::{Persist, State},
};

/// The batch norms of every layer: scale and shift, running mean and variance.
#[derive(Clone)]
pub struct Norms {
    learned: Weights,
    running: Weights,
}

impl Norms {
    /// Those of a network of the given form, to load saved ones into.
    pub fn blank(architecture: &Architecture, device: &Device) -> Self {
        let (mut learned, mut running) = (Weights::default(), Weights::default());
        for layer in architecture.layers().0 {
            let zeros = matrix(vec![0.0; layer.channels_out], [1, layer.channels_out], device);
            for (table, names) in
                [(&mut learned, ["weight", "bias"]), (&mut running, ["running_mean", "running_var"])]
            {
                for name in names {
                    table.push(format!("{}.{name}", layer.norm), FileLayout::Vector, zeros.clone());
                }
            }
        }
        Self { learned, running }
    }

    /// Whether a weight of that name, as [`Model::pass_learning`] gives it, is one of a batch norm.
    pub fn have(name: &str) -> bool {
        name.contains(".bn")
    }

    /// How many learnable numbers they hold.
    pub fn parameters(&self) -> u64 {
        self.learned.count() as u64
    }
}

impl Encoder {
    /// Its batch norms.
    pub fn norms(&self) -> Norms {
        let mut learned = Weights::default();
        for weight in self.weights().iter().filter(|weight| Norms::have(&weight.name)) {
            learned.push(weight.name.clone(), weight.layout, weight.value.clone());
        }
        Norms { learned, running: self.running.clone() }
    }

    /// Puts others in the place of its batch norms.
    pub fn set_norms(&mut self, norms: &Norms) {
        let own = self.weights_mut().iter_mut().filter(|weight| Norms::have(&weight.name));
        own.zip(norms.learned.iter()).for_each(|(own, other)| own.value = other.value.clone());
        self.running = norms.running.clone();
    }
}

impl Network {
    /// A network of the same convolutions with these batch norms and heads.
    pub fn fitted(&self, norms: &Norms, heads: &Heads) -> Self {
        let mut encoder = self.encoder().clone();
        encoder.set_norms(norms);
        Self::new(encoder, heads.clone())
    }
}

impl Model {
    /// Puts these batch norms and heads in the place of its own, which it gives back. They learn without the moments of
    /// those before them; where an average is kept, its own begin with them.
    pub fn exchange(&mut self, norms: &Norms, heads: Heads) -> (Norms, Heads) {
        let own = self.encoder().norms();
        let names: Vec<String> = own.learned.iter().map(|weight| weight.name.clone()).collect();
        self.optimiser.forget(names.iter().map(String::as_str).chain(heads.names()));
        if let Some(network) = self.average.as_mut().map(Average::network_mut) {
            *network = network.fitted(norms, &heads);
        }
        self.encoder_mut().set_norms(norms);
        (own, std::mem::replace(self.heads_mut(), heads))
    }
}

impl Persist for Norms {
    fn save(&self, state: &mut State) {
        self.learned.save(state);
        self.running.save(state);
    }

    fn load(&mut self, state: &State) -> Result<()> {
        self.learned.load(state)?;
        self.running.load(state)
    }
}
