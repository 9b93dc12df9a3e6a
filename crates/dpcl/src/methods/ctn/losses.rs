//! Losses over the columns of a row's own task.

use burn::tensor::{Tensor, TensorData, activation::log_softmax};

/// Added to the logits of columns that are not a row's own: their probability is nothing and their gradient zero.
const NEVER: f32 = -1e9;

/// Logits [1, rows, classes] in which every row has the `columns` of its own only.
pub fn masked(logits: Tensor<3>, columns: &[&[usize]]) -> Tensor<3> {
    let [_, rows, classes] = logits.dims();
    let mut mask = vec![NEVER; rows * classes];
    for (mask, own) in mask.chunks_exact_mut(classes).zip(columns) {
        own.iter().for_each(|&column| mask[column] = 0.0);
    }
    let mask = Tensor::<3>::from_data(TensorData::new(mask, [1, rows, classes]), &logits.device().inner());
    logits + mask
}

/// KL(stored ‖ answer) of the answers of logits [1, rows, classes] divided by `temperature`: Σ over all rows and
/// their columns, divided by how many these are → scalar. What is `stored` of a row are probabilities of its first
/// columns, and its answer is over those; a row with nothing stored adds nothing. `None` if nothing is.
pub fn stored_divergence(
    logits: Tensor<3>,
    stored: &[&[f32]],
    columns: &[&[usize]],
    temperature: f64,
) -> Option<Tensor<1>> {
    let [_, rows, classes] = logits.dims();
    let elements: usize = columns.iter().map(|own| own.len()).sum();
    let (mut target, mut constant) = (vec![0.0_f32; rows * classes], 0.0);
    for ((target, own), stored) in target.chunks_exact_mut(classes).zip(columns).zip(stored) {
        for (&column, &probability) in own.iter().zip(*stored) {
            target[column] = probability;
            let probability = f64::from(probability);
            constant += if probability > 0.0 { probability * probability.ln() } else { 0.0 };
        }
    }
    if stored.iter().all(|stored| stored.is_empty()) {
        return None;
    }
    let compared: Vec<&[usize]> =
        columns.iter().zip(stored).map(|(own, stored)| &own[..stored.len().min(own.len())]).collect();
    let target =
        Tensor::<3>::from_data(TensorData::new(target, [1, rows, classes]), &logits.device().inner());
    let answer = log_softmax(masked(logits.div_scalar(temperature), &compared), 2);
    let crossed = (target * answer).sum().neg();
    Some(crossed.add_scalar(constant).div_scalar(elements as f64))
}

#[cfg(test)]
mod tests {
    use burn::tensor::Device;

    use super::*;
    use crate::model::{cross_entropy, floats};

    fn logits(rows: &[[f32; 3]]) -> Tensor<3> {
        let data = TensorData::new(rows.concat(), [1, rows.len(), 3]);
        Tensor::from_data(data, &Device::flex()).autodiff().require_grad()
    }

    fn close(found: &[f32], expected: &[f64]) {
        for (found, expected) in found.iter().zip(expected) {
            assert!((f64::from(*found) - expected).abs() < 1e-6, "{found} for {expected}");
        }
    }

    #[test]
    fn masked_columns_take_no_part_and_get_no_gradient() {
        let logits = logits(&[[1.0, 9.0, 0.0], [0.0, 9.0, 2.0]]);
        let loss = cross_entropy(masked(logits.clone(), &[&[0, 2], &[1, 2]]), &[0, 2]);
        let [first, second] = [(-1.0_f64).exp().ln_1p(), 7.0_f64.exp().ln_1p()];
        close(&floats(loss.clone()), &[(first + second) / 2.0]);
        let gradient = floats(logits.grad(&loss.backward()).unwrap());
        assert_eq!((gradient[1], gradient[3]), (0.0, 0.0));
        assert!(gradient[0] < 0.0 && gradient[2] > 0.0 && gradient[4] > 0.0);
    }

    #[test]
    fn divergence_by_hand() {
        // Answers (1/2, 1/2) of both rows over their own columns, stored (3/4, 1/4) of the first, nothing of the
        // second.
        let logits = logits(&[[1.0, 50.0, 1.0], [7.0, 7.0, 7.0]]);
        let columns: [&[usize]; 2] = [&[2, 0], &[0, 1, 2]];
        let loss = stored_divergence(logits.clone(), &[&[0.75, 0.25], &[]], &columns, 5.0).unwrap();
        let divergence = 0.75 * 1.5_f64.ln() + 0.25 * 0.5_f64.ln();
        close(&floats(loss.clone()), &[divergence / 5.0]);
        // (answer − stored) / temperature / elements.
        let gradient = floats(logits.grad(&loss.backward()).unwrap());
        close(&gradient, &[0.25 / 25.0, 0.0, -0.25 / 25.0, 0.0, 0.0, 0.0]);
        assert!(stored_divergence(logits, &[&[], &[]], &columns, 5.0).is_none());
    }

    #[test]
    fn what_was_stored_of_fewer_columns_is_compared_over_those() {
        let logits = logits(&[[2.0, 2.0, 80.0]]);
        let loss = stored_divergence(logits, &[&[0.5, 0.5]], &[&[0, 1, 2]], 1.0).unwrap();
        close(&floats(loss), &[0.0]);
    }
}
