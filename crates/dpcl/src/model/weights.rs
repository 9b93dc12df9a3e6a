//! A table of named weights. Every weight is a matrix, so that optimisers, penalties, copies and files can walk the
//! table without knowing what a layer is.

use burn::tensor::{Device, Tensor, TensorData};

use crate::{
    error::Result,
    finite::all_finite,
    state::{Array, State},
};

/// Gradient of each weight in table order; `None` where the loss does not reach it.
pub type Gradients = Vec<Option<Tensor<2>>>;

/// How a matrix is laid out in files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileLayout {
    /// [kernel·kernel·in, out] here, [out, in, kernel, kernel] in files.
    Convolution {
        /// Rows and columns of the kernel.
        kernel: usize,
    },
    /// `[1, n]` here, `[n]` in files.
    Vector,
    /// [features, outputs] here, [outputs, features] in files.
    Linear,
}

/// One named weight.
#[derive(Clone, Debug)]
pub struct Weight {
    /// Dotted name, as in files.
    pub name: String,
    /// Layout in files.
    pub layout: FileLayout,
    /// The value, outside autodiff.
    pub value: Tensor<2>,
}

/// The weights of a network part, in a fixed order.
#[derive(Clone, Debug, Default)]
pub struct Weights {
    entries: Vec<Weight>,
}

impl Weights {
    /// Appends a weight and returns its position.
    pub fn push(&mut self, name: impl Into<String>, layout: FileLayout, value: Tensor<2>) -> usize {
        self.entries.push(Weight { name: name.into(), layout, value });
        self.entries.len() - 1
    }

    /// The weights in order.
    pub fn iter(&self) -> impl Iterator<Item = &Weight> {
        self.entries.iter()
    }

    /// The weights in order, to change.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut Weight> {
        self.entries.iter_mut()
    }

    /// The value at a position.
    pub fn value(&self, position: usize) -> &Tensor<2> {
        &self.entries[position].value
    }

    /// Replaces the value at a position.
    pub fn set(&mut self, position: usize, value: Tensor<2>) {
        self.entries[position].value = value;
    }

    /// How many numbers the table holds.
    pub fn count(&self) -> usize {
        self.entries.iter().map(|weight| weight.value.dims().iter().product::<usize>()).sum()
    }

    /// The name of a weight with numbers that are not finite, if there is one.
    pub fn not_finite(&self) -> Option<&str> {
        let bad = |weight: &&Weight| !all_finite(&floats(weight.value.clone()));
        self.entries.iter().find(bad).map(|weight| weight.name.as_str())
    }

    /// Every weight in order: those that `learns` accepts by name as leaves of a graph, the others as constants.
    pub fn tracked(&self, learns: impl Fn(&str) -> bool) -> Vec<Tensor<2>> {
        let tracked = |Weight { name, value, .. }: &Weight| {
            if learns(name) { value.clone().autodiff().require_grad() } else { value.clone() }
        };
        self.entries.iter().map(tracked).collect()
    }

    /// Writes every weight in its file layout.
    pub fn save(&self, state: &mut State) {
        for weight in &self.entries {
            state.put_array(&weight.name, to_file(weight));
        }
    }

    /// Reads every weight back.
    ///
    /// # Errors
    /// When one is missing or has another shape.
    pub fn load(&mut self, state: &State) -> Result<()> {
        for weight in &mut self.entries {
            let device = weight.value.device();
            let shape = file_shape(weight);
            let elements = state.floats(&weight.name, &shape)?;
            weight.value = from_file(elements, weight, &device);
        }
        Ok(())
    }
}

/// The numbers of a tensor, row-major.
pub fn floats<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor.try_into_vec_as::<f32>().expect("tensors of this crate hold f32")
}

/// A matrix from row-major numbers.
pub fn matrix(elements: Vec<f32>, shape: [usize; 2], device: &Device) -> Tensor<2> {
    Tensor::from_data(TensorData::new(elements, shape), device)
}

fn file_shape(weight: &Weight) -> Vec<usize> {
    let [rows, columns] = weight.value.dims();
    match weight.layout {
        FileLayout::Convolution { kernel } => vec![columns, rows / (kernel * kernel), kernel, kernel],
        FileLayout::Vector => vec![columns],
        FileLayout::Linear => vec![columns, rows],
    }
}

fn to_file(weight: &Weight) -> Array {
    let shape = file_shape(weight);
    let value = weight.value.clone();
    let elements = match weight.layout {
        FileLayout::Convolution { kernel } => {
            floats(value.reshape([kernel, kernel, shape[1], shape[0]]).permute([3, 2, 0, 1]))
        }
        FileLayout::Vector => floats(value),
        FileLayout::Linear => floats(value.transpose()),
    };
    Array::floats(shape, elements)
}

fn from_file(elements: &[f32], weight: &Weight, device: &Device) -> Tensor<2> {
    let shape = file_shape(weight);
    let [rows, columns] = weight.value.dims();
    let turned = match weight.layout {
        FileLayout::Convolution { kernel } => {
            let data = TensorData::new(elements.to_vec(), [shape[0], shape[1], kernel, kernel]);
            floats(Tensor::<4>::from_data(data, device).permute([2, 3, 1, 0]))
        }
        FileLayout::Vector => elements.to_vec(),
        FileLayout::Linear => floats(matrix(elements.to_vec(), [columns, rows], device).transpose()),
    };
    matrix(turned, [rows, columns], device)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_convolution_is_turned_for_files_and_back() {
        let device = Device::flex();
        // One kernel position (1×1), two inputs, three outputs: rows are inputs here, columns in files.
        let value = matrix(vec![1.0, 2.0, 3.0, 4.0, 5.0, 6.0], [2, 3], &device);
        let mut weights = Weights::default();
        weights.push("conv.weight", FileLayout::Convolution { kernel: 1 }, value);
        let mut state = State::default();
        weights.save(&mut state);
        let stored = state.floats("conv.weight", &[3, 2, 1, 1]).unwrap();
        assert_eq!(stored, [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]);
        weights.set(0, matrix(vec![0.0; 6], [2, 3], &device));
        weights.load(&state).unwrap();
        assert_eq!(floats(weights.value(0).clone()), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    }
}
