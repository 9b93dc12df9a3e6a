//! Which layers a network has: a pure description from which weights are drawn and passes are run.

use serde::{Deserialize, Serialize};

use dpcl_kernels::ConvSpec;

use crate::error::{Error, Result};

/// The two block variants of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// 3×3 stem without pooling, no ReLU after a block's sum.
    Cifar,
    /// 7×7 stem of stride 2 with max-pool, a ReLU after each sum.
    Imagenet,
}

/// A residual network without its head.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Architecture {
    /// Stem and block variant.
    pub family: Family,
    /// Blocks in each of the four groups.
    pub depths: [usize; 4],
    /// Channels of the first group; each later group doubles them.
    pub width: usize,
    /// Batch-norm epsilon.
    pub epsilon: f64,
    /// Share of the new batch in the running statistics.
    pub momentum: f64,
    /// Whether blocks of the last group end without ReLU, so that features have both signs.
    pub open_end: bool,
}

/// A network that can be named in a configuration.
pub struct ModelInfo {
    /// Name in configurations.
    pub name: &'static str,
    /// What it is.
    pub about: &'static str,
    /// Stem and block variant.
    pub family: Family,
    depths: [usize; 4],
    width: usize,
}

/// Every network that can be named.
pub const MODELS: &[ModelInfo] = &[
    info("slim", "CIFAR ResNet18 of base width 20", Family::Cifar, [2, 2, 2, 2], 20),
    info("resnet18", "CIFAR ResNet18", Family::Cifar, [2, 2, 2, 2], 64),
    info("resnet34", "CIFAR ResNet34", Family::Cifar, [3, 4, 6, 3], 64),
    info("resnet18-imagenet", "ImageNet ResNet18", Family::Imagenet, [2, 2, 2, 2], 64),
    info("resnet34-imagenet", "ImageNet ResNet34", Family::Imagenet, [3, 4, 6, 3], 64),
];

const fn info(
    name: &'static str,
    about: &'static str,
    family: Family,
    depths: [usize; 4],
    width: usize,
) -> ModelInfo {
    ModelInfo { name, about, family, depths, width }
}

/// A convolution block by name and size.
#[derive(Clone, Debug, PartialEq)]
pub struct Layer {
    /// Name of the convolution's weight without `.weight`.
    pub convolution: String,
    /// Name of the batch norm.
    pub norm: String,
    /// Input channels.
    pub channels_in: usize,
    /// Output channels.
    pub channels_out: usize,
    /// Kernel, stride and ReLU.
    pub spec: ConvSpec,
}

/// A basic block: two 3×3 layers and, where the shape changes, a projection.
#[derive(Clone, Debug, PartialEq)]
pub struct Block {
    /// Positions of the two layers in [`Architecture::layers`].
    pub layers: [usize; 2],
    /// Position of the projection's layer.
    pub shortcut: Option<usize>,
}

/// Channels of the first group at most: sixty times what is usual, and no product of layer sizes overflows.
const WIDEST: usize = 4096;

impl Architecture {
    /// The named network, with another base width if given.
    ///
    /// # Errors
    /// When no network has that name or the width cannot be had.
    pub fn named(name: &str, width: Option<usize>, epsilon: f64, momentum: f64) -> Result<Self> {
        let info = MODELS.iter().find(|info| info.name == name).ok_or_else(|| Error::UnknownName {
            kind: "model",
            name: name.to_owned(),
            known: MODELS.iter().map(|info| info.name.to_owned()).collect(),
        })?;
        let width = width.unwrap_or(info.width);
        if !(1..=WIDEST).contains(&width) {
            return Err(Error::bad_key("width", format!("must lie between 1 and {WIDEST}, not {width}")));
        }
        Ok(Self { family: info.family, depths: info.depths, width, epsilon, momentum, open_end: false })
    }

    /// The same with a last group whose blocks end without ReLU.
    #[must_use]
    pub fn open_ended(self) -> Self {
        Self { open_end: true, ..self }
    }

    /// Length of a feature vector.
    pub fn features(&self) -> usize {
        self.width * 8
    }

    /// Numbers the first group makes of one image.
    pub fn activations(&self, height: usize, width: usize) -> usize {
        let shrunk = match self.family {
            Family::Cifar => 1,
            Family::Imagenet => 4,
        };
        height.div_ceil(shrunk) * width.div_ceil(shrunk) * self.width
    }

    /// Every convolution layer, the stem first, and the blocks of each group.
    pub fn layers(&self) -> (Vec<Layer>, Vec<Vec<Block>>) {
        let mut layers = vec![self.stem()];
        let mut channels = self.width;
        let mut groups = Vec::new();
        for (group, &depth) in self.depths.iter().enumerate() {
            let width = self.width << group;
            let mut blocks = Vec::new();
            for block in 0..depth {
                let stride = if group > 0 && block == 0 { 2 } else { 1 };
                let prefix = format!("group{}.block{block}", group + 1);
                let first = layers.len();
                layers.push(self.layer(&prefix, "1", channels, width, 3, stride));
                layers.push(self.layer(&prefix, "2", width, width, 3, 1));
                let shortcut = (stride != 1 || channels != width).then(|| {
                    let name = format!("{prefix}.shortcut");
                    layers.push(self.layer(&name, "", channels, width, 1, stride));
                    first + 2
                });
                if self.open_end && group + 1 == self.depths.len() {
                    for layer in &mut layers[first + 1..] {
                        layer.spec = ConvSpec { relu: false, relu_after_sum: false, ..layer.spec };
                    }
                }
                blocks.push(Block { layers: [first, first + 1], shortcut });
                channels = width;
            }
            groups.push(blocks);
        }
        (layers, groups)
    }

    /// Multiply-adds of the convolutions on one image of `size` × `size` pixels.
    pub fn multiply_adds(&self, size: usize) -> u64 {
        let (layers, groups) = self.layers();
        let cost = |layer: usize, size: usize| {
            let Layer { channels_in, channels_out, spec, .. } = &layers[layer];
            let out = size.div_ceil(spec.stride);
            ((out * out * spec.kernel * spec.kernel * channels_in * channels_out) as u64, out)
        };
        let (mut total, mut size) = cost(0, size);
        if self.family == Family::Imagenet {
            size = size.div_ceil(2);
        }
        for Block { layers: [first, second], shortcut } in groups.iter().flatten() {
            let around = shortcut.map_or(0, |layer| cost(layer, size).0);
            let (entry, out) = cost(*first, size);
            total += around + entry + cost(*second, out).0;
            size = out;
        }
        total
    }

    fn stem(&self) -> Layer {
        match self.family {
            Family::Cifar => self.layer("stem", "", 3, self.width, 3, 1),
            Family::Imagenet => self.layer("stem", "", 3, self.width, 7, 2),
        }
    }

    fn layer(
        &self,
        prefix: &str,
        number: &str,
        channels_in: usize,
        channels_out: usize,
        kernel: usize,
        stride: usize,
    ) -> Layer {
        Layer {
            convolution: format!("{prefix}.conv{number}"),
            norm: format!("{prefix}.bn{number}"),
            channels_in,
            channels_out,
            spec: ConvSpec {
                kernel,
                stride,
                relu: true,
                relu_after_sum: self.family == Family::Imagenet,
                epsilon: self.epsilon,
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn multiply_adds_are_the_published_ones() {
        let count =
            |name: &str, size: usize| Architecture::named(name, None, 1e-6, 0.1).unwrap().multiply_adds(size);
        assert_eq!(count("resnet18", 32), 555_417_600);
        assert_eq!(count("resnet34", 32), 1_159_397_376);
        assert_eq!(count("resnet34-imagenet", 224), 3_663_249_408);
    }
}
