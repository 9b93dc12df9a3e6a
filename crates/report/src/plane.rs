//! Many numbers a point to two: t-SNE in its exact form, and principal components to start it from, so that the picture
//! repeats.
//!
//! L. van der Maaten, G. Hinton: Visualizing Data using t-SNE, JMLR 2008. Points that are near each other stay near; how
//! far apart those are that are not says little. Written here because it is short: the crates that have it bring a dozen
//! others, and start from chance.

#![allow(clippy::needless_range_loop, reason = "pairs of points and two axes are clearest by number")]

/// What is usual.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Settings {
    /// Neighbours that a point counts with, about; never more than a third of the points.
    pub perplexity: f64,
    /// Steps of descent.
    pub steps: usize,
}

impl Default for Settings {
    fn default() -> Self {
        Self { perplexity: 30.0, steps: 1000 }
    }
}

/// How much nearness counts for more in the first quarter of the steps.
const EXAGGERATION: f64 = 12.0;
/// Halvings of an interval until a width is known.
const HALVINGS: usize = 60;
/// Multiplications by which a principal direction is found.
const POWER_STEPS: usize = 60;

/// A place in the plane for each point. Points have equally many coordinates, all finite.
pub fn embed(points: &[Vec<f64>], settings: Settings) -> Vec<[f64; 2]> {
    let count = points.len();
    if count < 3 {
        return (0..count).map(|at| [at as f64, 0.0]).collect();
    }
    let near = nearness(points, settings.perplexity.min((count - 1) as f64 / 3.0));
    let mut places = principal(points);
    let (mut speed, mut gains) = (vec![[0.0_f64; 2]; count], vec![[1.0_f64; 2]; count]);
    let early = settings.steps / 4;
    let rate = (count as f64 / EXAGGERATION / 4.0).max(50.0);
    for step in 0..settings.steps {
        let (factor, momentum) = if step < early { (EXAGGERATION, 0.5) } else { (1.0, 0.8) };
        let slope = slope(&near, &places, factor);
        for at in 0..count {
            for axis in 0..2 {
                let gain = &mut gains[at][axis];
                let turned = (slope[at][axis] > 0.0) != (speed[at][axis] > 0.0);
                *gain = if turned { *gain + 0.2 } else { (*gain * 0.8).max(0.01) };
                speed[at][axis] = momentum * speed[at][axis] - rate * *gain * slope[at][axis];
                places[at][axis] += speed[at][axis];
            }
        }
        centre(&mut places);
    }
    places
}

/// The probability that a point picks another as its neighbour, made symmetric, row after row.
fn nearness(points: &[Vec<f64>], perplexity: f64) -> Vec<f64> {
    let count = points.len();
    let squares: Vec<f64> =
        points.iter().flat_map(|one| points.iter().map(|other| square(one, other))).collect();
    let mut near = vec![0.0; count * count];
    for at in 0..count {
        let distances = &squares[at * count..(at + 1) * count];
        let row = &mut near[at * count..(at + 1) * count];
        let least = (0..count)
            .filter(|&other| other != at)
            .map(|other| distances[other])
            .fold(f64::INFINITY, f64::min);
        let (mut low, mut high, mut width) = (0.0_f64, f64::INFINITY, 1.0_f64);
        for _ in 0..HALVINGS {
            let mut sum = 0.0;
            for other in 0..count {
                row[other] = if other == at { 0.0 } else { (-(distances[other] - least) * width).exp() };
                sum += row[other];
            }
            row.iter_mut().for_each(|share| *share /= sum);
            let entropy: f64 =
                row.iter().filter(|share| **share > 0.0).map(|share| -share * share.ln()).sum();
            if entropy > perplexity.ln() {
                low = width;
            } else {
                high = width;
            }
            width = if high.is_finite() { (low + high) / 2.0 } else { width * 2.0 };
        }
    }
    let both = |one: usize, other: usize| near[one * count + other] + near[other * count + one];
    (0..count * count).map(|at| (both(at / count, at % count) / (2 * count) as f64).max(1e-12)).collect()
}

fn square(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| (a - b).powi(2)).sum()
}

/// The gradient of the divergence between nearness of the points and of their places.
fn slope(near: &[f64], places: &[[f64; 2]], factor: f64) -> Vec<[f64; 2]> {
    let count = places.len();
    let kernel = |one: &[f64; 2], other: &[f64; 2]| 1.0 / (1.0 + square(one, other));
    let sum: f64 = places
        .iter()
        .enumerate()
        .map(|(at, one)| {
            places
                .iter()
                .enumerate()
                .filter(|(other, _)| *other != at)
                .map(|(_, other)| kernel(one, other))
                .sum::<f64>()
        })
        .sum();
    let of = |at: usize| {
        let mut slope = [0.0_f64; 2];
        for other in (0..count).filter(|&other| other != at) {
            let kernel = kernel(&places[at], &places[other]);
            let pull = 4.0 * (factor * near[at * count + other] - kernel / sum) * kernel;
            for axis in 0..2 {
                slope[axis] += pull * (places[at][axis] - places[other][axis]);
            }
        }
        slope
    };
    (0..count).map(of).collect()
}

/// The two directions of largest variance, scaled to small places around the middle.
fn principal(points: &[Vec<f64>]) -> Vec<[f64; 2]> {
    let width = points[0].len();
    let mean: Vec<f64> = (0..width)
        .map(|axis| points.iter().map(|point| point[axis]).sum::<f64>() / points.len() as f64)
        .collect();
    let mut left: Vec<Vec<f64>> =
        points.iter().map(|point| point.iter().zip(&mean).map(|(a, b)| a - b).collect()).collect();
    let mut places = vec![[0.0; 2]; points.len()];
    for axis in 0..2 {
        // Not along an axis, so that no data can be square to it by design.
        let mut direction: Vec<f64> = (0..width).map(|at| ((at + axis * width + 1) as f64).sin()).collect();
        for _ in 0..POWER_STEPS {
            let along: Vec<f64> = left.iter().map(|point| dot(point, &direction)).collect();
            let next: Vec<f64> = (0..width)
                .map(|at| left.iter().zip(&along).map(|(point, along)| point[at] * along).sum())
                .collect();
            let length = dot(&next, &next).sqrt();
            if length < 1e-30 {
                break;
            }
            direction = next.into_iter().map(|value| value / length).collect();
        }
        let along: Vec<f64> = left.iter().map(|point| dot(point, &direction)).collect();
        let deviation = (dot(&along, &along) / points.len() as f64).sqrt().max(1e-30);
        for ((place, point), along) in places.iter_mut().zip(&mut left).zip(along) {
            place[axis] = 1e-4 * along / deviation;
            point.iter_mut().zip(&direction).for_each(|(value, direction)| *value -= along * direction);
        }
    }
    places
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(a, b)| a * b).sum()
}

fn centre(places: &mut [[f64; 2]]) {
    for axis in 0..2 {
        let mean = places.iter().map(|place| place[axis]).sum::<f64>() / places.len() as f64;
        places.iter_mut().for_each(|place| place[axis] -= mean);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Three clouds of 12 points in five dimensions.
    fn clouds() -> Vec<Vec<f64>> {
        let noise = |at: usize, axis: usize| ((at * 31 + axis * 17) as f64 * 12.9898).sin();
        (0..36)
            .map(|at| (0..5).map(|axis| noise(at, axis) + if axis == at / 12 { 20.0 } else { 0.0 }).collect())
            .collect()
    }

    #[test]
    fn what_is_near_stays_near_and_the_picture_repeats() {
        let points = clouds();
        let places = embed(&points, Settings { perplexity: 5.0, steps: 400 });
        assert_eq!(places, embed(&points, Settings { perplexity: 5.0, steps: 400 }));
        for (at, place) in places.iter().enumerate() {
            let mut others: Vec<usize> = (0..36).filter(|&other| other != at).collect();
            others.sort_by(|&a, &b| square(place, &places[a]).total_cmp(&square(place, &places[b])));
            assert!(others[..8].iter().all(|other| other / 12 == at / 12), "{at}: {others:?}");
        }
    }

    #[test]
    fn a_point_counts_with_as_many_neighbours_as_asked_for() {
        let points = clouds();
        let near = nearness(&points, 5.0);
        assert!((near.iter().sum::<f64>() - 1.0).abs() < 1e-6);
        assert!((0..36 * 36).all(|at| (near[at] - near[(at % 36) * 36 + at / 36]).abs() < 1e-15));
    }

    #[test]
    fn the_slope_is_that_of_the_divergence() {
        let near = nearness(&clouds()[..6], 1.5);
        let mut places: Vec<[f64; 2]> =
            (0..6).map(|at| [(at as f64).sin(), (at as f64 * 2.0).cos()]).collect();
        let divergence = |places: &[[f64; 2]]| {
            let kernel =
                |a: usize, b: usize| if a == b { 0.0 } else { 1.0 / (1.0 + square(&places[a], &places[b])) };
            let sum: f64 = (0..36).map(|at| kernel(at / 6, at % 6)).sum();
            (0..36)
                .filter(|at| at / 6 != at % 6)
                .map(|at| near[at] * (near[at] / (kernel(at / 6, at % 6) / sum)).ln())
                .sum::<f64>()
        };
        let found = slope(&near, &places, 1.0);
        let before = divergence(&places);
        places[2][1] += 1e-6;
        assert!(((divergence(&places) - before) / 1e-6 - found[2][1]).abs() < 1e-4);
    }

    #[test]
    fn few_or_equal_points_have_places() {
        assert_eq!(embed(&[vec![1.0], vec![2.0]], Settings::default()).len(), 2);
        let equal = embed(&vec![vec![1.0, 2.0]; 8], Settings { perplexity: 2.0, steps: 20 });
        assert!(equal.iter().flatten().all(|value| value.is_finite()));
    }
}
