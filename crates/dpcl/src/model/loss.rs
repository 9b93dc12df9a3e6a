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

/// Mean entropy of the answers over rows and heads → scalar.
pub fn mean_entropy(logits: Tensor<3>) -> Tensor<1> {
    let log_probabilities = log_softmax(logits, 2);
    (log_probabilities.clone().exp() * log_probabilities).sum_dim(2).mean().neg()
}

/// Squared distance between logits [heads, rows, classes] and the `stored` logits of each row, averaged over all
/// elements compared → scalar. A row is compared over the width it was stored with; `None` if nothing is left.
pub fn stored_distance(logits: Tensor<3>, stored: &[&[f32]]) -> Option<Tensor<1>> {
    let [heads, rows, classes] = logits.dims();
    let compared = heads * stored.iter().map(|row| row.len().min(classes)).sum::<usize>();
    if compared == 0 {
        return None;
    }
    let (mut target, mut mask) = (vec![0.0_f32; rows * classes], vec![0.0_f32; rows * classes]);
    for (row, stored) in stored.iter().enumerate() {
        let width = stored.len().min(classes);
        target[row * classes..][..width].copy_from_slice(&stored[..width]);
        mask[row * classes..][..width].fill(1.0);
    }
    let device = logits.device();
    let tensor = |values| Tensor::<3>::from_data(TensorData::new(values, [1, rows, classes]), &device);
    let difference = (logits - tensor(target)) * tensor(mask);
    Some((difference.clone() * difference).sum().div_scalar(compared as f64))
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

/// KL(teacher ‖ student) of the answers of logits [heads, rows, classes], both divided by `temperature`, over classes that
/// both know, meaned over rows and heads → scalar. No gradient reaches the teacher.
pub fn divergence(student: Tensor<3>, teacher: Tensor<3>, temperature: f64) -> Tensor<1> {
    let teacher = Tensor::<3>::from_data(teacher.into_data(), &student.device());
    let expected = log_softmax(teacher.div_scalar(temperature), 2);
    let found = log_softmax(student.div_scalar(temperature), 2);
    (expected.clone().exp() * (expected - found)).sum_dim(2).mean()
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::model::floats;

    fn row(logits: [f32; 2]) -> Tensor<3> {
        Tensor::from_data(TensorData::new(logits.to_vec(), [1, 1, 2]), &Device::flex())
    }

    #[test]
    fn divergence_by_hand() {
        // Answers (3/4, 1/4) of the teacher and (1/2, 1/2) of the student, once both are halved.
        let teacher = row([2.0 * 3.0_f32.ln(), 0.0]);
        let student = row([1.0, 1.0]).autodiff().require_grad();
        let loss = divergence(student.clone(), teacher.clone(), 2.0);
        let expected = 0.75 * 1.5_f64.ln() + 0.25 * 0.5_f64.ln();
        assert!((f64::from(floats(loss.clone())[0]) - expected).abs() < 1e-6);
        // (student − teacher) / temperature.
        let gradient = floats(student.grad(&loss.backward()).unwrap());
        assert!((gradient[0] + 0.125).abs() < 1e-6 && (gradient[1] - 0.125).abs() < 1e-6, "{gradient:?}");
        assert!(floats(divergence(teacher.clone(), teacher, 2.0))[0].abs() < 1e-6);
    }
}
