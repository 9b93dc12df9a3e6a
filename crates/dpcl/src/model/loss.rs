//! Cross-entropies on logits [heads, rows, classes], averaged over the heads.

use burn::tensor::{Int, Tensor, TensorData, activation::log_softmax};

/// Cross-entropy of every row against its label, averaged over heads → `[rows]`.
pub fn cross_entropy_rows(logits: Tensor<3>, labels: &[usize]) -> Tensor<1> {
    let [heads, rows, _] = logits.dims();
    let device = logits.device();
    let indices: Vec<i64> = labels.iter().map(|&label| label as i64).collect();
    let indices = Tensor::<3, Int>::from_data(TensorData::new(indices, [1, rows, 1]), &device);
    let chosen = log_softmax(logits, 2).gather(2, indices.repeat_dim(0, heads));
    chosen.mean_dim(0).reshape([rows]).neg()
}

/// Mean cross-entropy over rows and heads → scalar.
pub fn cross_entropy(logits: Tensor<3>, labels: &[usize]) -> Tensor<1> {
    cross_entropy_rows(logits, labels).mean()
}

/// `coefficient` · CE(labels) + (1 − `coefficient`) · CE(partners), meaned over rows and heads → scalar.
pub fn mixed_cross_entropy(
    logits: Tensor<3>,
    labels: &[usize],
    partners: &[usize],
    coefficient: f64,
) -> Tensor<1> {
    let own = cross_entropy(logits.clone(), labels).mul_scalar(coefficient);
    own + cross_entropy(logits, partners).mul_scalar(1.0 - coefficient)
}

/// Mean entropy of the answers over rows and heads → scalar.
pub fn mean_entropy(logits: Tensor<3>) -> Tensor<1> {
    let log_probabilities = log_softmax(logits, 2);
    (log_probabilities.clone().exp() * log_probabilities).sum_dim(2).mean().neg()
}
