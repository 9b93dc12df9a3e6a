//! Keys of DPCL as a learner shows them: what an ablation switches off, where each key acts, and that every reading
//! learns and resumes exactly.

use std::collections::{BTreeMap, BTreeSet};

use crate::quarters::{config, learner, perturbed, samples, taught};
use dpcl::method::Step;
use dpcl::{Image, Learner};

/// The parts that follow disagreement, as the paper has them.
const PIMA: &str = "method = 'dpcl'\naverage = 0\nmemory_scheme = 'pim'\nrate = 'pima'\n[dpcl]\n";

/// Losses of the training steps that samples set off.
fn teach(learner: &mut Learner, samples: &[(Image, usize)]) -> Vec<f64> {
    let steps = samples.iter().flat_map(|(image, class)| learner.observe(image, *class).unwrap().steps);
    steps.map(|step| step.loss).collect()
}

#[test]
fn every_reading_learns_and_resumes_exactly() {
    let readings = [
        "",
        "noise = 'paper'\nlayers = [0, 1, 2, 3, 4]\nbsc_window = 0",
        "bsc_window = 2\nrank = 0\npredict = 'mean'",
        "noise = 'paper'\ndisagreement_pass = 'clean'\nloss_source = 'clean'\nlr_lag = 'collection'",
        "disagreement_heads = 'current'\nlr_rule = 'alg3'\npim_keep = 'low'\npim_admit_new_class = false",
        "heads = 1\ndraws = 3",
        "pfi = false\npredict = 'current'",
        "disagreement_between = 'draws'\ndisagreement_draws = 3\noffered_disagreement = 'mean'\n\
         pfi_larger_share = true\nhistory_start = 'first'",
        "disagreement_heads = 'mean'\npfi_probability = 0.5\npfi_statistics = 'clean'\nhistory_start = 'class'",
    ];
    let samples = samples(40);
    let mut states = Vec::new();
    for reading in readings {
        let config = config(&format!("{PIMA}period = 4\n{}", perturbed(reading)));
        let (mut whole, mut first, mut second) = (learner(&config), learner(&config), learner(&config));
        let mut losses = teach(&mut whole, &samples[..22]);
        assert_eq!(teach(&mut first, &samples[..22]), losses, "{reading}");
        second.restore(&first.state()).unwrap();
        for sample in samples[22..].chunks(1) {
            let learned = teach(&mut whole, sample);
            assert_eq!(teach(&mut second, sample), learned, "{reading}");
            second.predict(&sample[0].0).unwrap();
            losses.extend(learned);
        }
        assert!(whole.state() == second.state(), "{reading}");
        let answer = whole.predict(&samples[0].0).unwrap();
        assert_eq!(answer, second.predict(&samples[0].0).unwrap(), "{reading}");
        assert!(answer.entropy >= answer.disagreement, "{reading}");
        assert!(whole.memory().unwrap().history().iter().any(|&value| value > 0.0), "{reading}");

        assert_eq!((losses.len(), whole.counters()["collections"]), (40, 10.0), "{reading}");
        // New classes came with the twentieth step.
        let [new, last] = [20, 32].map(|step| losses[step..][..8].iter().sum::<f64>() / 8.0);
        assert!(last < new - 0.1, "{reading}: {last} after {new}");
        states.push((reading, whole.state()));
    }
    for (position, (one, state)) in states.iter().enumerate() {
        for (other, other_state) in &states[..position] {
            assert!(state.part("method") != other_state.part("method"), "{one} as {other}");
        }
    }
}

/// Each key with another value than its default, and a part of the state that shows it first.
const KEYS: [(&str, &str, &str); 30] = [
    ("pfi", "false", "core.model"),
    ("sigma_a", "1.2", "core.model"),
    ("sigma_m", "0.8", "core.model"),
    ("alpha", "4.0", "core.model"),
    ("beta", "4.0", "core.model"),
    ("layers", "[3, 4]", "method.perturbed.pfi"),
    ("noise", "'paper'", "core.model"),
    ("kappa", "0.5", "method.perturbed.losses"),
    ("loss_source", "'clean'", "method.perturbed.losses"),
    ("heads", "3", "core.model.heads"),
    ("period", "3", "method.perturbed.bsc"),
    ("rank", "0", "method.perturbed.bsc"),
    ("bsc_window", "2", "method.perturbed.bsc"),
    ("draws", "2", "method.memory"),
    ("disagreement_between", "'heads'", "method.memory"),
    ("disagreement_draws", "2", "method.memory"),
    ("pfi_probability", "0.5", "core.model"),
    ("pfi_larger_share", "true", "method.memory"),
    ("pfi_statistics", "'clean'", "core.model"),
    ("offered_disagreement", "'mean'", "method.memory"),
    ("history_start", "'class'", "method.memory"),
    ("disagreement_pass", "'clean'", "method.memory"),
    ("disagreement_heads", "'current'", "method.memory"),
    ("pim_keep", "'low'", "method.memory"),
    ("pim_admit_new_class", "false", "method.memory"),
    ("gamma", "0.5", "method.memory"),
    ("omega", "1.5", "method.rate"),
    ("lr_rule", "'alg3'", "method.rate"),
    ("lr_lag", "'collection'", "method.rate"),
    ("lr_clamp", "[1.0, 1.0]", "method.rate"),
];

#[test]
fn every_key_makes_a_difference_where_it_acts() {
    let samples = samples(40);
    let state = |keys: &str| taught(&config(&format!("{PIMA}{}", perturbed(keys))), &samples).state();
    let mut without = BTreeMap::new();
    for (key, value, part) in KEYS {
        let beside = match key {
            "period" => "",
            // Only the paper's noise asks how hard classes are.
            "loss_source" => "period = 4\nnoise = 'paper'\n",
            // What is new is disputed and would be let in anyway.
            "pim_admit_new_class" => "period = 4\npim_keep = 'low'\n",
            // Not a divisor of the number of steps: a change is left waiting for the next snapshot.
            "lr_lag" => "period = 7\n",
            _ => "period = 4\n",
        };
        let without = without.entry(beside).or_insert_with_key(|beside| state(beside));
        let with = state(&format!("{beside}{key} = {value}"));
        assert!(with.part(part) != without.part(part), "{key} = {value}: {part} is the same");
    }

    let all = config("method = 'dpcl'").check().unwrap().config().sections.remove("dpcl").unwrap();
    let tried: BTreeSet<&str> = KEYS.iter().map(|(key, ..)| *key).chain(["bsc", "predict"]).collect();
    assert_eq!(
        all.keys().map(String::as_str).collect::<BTreeSet<_>>(),
        tried,
        "here or in a test of its own"
    );
}

#[test]
fn how_it_answers_does_not_change_what_it_learns() {
    let samples = samples(40);
    let [posterior, mean, current] = ["posterior", "mean", "current"]
        .map(|predict| taught(&config(&format!("{PIMA}period = 4\npredict = '{predict}'")), &samples));
    assert!(posterior.state() == mean.state() && posterior.state() == current.state());
    let [posterior, mean, current] =
        [posterior, mean, current].map(|learner| learner.predict(&samples[0].0).unwrap());
    assert_ne!(posterior, mean);
    assert_ne!(posterior, current);
    assert_ne!(mean, current);
}

/// What a learner of `STEPS` samples, as many training steps, two new classes at the beginning and two in the middle,
/// leaves to be seen.
struct Seen {
    learner: Learner,
    losses: Vec<f64>,
    rates: Vec<f64>,
    perturbed: f64,
    collections: Option<f64>,
    /// Moves of a rate that follows disagreement.
    moves: Option<f64>,
    /// Whether disagreement was measured.
    measured: bool,
}

const STEPS: usize = 24;

impl Seen {
    fn of(text: &str) -> Self {
        let mut learner = learner(&config(text));
        let observe = |(image, class): &(Image, usize)| learner.observe(image, *class).unwrap().steps;
        let steps: Vec<Step> = samples(STEPS).iter().flat_map(observe).collect();
        assert_eq!(steps.len(), STEPS, "{text}");
        let (losses, rates) = steps.into_iter().map(|step| (step.loss, step.rate)).unzip();
        let counters = learner.counters();
        let count = |name: &str| counters.get(name).copied();
        let depths = counters.iter().filter(|(name, _)| name.starts_with("pfi_depth_"));
        Self {
            losses,
            rates,
            perturbed: depths.map(|(_, count)| count).sum(),
            collections: count("collections"),
            moves: count("rate_ups").map(|ups| ups + count("rate_downs").unwrap()),
            measured: learner.memory().unwrap().history().iter().any(|&value| value > 0.0),
            learner,
        }
    }

    fn heads(&self) -> u64 {
        // Four classes on eight times the width in features, and their biases.
        let head = 4 * 32 + 4;
        let encoder = Seen::of("method = 'er'").learner.parameters().network - head;
        let heads = self.learner.parameters().network - encoder;
        assert_eq!(heads % head, 0);
        heads / head
    }
}

/// Rates that decay at every step and start over with new classes, which come with the first batch and the fourth.
fn decaying() -> Vec<f64> {
    let decay = |step: usize| (0..step % (STEPS / 2)).fold(0.002, |rate, _| rate * 0.9999);
    (0..STEPS).map(decay).collect()
}

#[test]
fn without_perturbed_activations_the_heads_still_disagree() {
    let seen =
        Seen::of("method = 'dpcl'\nmemory_scheme = 'pim'\nrate = 'pima'\n[dpcl]\nperiod = 4\npfi = false");
    assert_eq!((seen.perturbed, seen.collections, seen.heads()), (0.0, Some(6.0), 5));
    // At the first snapshot nothing had been rehearsed.
    assert_eq!((seen.measured, seen.moves), (true, Some(5.0)));
    let snapshots = seen.rates.chunks(4);
    assert!(snapshots.clone().all(|steps| steps == [steps[0]; 4]), "{:?}", seen.rates);
    let moved = snapshots.clone().zip(snapshots.skip(1)).filter(|(before, after)| before != after);
    assert_eq!(moved.count(), 4, "at every snapshot but the first and the last: {:?}", seen.rates);
}

#[test]
fn without_branched_heads_one_plain_head_is_left() {
    let seen = Seen::of(
        "method = 'dpcl'\naverage = 0\nrate = 'exp-reset'\nmemory_scheme = 'balanced'\n\
         [dpcl]\npfi = true\nperiod = 4\nbsc = false",
    );
    assert_eq!((seen.perturbed, seen.collections, seen.heads()), (STEPS as f64, None, 1));
    let held = seen.learner.parameters();
    assert_eq!((held.state, held.history), (0, 0));
    assert_eq!(seen.learner.predict(&samples(1)[0].0).unwrap().disagreement, 0.0);
    assert!(!seen.measured && seen.moves.is_none());
    assert_eq!(seen.rates, decaying());
    assert_eq!(seen.learner.memory().unwrap().histogram(), [3; 4], "classes have equal shares");
}

#[test]
fn without_what_follows_disagreement_both_perturbations_are_left() {
    for keys in ["", "noise = 'paper'\nbsc_window = 0"] {
        let seen =
            Seen::of(&format!("method = 'dpcl'\nrate = 'exp-reset'\n[dpcl]\npfi = true\nperiod = 4\n{keys}"));
        assert_eq!((seen.perturbed, seen.collections, seen.heads()), (STEPS as f64, Some(6.0), 5), "{keys}");
        assert!(seen.learner.predict(&samples(1)[0].0).unwrap().disagreement > 0.0, "{keys}");
        assert!(!seen.measured && seen.moves.is_none(), "{keys}");
        assert_eq!(seen.rates, decaying(), "{keys}");
        let offered: usize = seen.learner.state().get("method.memory.scheme.seen").unwrap();
        assert_eq!(offered, STEPS, "a reservoir counts: {keys}");
    }
}

#[test]
fn images_can_be_cut_and_mixed_instead_of_activations() {
    let [cut, whole] = [0.5, 0.0].map(|probability| {
        let text = "method = 'dpcl'\nmemory_scheme = 'reservoir'\nrate = 'constant'";
        Seen::of(&format!("{text}\ncutmix_prob = {probability}\n[dpcl]\nperiod = 4\npfi = false"))
    });
    for seen in [&cut, &whole] {
        assert_eq!((seen.perturbed, seen.collections, seen.heads()), (0.0, Some(6.0), 5));
        assert_eq!(seen.rates, [0.002; STEPS]);
        assert!(!seen.measured && seen.moves.is_none());
    }
    assert_ne!(cut.losses, whole.losses);
}
