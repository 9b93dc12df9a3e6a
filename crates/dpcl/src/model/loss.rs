//! Cross-entropies on logits [heads, rows, classes], averaged over the heads.

use burn::tensor::{
    Int, Tensor, TensorData,
    activation::{log_softmax, softmax},
};

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

/// Distillation: cross-entropy of `student` logits against the answers of a `teacher`, both divided by `temperature`,
/// over the classes the teacher knows, which are the student's first; meaned over rows and heads → scalar. No gradient
/// reaches the teacher.
pub fn distillation(student: Tensor<3>, teacher: Tensor<3>, temperature: f64) -> Tensor<1> {
    let [_, _, known] = teacher.dims();
    let teacher = Tensor::from_data(teacher.into_data(), &student.device());
    let answers = softmax(teacher.div_scalar(temperature), 2);
    let own = log_softmax(student.narrow(2, 0, known).div_scalar(temperature), 2);
    (answers * own).sum_dim(2).mean().neg()
}
