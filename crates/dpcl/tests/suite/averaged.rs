//! What the average of a network and its teaching change, and where they are refused.

use crate::baselines::{learn, learner, losses, refusal};
use crate::quarters::samples;

#[test]
fn training_does_not_see_the_average_and_a_teacher_is_seen() {
    let samples = samples(48);
    let learned = |text: &str| {
        let mut learner = learner(text);
        let losses = losses(learn(&mut learner, &samples));
        (losses, learner)
    };
    let (plain, _) = learned("method = 'er'");
    let (averaged, answers) = learned("method = 'er'\naverage = 20");
    let (taught, _) = learned("method = 'er'\naverage = 20\nteacher = 1.0");
    assert_eq!(plain, averaged);
    assert_ne!(plain, taught);
    let held = answers.parameters();
    assert_eq!(held.state, held.network, "the average is counted");
}

#[test]
fn statistics_measured_on_the_memory_change_answers_and_nothing_else() {
    let samples = samples(48);
    let learned = |statistics: &str| {
        let mut learner =
            learner(&format!("method = 'er'\naverage = 20\naverage_statistics = '{statistics}'"));
        let losses = losses(learn(&mut learner, &samples));
        let answers = || learner.predict_all(std::slice::from_ref(&samples[0].0)).unwrap();
        let answered = answers();
        assert_eq!(answered, answers());
        (losses, answered)
    };
    let (averaged, measured) = (learned("averaged"), learned("memory"));
    assert_eq!(averaged.0, measured.0);
    assert_ne!(averaged.1, measured.1);
}

#[test]
fn a_teacher_and_an_asymmetric_loss_are_refused_where_nothing_would_come_of_them() {
    let refused = |text: &str, key: &str| {
        let refusal = refusal(text);
        assert!(refusal.starts_with(key), "{refusal}");
    };
    refused("method = 'er'\nteacher = 1.0", "teacher: the teacher is the average");
    refused("method = 'gdumb'\naverage = 9\nteacher = 1.0", "teacher: `gdumb`");
    for method in ["dpcl", "clib", "bic", "der++", "joint"] {
        refused(&format!("method = '{method}'\nasymmetric = true"), "asymmetric: ");
    }
}
