//! Numbers that are none. Training that ran away leaves them in weights and statistics, where a ReLU hides them from the
//! loss and from the answers.

/// Numbers looked at between two looks at whether to go on: one vectorised loop.
const PIECE: usize = 1 << 12;

/// Whether every number is finite.
pub fn all_finite(numbers: &[f32]) -> bool {
    let finite = |piece: &[f32]| piece.iter().fold(true, |all, number| all & number.is_finite());
    numbers.chunks(PIECE).all(finite)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_bad_number_is_found_wherever_it_stands() {
        let mut numbers = vec![f32::MAX; 2 * PIECE + 3];
        assert!(all_finite(&numbers) && all_finite(&[]));
        for at in [0, PIECE - 1, PIECE, 2 * PIECE + 2] {
            for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
                let good = std::mem::replace(&mut numbers[at], bad);
                assert!(!all_finite(&numbers), "{bad} at {at}");
                numbers[at] = good;
            }
        }
    }
}
