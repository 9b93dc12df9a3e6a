//! Whether a learner knows what it does not know: single answers to the summary a record keeps, and that summary to
//! calibration error and risk–coverage curves.
//!
//! Knows answers as right or wrong with how sure they were; knows nothing of images, files or presentation.

use crate::record::{ConfidenceBin, Event, Kept, Uncertainty};
use crate::statistics::Curve;

/// Bins of confidence, as many as Guo et al. (2017) use.
const BINS: usize = 15;
/// Thresholds of a risk–coverage curve.
const QUANTILES: usize = 20;

/// One answer to a test image.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Whether it is right.
    pub correct: bool,
    /// Probability of the class answered.
    pub confidence: f64,
    /// Entropy of all probabilities, in nats.
    pub entropy: f64,
    /// Mutual information between answer and head, in nats.
    pub disagreement: f64,
}

/// What a record keeps of the answers after `samples` stream samples; their order matters only to the last bits of
/// sums. An answer whose confidence is not a number counts as not confident at all.
pub fn summarise(samples: u64, answers: &[Answer]) -> Uncertainty {
    Uncertainty {
        samples,
        calibration: calibration(answers),
        by_confidence: kept(answers, |answer| -sureness(answer)),
        by_entropy: kept(answers, |answer| answer.entropy),
        by_disagreement: kept(answers, |answer| answer.disagreement),
    }
}

fn sureness(answer: &Answer) -> f64 {
    // `max` gives the other argument where one is not a number.
    answer.confidence.max(0.0)
}

fn calibration(answers: &[Answer]) -> Vec<ConfidenceBin> {
    let mut bins = vec![ConfidenceBin::default(); BINS];
    for answer in answers {
        let confidence = sureness(answer);
        let place = (confidence * BINS as f64).ceil() as usize;
        let bin = &mut bins[place.clamp(1, BINS) - 1];
        bin.count += 1;
        bin.confidence += confidence;
        bin.correct += u64::from(answer.correct);
    }
    bins
}

/// For every twentieth of the answers the highest threshold of doubt that keeps at least that share.
fn kept(answers: &[Answer], doubt: fn(&Answer) -> f64) -> Vec<Kept> {
    // Adding zero makes the two zeros one: they are equally sure.
    let mut ranked: Vec<(f64, bool)> =
        answers.iter().map(|answer| (doubt(answer) + 0.0, answer.correct)).collect();
    ranked.sort_by(|a, b| a.0.total_cmp(&b.0));
    let quantile = |kept: usize| kept * QUANTILES / ranked.len();
    let (mut points, mut kept, mut correct) = (Vec::new(), 0, 0);
    for alike in ranked.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let before = quantile(kept);
        kept += alike.len();
        correct += alike.iter().filter(|(_, correct)| *correct).count();
        if quantile(kept) > before {
            points.push(Kept { kept: kept as u64, correct: correct as u64 });
        }
    }
    points
}

/// The summary of a run's last task end; older records have none.
pub fn last(events: &[Event]) -> Option<&Uncertainty> {
    events.iter().rev().find_map(|event| match event {
        Event::Uncertainty(uncertainty) => Some(uncertainty),
        _ => None,
    })
}

/// Expected calibration error: |accuracy − mean confidence| of each bin, weighted by its answers.
pub fn calibration_error(bins: &[ConfidenceBin]) -> Option<f64> {
    let count: f64 = bins.iter().map(|bin| bin.count as f64).sum();
    let gaps: f64 = bins.iter().map(|bin| (bin.correct as f64 - bin.confidence).abs()).sum();
    (count > 0.0).then(|| gaps / count)
}

/// Whether the thresholds tell any answers apart.
pub fn ranks(kept: &[Kept]) -> bool {
    kept.len() > 1
}

/// Share of wrong answers among those kept, over the share kept; at its end the share of all that are wrong.
pub fn risk_coverage(kept: &[Kept]) -> Curve {
    let all = kept.last().map_or(0.0, |all| all.kept as f64);
    kept.iter()
        .filter(|point| point.kept > 0)
        .map(|point| (point.kept as f64 / all, 1.0 - point.correct as f64 / point.kept as f64))
        .collect()
}

/// Area under the risk–coverage curve, straight between its points and level before the first: the mean risk over all
/// coverages. Answers in no order at all give the share that is wrong.
pub fn aurc(kept: &[Kept]) -> Option<f64> {
    let curve = risk_coverage(kept);
    let &(coverage, risk) = curve.first()?;
    let strips = curve.windows(2).map(|pair| {
        let [(from, high), (to, low)] = [pair[0], pair[1]];
        (to - from) * (high + low) / 2.0
    });
    Some(coverage * risk + strips.sum::<f64>())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn answer((confidence, disagreement, correct): (f64, f64, bool)) -> Answer {
        Answer { correct, confidence, entropy: 1.0 - confidence, disagreement }
    }

    fn four() -> Uncertainty {
        let answers = [(0.9, 0.3, true), (0.6, 0.0, false), (0.8, 0.1, true), (0.6, 0.2, true)].map(answer);
        summarise(7, &answers)
    }

    fn near(found: Option<f64>, expected: f64) -> bool {
        found.is_some_and(|found| (found - expected).abs() < 1e-12)
    }

    #[test]
    fn calibration_by_hand() {
        let bins = four().calibration;
        // Bins are a fifteenth wide and hold their upper edge: 0.6 is the end of the ninth, 0.8 of the twelfth.
        let filled: Vec<(usize, u64, u64)> = bins
            .iter()
            .enumerate()
            .filter(|(_, bin)| bin.count > 0)
            .map(|(place, bin)| (place, bin.count, bin.correct))
            .collect();
        assert_eq!(filled, [(8, 2, 1), (11, 1, 1), (13, 1, 1)]);
        // (|1 − 1.2| + |1 − 0.8| + |1 − 0.9|) / 4
        assert!(near(calibration_error(&bins), 0.125));
        assert_eq!(calibration_error(&[]), None);
    }

    #[test]
    fn risk_and_coverage_by_hand() {
        let found = four();
        // The two answers of confidence 0.6 come together.
        assert_eq!(risk_coverage(&found.by_confidence), [(0.25, 0.0), (0.5, 0.0), (1.0, 0.25)]);
        assert_eq!(found.by_confidence, found.by_entropy);
        assert!(near(aurc(&found.by_confidence), 0.5 * 0.125));
        let expected = [(0.25, 1.0), (0.5, 0.5), (0.75, 1.0 - 2.0 / 3.0), (1.0, 0.25)];
        assert_eq!(risk_coverage(&found.by_disagreement), expected);
        // 1/4 + (3/4 + 5/12 + 7/24) / 4
        assert!(near(aurc(&found.by_disagreement), 0.25 + 35.0 / 96.0));
    }

    #[test]
    fn answers_that_are_all_alike_are_not_ranked() {
        let answers = [0.0, -0.0, 0.0, 0.0].map(|zero| answer((0.5, zero, zero.is_sign_negative())));
        let found = summarise(0, &answers).by_disagreement;
        assert_eq!(found, [Kept { kept: 4, correct: 1 }]);
        assert!(!ranks(&found));
        assert_eq!(aurc(&found), Some(0.75));
    }

    #[test]
    fn a_hundred_answers_have_twenty_thresholds() {
        let answers: Vec<Answer> =
            (1..=100).map(|place| answer((f64::from(place) / 100.0, 0.0, place > 50))).collect();
        let kept = summarise(0, &answers).by_confidence;
        let expected: Vec<Kept> =
            (1..=20_u64).map(|step| Kept { kept: 5 * step, correct: (5 * step).min(50) }).collect();
        assert_eq!(kept, expected);
    }

    #[test]
    fn what_is_not_a_number_is_the_least_sure() {
        let answers = [(f64::NAN, f64::NAN, false), (0.4, 0.2, true)].map(answer);
        let found = summarise(0, &answers);
        assert_eq!(found.by_confidence[0], Kept { kept: 1, correct: 1 });
        assert_eq!(found.by_disagreement, found.by_confidence);
        assert_eq!(found.calibration[0], ConfidenceBin { count: 1, confidence: 0.0, correct: 0 });
        assert_eq!(summarise(3, &[]).by_entropy, []);
    }

    proptest! {
        #[test]
        fn summaries_keep_their_promises(
            answers in prop::collection::vec((0..=20_u8, 0..4_u8, any::<bool>()), 1..150),
        ) {
            let answers: Vec<Answer> = answers
                .into_iter()
                .map(|(sure, apart, right)| answer((f64::from(sure) / 20.0, f64::from(apart), right)))
                .collect();
            let found = summarise(9, &answers);
            let wrong = answers.iter().filter(|answer| !answer.correct).count() as f64;
            let error = wrong / answers.len() as f64;
            for kept in [&found.by_confidence, &found.by_entropy, &found.by_disagreement] {
                let curve = risk_coverage(kept);
                let (coverage, risk) = curve[curve.len() - 1];
                prop_assert_eq!(coverage, 1.0);
                prop_assert!((risk - error).abs() < 1e-12, "the risk of answering all is the error rate");
                prop_assert!(kept.len() <= QUANTILES);
                prop_assert!(kept.windows(2).all(|pair| pair[0].kept < pair[1].kept));
                prop_assert!(aurc(kept).is_some_and(|area| (0.0..=1.0).contains(&area)));
            }
            let ece = calibration_error(&found.calibration);
            prop_assert!(ece.is_some_and(|ece| (0.0..=1.0 + 1e-12).contains(&ece)));
            let mut turned = answers.clone();
            turned.reverse();
            let turned = summarise(9, &turned);
            prop_assert_eq!(turned.by_confidence, found.by_confidence.clone());
            prop_assert_eq!(turned.by_disagreement, found.by_disagreement.clone());

            let line = serde_json::to_string(&Event::Uncertainty(found.clone())).unwrap();
            prop_assert!(line.starts_with(r#"{"event":"uncertainty","samples":9,"#), "{}", line);
            prop_assert_eq!(serde_json::from_str::<Event>(&line).unwrap(), Event::Uncertainty(found));
        }
    }
}
