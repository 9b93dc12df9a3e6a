//! The directions that matter to what was learned, layer by layer, and how firmly each is held.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};
use dpcl_kernels::linear;

use super::leading::leading;
use crate::{
    error::{Error, Result},
    memory::Sample,
    method::Core,
    model::{FileLayout, Gradients, Model, Outcome, Pass, Weights, floats, matrix},
    random::Random,
    state::{Array, Persist, State},
};

/// Windows of a layer's input that its basis is made of, at most.
const MOST_WINDOWS: usize = 4096;

/// Momentum of the soft weights' descent.
const MOMENTUM: f64 = 0.9;

/// How steep the sigmoid is that soft weights go through after each step.
const STEEPNESS: f64 = 10.0;

/// The directions held in one layer.
pub(super) struct Subspace {
    /// M, [fan-in, k], orthonormal columns.
    basis: Tensor<2>,
    /// How firmly each direction is held (λ), 0 to 1.
    soft: Vec<f32>,
    /// Momentum of these.
    momentum: Vec<f32>,
}

/// Those of all layers, by the names of their weights.
pub(super) struct Subspaces {
    layers: BTreeMap<String, Subspace>,
    device: Device,
}

/// Soft weights [k, 1] of each layer as tensors.
pub(super) type Soft = BTreeMap<String, Tensor<2>>;

impl Subspace {
    /// All directions of a basis are held.
    pub fn new(basis: Tensor<2>) -> Self {
        let [_, count] = basis.dims();
        Self { basis, soft: vec![1.0; count], momentum: vec![0.0; count] }
    }

    /// M diag(λ) Mᵀ g: the part of a gradient [fan-in, out] within the subspace, with soft weights [k, 1].
    pub fn within(&self, gradient: Tensor<2>, soft: Tensor<2>) -> Tensor<2> {
        let coordinates = product(self.basis.clone().transpose(), gradient);
        product(self.basis.clone(), coordinates * soft)
    }

    /// Soft weights as they are, [k, 1].
    pub fn soft(&self) -> Tensor<2> {
        matrix(self.soft.clone(), [self.soft.len(), 1], &self.basis.device())
    }

    /// One step down a gradient of the soft weights, then through the sigmoid.
    fn descend(&mut self, gradient: &[f32], scale: f64, rate: f64) {
        for ((soft, momentum), slope) in self.soft.iter_mut().zip(&mut self.momentum).zip(gradient) {
            *momentum = (MOMENTUM * f64::from(*momentum) + scale * f64::from(*slope)) as f32;
            *soft = sharpened(f64::from(*soft) - rate * f64::from(*momentum)) as f32;
        }
    }
}

/// Where a soft weight ends after a step that brought it to `soft`.
pub(super) fn sharpened(soft: f64) -> f64 {
    1.0 / (1.0 + (-STEEPNESS * soft).exp())
}

/// a · b.
fn product(a: Tensor<2>, b: Tensor<2>) -> Tensor<2> {
    let [_, columns] = b.dims();
    let nothing = Tensor::zeros([1, columns], &a.device());
    linear(a, b, nothing)
}

impl Subspaces {
    /// Nothing is held.
    pub fn new(device: Device) -> Self {
        Self { layers: BTreeMap::new(), device }
    }

    /// Holds, instead of what was held, the directions that make `share` of every layer's input on stored samples.
    pub fn rebuild(&mut self, core: &Core, samples: &[&Sample], share: f64, chance: &mut Random) {
        self.layers.clear();
        let images = core.batcher.stored(samples.iter().copied());
        let network = core.model.network();
        let mut hold = |name: String, windows: &[f32], width: usize| {
            let Some(leading) = leading(windows, width, share) else { return };
            let basis = matrix(leading.columns, [width, leading.count], &self.device);
            self.layers.insert(name, Subspace::new(basis));
        };
        let features =
            network.features_watching(core.model.images(images, core.batcher.size()), &mut |view| {
                let places = chance.distinct(view.places(), MOST_WINDOWS);
                let width = view.layer.spec.kernel.pow(2) * view.layer.channels_in;
                hold(format!("encoder.{}.weight", view.layer.convolution), &view.windows(&places), width);
                view.output
            });
        let [_, width] = features.dims();
        hold("heads.weight".to_owned(), &floats(features), width);
    }

    /// Soft weights as leaves of a pass, whose further gradients are then theirs.
    pub fn track(&self, pass: &mut Pass) -> Soft {
        let mut table = Weights::default();
        for (name, layer) in &self.layers {
            table.push(name.clone(), FileLayout::Vector, layer.soft());
        }
        self.layers.keys().cloned().zip(pass.track(&table)).collect()
    }

    /// The part of a weight's gradient within its layer's subspace; all of it for weights without one.
    pub fn within(&self, name: &str, gradient: Tensor<2>, soft: &Soft) -> Tensor<2> {
        match self.layers.get(name).zip(soft.get(name)) {
            Some((layer, soft)) => layer.within(gradient, soft.clone()),
            None => gradient,
        }
    }

    /// One step of the soft weights down their gradients, of which the norm of all together is first brought to `clip` at
    /// most. Gradients that are not finite are passed over.
    pub fn descend(&mut self, gradients: Gradients, clip: f64, rate: f64) {
        let gradients: Vec<Vec<f32>> =
            gradients.into_iter().map(|g| g.map_or_else(Vec::new, floats)).collect();
        let norm = gradients.iter().flatten().map(|&slope| f64::from(slope).powi(2)).sum::<f64>().sqrt();
        if !norm.is_finite() {
            return;
        }
        let scale = if norm > clip { clip / norm } else { 1.0 };
        for (layer, gradient) in self.layers.values_mut().zip(&gradients) {
            layer.descend(gradient, scale, rate);
        }
    }

    /// Takes what lies within the subspaces out of the gradients of a network's weights.
    pub fn leave_out(&self, model: &Model, outcome: &mut Outcome) {
        let Outcome { encoder, heads, .. } = outcome;
        let parts =
            [("encoder", model.encoder().weights(), encoder), ("heads", model.heads().weights(), heads)];
        for (part, weights, gradients) in parts {
            for (weight, gradient) in weights.iter().zip(gradients) {
                let Some(layer) = self.layers.get(&format!("{part}.{}", weight.name)) else { continue };
                *gradient = gradient.take().map(|gradient| {
                    let held = layer.within(gradient.clone(), layer.soft());
                    gradient - held
                });
            }
        }
    }

    /// Fan-in and number of directions of each layer.
    #[cfg(test)]
    pub fn sizes(&self) -> BTreeMap<String, [usize; 2]> {
        self.layers.iter().map(|(name, layer)| (name.clone(), layer.basis.dims())).collect()
    }

    /// Soft weights as they are, which no gradient reaches.
    #[cfg(test)]
    pub fn soft(&self) -> Soft {
        self.layers.iter().map(|(name, layer)| (name.clone(), layer.soft())).collect()
    }

    /// Numbers it holds: bases and soft weights.
    pub fn count(&self) -> u64 {
        let count = |layer: &Subspace| layer.soft.len() + layer.basis.dims().iter().product::<usize>();
        self.layers.values().map(|layer| count(layer) as u64).sum()
    }

    /// Refuses bases that are not of a network's layers, or larger than them.
    ///
    /// # Errors
    /// [`Error::BadState`] for the first.
    pub fn check_loaded(&self, model: &Model) -> Result<()> {
        let encoder = model.encoder().weights().iter().map(|weight| ("encoder", weight));
        let all = encoder.chain(model.heads().weights().iter().map(|weight| ("heads", weight)));
        let fans: BTreeMap<String, usize> = all
            .filter(|(_, weight)| weight.layout != FileLayout::Vector)
            .map(|(part, weight)| (format!("{part}.{}", weight.name), weight.value.dims()[0]))
            .collect();
        for (name, layer) in &self.layers {
            let [rows, count] = layer.basis.dims();
            let problem = match fans.get(name) {
                Some(&fan) if fan == rows && count <= fan => continue,
                Some(fan) => format!("is {rows} × {count}, but the layer's input has {fan} dimensions"),
                None => "is of no layer of the network".to_owned(),
            };
            return Err(Error::BadState { key: format!("method.subspaces.{name}.basis"), problem });
        }
        Ok(())
    }
}

impl Persist for Subspaces {
    fn save(&self, state: &mut State) {
        state.put("layers", &self.layers.keys().collect::<Vec<_>>());
        for (name, layer) in &self.layers {
            let basis = Array::floats(layer.basis.dims(), floats(layer.basis.clone()));
            state.put_array(&format!("{name}.basis"), basis);
            for (kind, numbers) in [("soft", &layer.soft), ("momentum", &layer.momentum)] {
                state.put_array(&format!("{name}.{kind}"), Array::floats([numbers.len()], numbers.clone()));
            }
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let one = |name: String| -> Result<(String, Subspace)> {
            let key = format!("{name}.basis");
            let not_matrix = |_| Error::BadState { key: key.clone(), problem: "is not a matrix".into() };
            let shape: [usize; 2] = state.array(&key)?.shape.clone().try_into().map_err(not_matrix)?;
            if shape.contains(&0) {
                return Err(Error::BadState { key, problem: "holds nothing".into() });
            }
            let numbers =
                |kind: &str| state.floats(&format!("{name}.{kind}"), &shape[1..]).map(<[f32]>::to_vec);
            let (soft, momentum) = (numbers("soft")?, numbers("momentum")?);
            let basis = matrix(state.floats(&key, &shape)?.to_vec(), shape, &self.device);
            Ok((name, Subspace { basis, soft, momentum }))
        };
        let names: Vec<String> = state.get("layers")?;
        self.layers = names.into_iter().map(one).collect::<Result<_>>()?;
        Ok(())
    }
}
