//! Noisy feature mixup beside replay (`nfm`): what is left of it without noise, exact resume, and what is refused.

use crate::{
    baselines::{config, learn, learner, losses, refusal, state},
    quarters::{SHAPE, samples},
};
use dpcl::Learner;

/// No noise, and a mixing coefficient that is 0 or 1.
const BARE: &str =
    "method = 'nfm'\n[nfm]\nsigma_a = 0.0\nsigma_m = 0.0\nalpha = 1e-300\nlayers = [0, 1, 2, 3, 4]";

const REPLAY: &str = "method = 'er'\nrate = 'constant'\ncutmix_prob = 0.0";

#[test]
fn a_lone_row_without_noise_is_learned_as_by_experience_replay() {
    let samples = samples(24);
    // A batch of one row from the stream, which is its own partner.
    let [mut er, mut nfm] = [REPLAY, BARE].map(|text| {
        let mut config = config(&format!("memory_scheme = 'none'\n{text}"));
        config.settings.batch = Some(2);
        Learner::new(&config, SHAPE).unwrap()
    });
    assert_eq!(learn(&mut er, &samples), learn(&mut nfm, &samples));
    assert!(state(&er).part("core") == state(&nfm).part("core"));
    assert!(nfm.counters()["pfi_depth_4"] > 0.0 && nfm.counters()["pfi_depth_0"] > 0.0);
}

#[test]
fn rows_without_noise_have_the_loss_of_experience_replay() {
    let samples = samples(16);
    let [er, nfm] = [REPLAY, BARE].map(|text| losses(learn(&mut learner(text), &samples)));
    // Every row is itself or wholly its partner, whose label it then has: the batch in another order.
    for (er, nfm) in er.iter().zip(&nfm) {
        assert!((er - nfm).abs() < 1e-3 * er, "{er} and {nfm}");
    }
    let noisy = losses(learn(&mut learner("method = 'nfm'"), &samples));
    assert!(er.iter().zip(&noisy).any(|(er, nfm)| (er - nfm).abs() > 0.05 * er), "{er:?} and {noisy:?}");
}

#[test]
fn noise_and_mixing_resume_exactly() {
    let samples = samples(48);
    let mut whole = learner("method = 'nfm'");
    learn(&mut whole, &samples[..30]);
    let mut resumed = learner("method = 'nfm'");
    resumed.restore(&state(&whole)).unwrap();
    assert_eq!(learn(&mut whole, &samples[30..]), learn(&mut resumed, &samples[30..]));
    assert!(state(&whole) == state(&resumed));
}

#[test]
fn what_cannot_work_is_refused_by_name() {
    let of = |key: &str| refusal(&format!("method = 'nfm'\n[nfm]\n{key}"));
    assert_eq!(of("layers = []"), "nfm.layers: must name depths between 0 and 4, and names none");
    assert!(of("layers = [5]").starts_with("nfm.layers: "));
    assert_eq!(of("sigma_a = -0.1"), "nfm.sigma_a: must be at least 0, not -0.1");
    assert!(of("alpha = 0.0").starts_with("nfm.alpha: must be above 0"));
    assert!(refusal("method = 'nfm'\nasymmetric = true").starts_with("asymmetric: `nfm`"));
    assert!(refusal("method = 'nfm'\nmemory_scheme = 'pim'").starts_with("memory_scheme: `pim` needs heads"));
}
