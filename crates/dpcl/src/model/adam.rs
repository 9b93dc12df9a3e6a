//! Adam without weight decay; each parameter counts its own steps.

use std::collections::BTreeMap;

use burn::tensor::{Device, Tensor};

use dpcl_kernels::{AdamStep, Averaging, adam, adam_averaged};

use super::{
    heads::{Heads, widen},
    weights::{Gradients, Weights, floats, matrix},
};
use crate::{
    error::{Error, Result},
    state::{Array, Persist, State},
};

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPSILON: f64 = 1e-8;

/// Moments of one parameter.
struct Moments {
    first: Tensor<2>,
    second: Tensor<2>,
    count: u64,
}

/// Weights that follow others at a distance: an average over the steps these take.
pub struct Follow<'a> {
    /// The weights that follow, in the order of those they follow.
    pub weights: &'a mut Weights,
    /// How far they move towards them in a step, 0 to 1.
    pub share: f64,
}

/// Moments of every parameter that has taken a step, by name.
pub struct Adam {
    moments: BTreeMap<String, Moments>,
    device: Device,
}

impl Adam {
    /// No moments yet; loaded ones will lie on `device`.
    pub fn new(device: &Device) -> Self {
        Self { moments: BTreeMap::new(), device: device.clone() }
    }

    /// Moves every weight that has a gradient.
    pub fn step(&mut self, weights: &mut Weights, gradients: Gradients, rate: f64) {
        self.step_followed(weights, gradients, rate, None);
    }

    /// The same, and moves what follows the weights, in one pass over memory.
    pub fn step_followed(
        &mut self,
        weights: &mut Weights,
        gradients: Gradients,
        rate: f64,
        follow: Option<Follow<'_>>,
    ) {
        let share = follow.as_ref().map_or(0.0, |follow| follow.share);
        let slow = follow.map(|follow| follow.weights.iter_mut());
        let mut slow = slow.into_iter().flatten();
        for (weight, gradient) in weights.iter_mut().zip(gradients) {
            let slow = slow.next();
            let Some(gradient) = gradient else {
                if let Some(slow) = slow {
                    slow.value =
                        slow.value.clone() + (weight.value.clone() - slow.value.clone()).mul_scalar(share);
                }
                continue;
            };
            let moments = self.moments.remove(&weight.name).unwrap_or_else(|| Moments {
                first: gradient.zeros_like(),
                second: gradient.zeros_like(),
                count: 0,
            });
            let count = moments.count + 1;
            let step = AdamStep { rate, beta1: BETA1, beta2: BETA2, epsilon: EPSILON, count };
            // Handing the value over, not a copy of it, lets the kernel work in place.
            let value = std::mem::replace(&mut weight.value, gradient.clone());
            let moments = (moments.first, moments.second);
            let (value, (first, second)) = match slow {
                None => adam(value, gradient, moments, &step),
                Some(slow) => {
                    let average = std::mem::replace(&mut slow.value, gradient.clone());
                    let averaging = Averaging { average, share };
                    let (value, moments, average) = adam_averaged(value, gradient, moments, averaging, &step);
                    slow.value = average;
                    (value, moments)
                }
            };
            weight.value = value;
            self.moments.insert(weight.name.clone(), Moments { first, second, count });
        }
    }

    /// Refuses moments that are not of their weights' shapes.
    ///
    /// # Errors
    /// [`Error::BadState`] for the first that is not.
    pub fn check_loaded(&self, weights: &Weights) -> Result<()> {
        for weight in weights.iter() {
            let Some(moments) = self.moments.get(&weight.name) else { continue };
            let dims = weight.value.dims();
            if moments.first.dims() != dims || moments.second.dims() != dims {
                let problem = format!("is of another shape than its weight, {dims:?}");
                return Err(Error::BadState { key: format!("first.{}", weight.name), problem });
            }
        }
        Ok(())
    }

    /// Drops the moments of the named parameters.
    pub fn forget<'a>(&mut self, names: impl IntoIterator<Item = &'a str>) {
        for name in names {
            self.moments.remove(name);
        }
    }

    /// Widens the moments of heads that grew by one class with zeros.
    pub fn extend(&mut self, names: [&str; 2], heads: &Heads) {
        let (count, classes) = (heads.count(), heads.classes() - 1);
        for name in names {
            let Some(moments) = self.moments.get_mut(name) else { continue };
            for moment in [&mut moments.first, &mut moments.second] {
                let device = moment.device();
                let [rows, _] = moment.dims();
                let wider = widen(&floats(moment.clone()), count, classes, |_, _| 0.0);
                *moment = matrix(wider, [rows, count * (classes + 1)], &device);
            }
        }
    }
}

impl Persist for Adam {
    fn save(&self, state: &mut State) {
        let counts: BTreeMap<&String, u64> =
            self.moments.iter().map(|(name, moments)| (name, moments.count)).collect();
        state.put("counts", &counts);
        for (name, moments) in &self.moments {
            for (kind, moment) in [("first", &moments.first), ("second", &moments.second)] {
                let array = Array::floats(moment.dims(), floats(moment.clone()));
                state.put_array(&format!("{kind}.{name}"), array);
            }
        }
    }

    fn load(&mut self, state: &State) -> Result<()> {
        let counts: BTreeMap<String, u64> = state.get_counted("counts")?;
        let read = |kind: &str, name: &str| -> Result<Tensor<2>> {
            let key = format!("{kind}.{name}");
            let shape: [usize; 2] = state
                .array(&key)?
                .shape
                .clone()
                .try_into()
                .map_err(|_| Error::BadState { key: key.clone(), problem: "is not a matrix".into() })?;
            Ok(matrix(state.floats(&key, &shape)?.to_vec(), shape, &self.device))
        };
        self.moments.clear();
        for (name, count) in counts {
            let (first, second) = (read("first", &name)?, read("second", &name)?);
            self.moments.insert(name, Moments { first, second, count });
        }
        Ok(())
    }
}
