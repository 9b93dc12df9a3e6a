//! The loss of a batch row by row, and taken apart by class.

use burn::tensor::Tensor;

use crate::{
    batch::Batch,
    model::{cross_entropy_rows, floats},
    perturb::{Mixing, Term},
};

/// Head-averaged cross-entropy of every row against its label and, where rows are mixed, against its partner's.
pub struct RowLosses {
    pub(super) labels: Vec<usize>,
    own: Tensor<1>,
    partner: Option<(Mixing, Tensor<1>)>,
}

impl RowLosses {
    /// `mixing` is that of the activations; a batch that was cut and mixed brings its own.
    pub fn new(logits: Tensor<3>, batch: &Batch, mixing: Option<Mixing>) -> Self {
        let labels = batch.labels.clone();
        let own = cross_entropy_rows(logits.clone(), &labels);
        debug_assert!(batch.mixes.len() < 2, "rows are cut and mixed all together");
        let cut = || {
            let mix = batch.mixes.first()?;
            Some(Mixing { coefficient: mix.coefficient, partners: mix.permutation.clone() })
        };
        let partner = mixing.or_else(cut).map(|mixing| {
            let partners: Vec<usize> = mixing.partners.iter().map(|&row| labels[row]).collect();
            (mixing, cross_entropy_rows(logits, &partners))
        });
        Self { labels, own, partner }
    }

    /// The training loss.
    pub fn mean(&self) -> Tensor<1> {
        let own = self.own.clone().mean();
        match &self.partner {
            Some((Mixing { coefficient, .. }, partner)) => {
                own.mul_scalar(*coefficient) + partner.clone().mean().mul_scalar(1.0 - coefficient)
            }
            None => own,
        }
    }

    /// The loss taken apart by class.
    pub(super) fn terms(&self) -> Vec<Term> {
        let weight = self.partner.as_ref().map_or(1.0, |(mixing, _)| mixing.coefficient);
        let own = self.labels.iter().zip(floats(self.own.clone()));
        let mut terms: Vec<Term> =
            own.map(|(&class, loss)| Term { class, weight, loss: f64::from(loss) }).collect();
        if let Some((mixing, partner)) = &self.partner {
            let partners = mixing.partners.iter().map(|&row| self.labels[row]);
            let losses = partners.zip(floats(partner.clone()));
            terms.extend(losses.map(|(class, loss)| Term {
                class,
                weight: 1.0 - weight,
                loss: f64::from(loss),
            }));
        }
        terms
    }
}
