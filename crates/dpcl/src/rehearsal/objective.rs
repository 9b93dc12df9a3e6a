//! What the configuration can add to the loss of any rehearsal method.
//!
//! A *teacher* (`teacher`, a weight): w·KL(teacher ‖ student) at a temperature, over all classes met, on the rows of the
//! training batch as they are (cut, mixed and disturbed). The teacher is the network's average in evaluation mode; no
//! gradient reaches it.
//!
//! An *asymmetric* cross-entropy (`asymmetric`): rows of the stream's half are scored against the classes present in that
//! half only, rows of the memory against every class met; L = CE(stream) + CE(memory), each a mean (ER-ACE, Caccia et al.
//! 2022). Rows are then cut and mixed within their half.

use std::ops::Range;

use burn::tensor::{Tensor, TensorData};

use super::batch_loss;
use crate::{
    batch::Batch,
    config::Setup,
    error::{Error, Result},
    model::{Change, Model, cross_entropy, divergence, mixed_cross_entropy},
};

/// Added to the logits of classes that a row is not scored against: their probability is nothing.
const NEVER: f32 = -1e9;

/// The loss that methods have in common, as configured.
pub struct Objective {
    asymmetric: bool,
    teacher: Option<Teacher>,
    method: &'static str,
}

/// What a step has asked its objective for.
#[derive(Clone, Copy, Default)]
pub struct Asked {
    pub(super) cross_entropy: bool,
    pub(super) teacher: bool,
}

#[derive(Clone, Copy)]
struct Teacher {
    weight: f64,
    temperature: f64,
}

impl Objective {
    /// As the configuration says.
    ///
    /// # Errors
    /// When there is to be a teacher and no average that could be it.
    pub fn new(setup: &Setup) -> Result<Self> {
        if setup.teacher > 0.0 && setup.average == 0 {
            let problem = "the teacher is the average of the network, which is off: give `average` as well";
            return Err(Error::bad_key("teacher", problem));
        }
        let teacher = Teacher { weight: setup.teacher, temperature: setup.teacher_temperature };
        Ok(Self {
            asymmetric: setup.asymmetric,
            teacher: (setup.teacher > 0.0).then_some(teacher),
            method: setup.method.name,
        })
    }

    /// Refuses what nobody asks for: a loss of another kind, which has no halves.
    ///
    /// # Errors
    /// When the cross-entropy is to be asymmetric.
    pub fn refuse_asymmetric(setup: &Setup) -> Result<()> {
        if setup.asymmetric {
            let problem = format!("`{}` makes its loss otherwise; `er-ace` has it", setup.method.name);
            return Err(Error::bad_key("asymmetric", problem));
        }
        Ok(())
    }

    /// Cross-entropy of a batch, asymmetric if it is to be.
    pub(super) fn cross_entropy(&self, logits: Tensor<3>, batch: &Batch) -> Tensor<1> {
        if self.asymmetric { asymmetric(&logits, batch) } else { batch_loss(logits, batch) }
    }

    /// A loss, and what the teacher makes of the logits for `images`, changed in its layers as the network's own were.
    pub(super) fn taught(
        &self,
        model: &Model,
        loss: Tensor<1>,
        logits: Tensor<3>,
        images: impl FnOnce() -> Tensor<4>,
        change: &mut Change<'_>,
    ) -> Tensor<1> {
        let Some((Teacher { weight, temperature }, average)) = self.teacher.zip(model.average()) else {
            return loss;
        };
        let answers = average.network().logits_with(images(), change);
        loss + divergence(logits, answers, temperature).mul_scalar(weight)
    }

    /// Refuses a loss that was made without what the configuration adds to it.
    ///
    /// # Errors
    /// Names the key that says what is missing.
    pub(super) fn check(&self, asked: Asked) -> Result<()> {
        let missed = [
            ("teacher", self.teacher.is_some() && !asked.teacher),
            ("asymmetric", self.asymmetric && !asked.cross_entropy),
        ];
        match missed.into_iter().find(|(_, missed)| *missed) {
            Some((key, _)) => {
                Err(Error::bad_key(key, format!("`{}` makes its loss without it", self.method)))
            }
            None => Ok(()),
        }
    }
}

/// CE of the stream's rows among the classes present there, plus CE of the memory's rows.
fn asymmetric(logits: &Tensor<3>, batch: &Batch) -> Tensor<1> {
    let (stream, rows) = (batch.stream_rows(), batch.labels.len());
    let [_, _, classes] = logits.dims();
    let mut present = vec![NEVER; classes];
    batch.labels[..stream].iter().for_each(|&class| present[class] = 0.0);
    let present = Tensor::<3>::from_data(TensorData::new(present, [1, 1, classes]), &logits.device());
    let of_stream = (stream > 0).then(|| group_loss(logits.clone() + present, batch, 0..stream));
    let of_memory = (rows > stream).then(|| group_loss(logits.clone(), batch, stream..rows));
    match (of_stream, of_memory) {
        (Some(stream), Some(memory)) => stream + memory,
        (Some(loss), None) | (None, Some(loss)) => loss,
        (None, None) => batch_loss(logits.clone(), batch),
    }
}

/// Mean cross-entropy of some rows of a batch with logits [heads, rows, classes], in CutMix form where they were cut and
/// mixed; all of them were, or none.
pub fn group_loss(logits: Tensor<3>, batch: &Batch, group: Range<usize>) -> Tensor<1> {
    let [heads, _, classes] = logits.dims();
    rows_loss(logits.slice([0..heads, group.clone(), 0..classes]), batch, group)
}

/// The same with logits of these rows alone.
pub fn rows_loss(logits: Tensor<3>, batch: &Batch, group: Range<usize>) -> Tensor<1> {
    let mixed = batch.mixed(&group);
    let labels = &batch.labels[group];
    match mixed {
        Some((partners, coefficient)) => mixed_cross_entropy(logits, labels, &partners, coefficient),
        None => cross_entropy(logits, labels),
    }
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::{
        augment::cutmix::{Area, Mix},
        config::Config,
        model::floats,
    };

    fn setup(text: &str) -> Setup {
        Config::from_toml(text).unwrap().check().unwrap()
    }

    fn logits(rows: &[[f32; 3]]) -> Tensor<3> {
        let data = TensorData::new(rows.concat(), [1, rows.len(), 3]);
        Tensor::from_data(data, &Device::flex()).autodiff().require_grad()
    }

    /// Two rows of the stream, of classes 0 and 2, and one of the memory, of class 1.
    fn batch() -> Batch {
        Batch { labels: vec![0, 2, 1], slots: vec![0], size: 1, ..Batch::default() }
    }

    fn value(tensor: Tensor<1>) -> f64 {
        f64::from(floats(tensor)[0])
    }

    #[test]
    fn rows_of_the_stream_compete_with_their_half_and_those_of_the_memory_with_all() {
        let logits = logits(&[[1.0, 5.0, 0.0], [0.0, 5.0, 2.0], [0.0, 1.0, 0.0]]);
        let loss = asymmetric(&logits, &batch());
        // ln(1 + e⁻¹), ln(1 + e⁻²), and −ln(e / (e + 2)).
        let (first, second) = ((-1.0_f64).exp().ln_1p(), (-2.0_f64).exp().ln_1p());
        let third = (1.0_f64.exp() + 2.0).ln() - 1.0;
        assert!((value(loss.clone()) - ((first + second) / 2.0 + third)).abs() < 1e-6);
        let gradient = floats(logits.grad(&loss.backward()).unwrap());
        assert_eq!((gradient[1], gradient[4]), (0.0, 0.0), "a class that is not present is left alone");
        assert!(gradient[6] > 0.0 && gradient[8] > 0.0);
    }

    #[test]
    fn a_lone_class_of_the_stream_has_nothing_to_learn() {
        let batch = Batch { labels: vec![1, 1], size: 1, ..Batch::default() };
        let logits = logits(&[[1.0, 0.0, 3.0], [0.0, -1.0, 0.0]]);
        assert_eq!(value(asymmetric(&logits, &batch)), 0.0);
    }

    #[test]
    fn a_cut_and_mixed_half_is_scored_in_cutmix_form() {
        let area = Area { left: 0, right: 0, top: 0, bottom: 0 };
        let mix = Mix { first: 0, area, coefficient: 0.25, permutation: vec![1, 0, 2] };
        let batch = Batch { mixes: vec![mix], ..batch() };
        let logits = logits(&[[1.0, 5.0, 0.0], [0.0, 5.0, 2.0], [0.0, 1.0, 0.0]]);
        let own = [(-1.0_f64).exp().ln_1p(), (-2.0_f64).exp().ln_1p()];
        let partner = [own[0] + 1.0, own[1] + 2.0];
        let stream: f64 = (0..2).map(|row| 0.25 * own[row] + 0.75 * partner[row]).sum::<f64>() / 2.0;
        let memory = (1.0_f64.exp() + 2.0).ln() - 1.0;
        assert!((value(asymmetric(&logits, &batch)) - stream - memory).abs() < 1e-6);
    }

    #[test]
    fn halves_that_were_mixed_apart_count_by_their_rows() {
        let area = Area { left: 0, right: 0, top: 0, bottom: 0 };
        let mix = |first, coefficient, permutation| Mix { first, area, coefficient, permutation };
        let mixes = vec![mix(0, 0.25, vec![1, 0]), mix(2, 0.5, vec![0])];
        let batch = Batch { mixes, ..batch() };
        let logits = logits(&[[1.0, 5.0, 0.0], [0.0, 5.0, 2.0], [0.0, 1.0, 0.0]]);
        let [stream, memory] = [0..2, 2..3].map(|group| value(group_loss(logits.clone(), &batch, group)));
        // The row of the memory is its own partner.
        assert!((memory - ((1.0_f64.exp() + 2.0).ln() - 1.0)).abs() < 1e-6);
        let of_row =
            |logits: [f64; 3], label: usize| logits.map(f64::exp).iter().sum::<f64>().ln() - logits[label];
        let rows = [([1.0, 5.0, 0.0], 0, 2), ([0.0, 5.0, 2.0], 2, 0)];
        let row = |(logits, own, partner)| 0.25 * of_row(logits, own) + 0.75 * of_row(logits, partner);
        assert!((stream - rows.map(row).iter().sum::<f64>() / 2.0).abs() < 1e-5);
        assert!((value(batch_loss(logits, &batch)) - (2.0 * stream + memory) / 3.0).abs() < 1e-5);
    }

    #[test]
    fn what_a_method_does_not_ask_for_is_not_left_out_in_silence() {
        let objective = Objective::new(&setup("method = 'er'\naverage = 10\nteacher = 1.0")).unwrap();
        let asked = |cross_entropy, teacher| objective.check(Asked { cross_entropy, teacher });
        assert!(asked(true, true).is_ok());
        let error = asked(true, false).unwrap_err().to_string();
        assert!(error.contains("`teacher`") && error.contains("`er`"), "{error}");
        let objective = Objective::new(&setup("method = 'er-ace'")).unwrap();
        assert!(objective.check(Asked::default()).unwrap_err().to_string().contains("`asymmetric`"));
        assert!(Objective::new(&setup("method = 'er'")).unwrap().check(Asked::default()).is_ok());
    }
}
