//! The choice Rainbow Memory makes at a task end (Bang et al. 2021): of each class an equal share, spread evenly from
//! samples the network is sure of to samples it is not.
//!
//! Pure: who the candidates are and how uncertain the network is of them is found out elsewhere.

use std::collections::BTreeMap;

use crate::random::Random;

/// Share of augmented copies whose predicted class is not the most frequent one; `votes` counts the copies of each
/// predicted class.
pub fn uncertainty(votes: &[usize]) -> f64 {
    let (most, all) = (votes.iter().copied().max().unwrap_or(0), votes.iter().sum::<usize>());
    1.0 - most as f64 / all.max(1) as f64
}

/// Positions to keep of that many candidates sorted by uncertainty: every ⌊candidates / keep⌋-th from the first.
pub fn spread(candidates: usize, keep: usize) -> Vec<usize> {
    if candidates <= keep {
        return (0..candidates).collect();
    }
    let step = candidates.checked_div(keep).unwrap_or(1);
    (0..keep).map(|kept| kept * step).collect()
}

/// Which candidates, by position, fill `capacity` slots: of each class an equal share, spread over `uncertainty` or, for
/// the first task, which has none, at random; slots left over go to any others, at random.
pub fn choose(
    classes: &[usize],
    uncertainty: Option<&[f64]>,
    capacity: usize,
    random: &mut Random,
) -> Vec<usize> {
    let mut by_class: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    for (position, &class) in classes.iter().enumerate() {
        by_class.entry(class).or_default().push(position);
    }
    let share = capacity / by_class.len().max(1);
    let mut chosen = Vec::with_capacity(capacity);
    for mut positions in by_class.into_values() {
        match uncertainty {
            Some(uncertainty) => {
                positions.sort_by(|&one, &other| uncertainty[one].total_cmp(&uncertainty[other]));
                chosen.extend(spread(positions.len(), share).into_iter().map(|place| positions[place]));
            }
            None => {
                random.shuffle(&mut positions);
                chosen.extend(positions.into_iter().take(share));
            }
        }
    }
    let mut taken = vec![false; classes.len()];
    chosen.iter().for_each(|&position| taken[position] = true);
    let mut unused: Vec<usize> = (0..classes.len()).filter(|&position| !taken[position]).collect();
    random.shuffle(&mut unused);
    chosen.extend(unused.into_iter().take(capacity - chosen.len()));
    chosen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_get_equal_shares_spread_over_their_uncertainty() {
        let classes = [0, 0, 0, 0, 1, 1, 1, 1];
        let uncertainty = [0.4, 0.1, 0.3, 0.2, 0.0, 0.0, 0.5, 0.5];
        let chosen = choose(&classes, Some(&uncertainty), 4, &mut Random::named(1, "rebuild"));
        // Class 0 sorted is 1, 3, 2, 0; class 1 keeps its order among equals.
        assert_eq!(chosen, [1, 2, 4, 6]);
    }

    #[test]
    fn slots_left_over_are_filled_with_others() {
        let classes = [0, 0, 0, 0, 0, 1];
        for uncertainty in [None, Some(&[0.0; 6][..])] {
            let mut chosen = choose(&classes, uncertainty, 5, &mut Random::named(1, "rebuild"));
            chosen.sort_unstable();
            chosen.dedup();
            assert_eq!(chosen.len(), 5, "two of class 0, the one of class 1, two more");
            assert!(chosen.contains(&5));
        }
    }

    #[test]
    fn more_classes_than_slots_are_drawn_at_random() {
        let chosen = choose(&[0, 1, 2, 3], Some(&[0.0; 4]), 2, &mut Random::named(1, "rebuild"));
        assert_eq!(chosen.len(), 2);
    }
}
