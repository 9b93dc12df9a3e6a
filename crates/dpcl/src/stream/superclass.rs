//! Superclass (CIFAR100-SC): as disjoint, but the classes of a superclass stay together.
//!
//! The published benchmark has 20 tasks of one superclass each in five fixed orders; with fewer tasks consecutive
//! superclasses are joined. Inside a superclass the classes keep the order of their numbers.

use super::SuperclassOrder;
use crate::error::{Error, Result};
use crate::random::Random;

/// The classes of each superclass, superclass by superclass in the order asked for.
pub(super) fn units(
    superclasses: Option<&[usize]>,
    order: SuperclassOrder,
    random: &mut Random,
) -> Result<Vec<Vec<usize>>> {
    let superclasses = superclasses.ok_or_else(|| {
        Error::bad_key("scenario", "superclass needs a data set with superclasses, such as cifar100")
    })?;
    let count = superclasses.iter().max().map_or(0, |last| last + 1);
    let order = match fixed(order) {
        None => random.permutation(count),
        Some(order) if count == order.len() => order.to_vec(),
        Some(order) => {
            let problem = format!(
                "the published orders are of {} superclasses, and this data set has {count}; use seeded",
                order.len()
            );
            return Err(Error::bad_key("superclass_order", problem));
        }
    };
    let mut members = vec![Vec::new(); count];
    for (class, &superclass) in superclasses.iter().enumerate() {
        members[superclass].push(class);
    }
    Ok(order.into_iter().map(|superclass| std::mem::take(&mut members[superclass])).collect())
}

/// The task orders of the benchmark of Yoon et al. 2020 ("Scalable and order-robust continual learning").
fn fixed(order: SuperclassOrder) -> Option<&'static [usize; 20]> {
    match order {
        SuperclassOrder::Seeded => None,
        SuperclassOrder::A => Some(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19]),
        SuperclassOrder::B => Some(&[15, 12, 5, 9, 7, 16, 18, 17, 1, 0, 3, 8, 11, 14, 10, 6, 2, 4, 13, 19]),
        SuperclassOrder::C => Some(&[17, 1, 19, 18, 12, 7, 6, 0, 11, 15, 10, 5, 13, 3, 9, 16, 4, 14, 2, 8]),
        SuperclassOrder::D => Some(&[11, 9, 6, 5, 12, 4, 0, 10, 13, 7, 14, 3, 15, 16, 8, 1, 2, 19, 18, 17]),
        SuperclassOrder::E => Some(&[6, 14, 0, 11, 12, 17, 13, 4, 9, 1, 7, 19, 8, 10, 3, 15, 18, 5, 2, 16]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SMALL: [usize; 5] = [1, 0, 1, 2, 0];

    #[test]
    fn published_orders_are_permutations_and_differ() {
        let orders = [SuperclassOrder::A, SuperclassOrder::B, SuperclassOrder::C, SuperclassOrder::D];
        let mut seen: Vec<_> = orders.into_iter().chain([SuperclassOrder::E]).filter_map(fixed).collect();
        for order in &seen {
            let mut sorted = order.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..20).collect::<Vec<_>>());
        }
        seen.sort_unstable();
        seen.dedup();
        assert_eq!(seen.len(), 5);
    }

    #[test]
    fn a_seeded_order_keeps_superclasses_whole() {
        let mut random = Random::named(4, "class-order");
        let mut found = units(Some(&SMALL), SuperclassOrder::Seeded, &mut random).unwrap();
        found.sort();
        assert_eq!(found, [vec![0, 2], vec![1, 4], vec![3]]);
    }

    #[test]
    fn what_cannot_be_ordered_is_refused() {
        let mut random = Random::named(4, "class-order");
        let error = units(None, SuperclassOrder::Seeded, &mut random).unwrap_err().to_string();
        assert_eq!(
            error,
            "configuration key `scenario`: superclass needs a data set with superclasses, such as cifar100"
        );
        let error = units(Some(&SMALL), SuperclassOrder::C, &mut random).unwrap_err().to_string();
        assert!(error.contains("`superclass_order`") && error.contains("this data set has 3"), "{error}");
    }
}
