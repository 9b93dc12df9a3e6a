//! Freezing, discrepancy and choice on networks whose labels are known, and what loaded states are held to.

use super::*;
use crate::{
    augment::{CutMix, Pipeline},
    batch::Batcher,
    data::{Picture, Policy},
    model::{Growth, cross_entropy},
    rate::Constant,
};

const SIZE: usize = 16;
const CAPACITY: usize = 12;

fn core(classes: usize) -> Core {
    let pipeline = Pipeline { padding: 0, flip: false, policy: Policy::None, mean: [0.5; 3], std: [0.25; 3] };
    let mut core = Core {
        model: form().model(0),
        batcher: Batcher::new(pipeline, CutMix { probability: 0.0, alpha: 1.0 }, SIZE, 1),
        growth: Growth { keep_bias: true, keep_moments: true },
    };
    (0..classes).for_each(|_| core.grow());
    core
}

fn form() -> Form {
    let architecture = Architecture::named("slim", Some(4), 1e-6, 0.1).unwrap();
    let device = Device::flex();
    Form { architecture, raster: Raster::new(SIZE), memory_rows: 4, average: 0, seed: 2, device }
}

fn oddl(keys: OddlKeys) -> Oddl {
    let form = form();
    Oddl {
        autoencoder: form.autoencoder(&keys, 0),
        optimiser: Adam::new(&form.device),
        frozen: Vec::new(),
        labels: Vec::new(),
        behind: 0,
        refused: 0,
        chance: Random::named(2, "components"),
        keys,
        form,
    }
}

/// Dark images of class 0 and bright ones of class 1, in turn.
fn samples(count: usize) -> Vec<Sample> {
    let mut random = Random::named(3, "samples");
    let mut sample = |class: usize| {
        let level = 20 + 180 * class;
        let pixels: Vec<u8> = (0..SIZE * SIZE * 3).map(|_| (level + random.below(40)) as u8).collect();
        Sample::new(Image { height: SIZE, width: SIZE, pixels: pixels.into() }, class)
    };
    (0..count).map(|index| sample(index % 2)).collect()
}

fn memory(filled: usize) -> Memory {
    let mut memory = Memory::new("first", CAPACITY, 1).unwrap();
    memory.refill(samples(filled));
    memory
}

/// Offers four samples, of which a memory of twelve has room for as many as are missing.
fn store(oddl: &mut Oddl, core: &mut Core, memory: &mut Memory) -> bool {
    oddl.store(core, memory, &mut Constant::new(0.1), &samples(4)).unwrap()
}

/// Makes a network call everything `class`.
fn call_everything(core: &mut Core, class: usize) {
    let heads = core.model.heads_mut();
    let classes = heads.classes();
    let mut bias = vec![0.0; classes];
    bias[class] = 1e3;
    heads.weights_mut().set(1, matrix(bias, [1, classes], &Device::flex()));
}

/// Bright at the left, or at the right.
fn half(class: usize) -> Image {
    let bright = |at: usize| (at / 3 % SIZE < SIZE / 2) == (class == 0);
    let pixels: Vec<u8> = (0..SIZE * SIZE * 3).map(|at| if bright(at) { 220 } else { 30 }).collect();
    Image { height: SIZE, width: SIZE, pixels: pixels.into() }
}

/// A frozen copy of the present component.
fn frozen(oddl: &Oddl, core: &Core) -> Component {
    Component { network: core.model.network().clone(), autoencoder: oddl.autoencoder.clone() }
}

fn weights(network: &Network) -> Vec<f32> {
    network.encoder().weights().iter().flat_map(|weight| floats(weight.value.clone())).collect()
}

/// Teaches the network which images are bright.
fn teach(core: &mut Core) {
    for _ in 0..40 {
        let batch = core.batcher.of(&samples(8));
        let mut pass = core.model.pass();
        let loss = cross_entropy(forward(&mut pass, &batch), &batch.labels);
        core.model.step(pass, &loss, 1e-2);
    }
}

#[test]
fn the_first_full_memory_opens_a_component_and_is_emptied() {
    let (mut oddl, mut core, mut memory) = (oddl(OddlKeys::default()), core(3), memory(8));
    assert!(!store(&mut oddl, &mut core, &mut memory), "there is room, and the scheme is asked");
    memory.refill(samples(10));
    let before = weights(core.model.network());
    assert!(store(&mut oddl, &mut core, &mut memory));
    assert_eq!((oddl.frozen.len(), memory.slots().len(), oddl.labels.clone()), (1, 0, vec![vec![]]));
    assert_eq!(weights(&oddl.frozen[0].network), before);
    assert!(weights(core.model.network()) != before && core.model.heads().classes() == 3);
    oddl.check_loaded(&core, &memory).unwrap();
}

#[test]
fn classifiers_that_agree_only_choose() {
    for (room, left) in [(0.0, 12), (0.05, 12), (0.25, 9), (0.99, 1)] {
        let keys = OddlKeys { room, threshold: 0.0, ..OddlKeys::default() };
        let (mut oddl, mut core, mut memory) = (oddl(keys), core(2), memory(CAPACITY));
        oddl.frozen.push(frozen(&oddl, &core));
        oddl.labels.push(Vec::new());
        assert!(store(&mut oddl, &mut core, &mut memory));
        assert_eq!((oddl.frozen.len(), oddl.refused, memory.slots().len()), (1, 0, left));
        assert_eq!(oddl.labels[0], labels(&oddl.frozen[0].network, &core, memory.slots()));
    }
}

#[test]
fn what_differs_as_much_on_generated_images_is_nothing_new() {
    let keys = OddlKeys { threshold: 0.0, discrepancy: Discrepancy::Index, ..OddlKeys::default() };
    let (mut oddl, mut core, mut memory) = (oddl(keys), core(3), memory(CAPACITY));
    call_everything(&mut core, 0);
    oddl.frozen.push(frozen(&oddl, &core));
    oddl.labels.push(Vec::new());
    call_everything(&mut core, 2);
    assert!(store(&mut oddl, &mut core, &mut memory));
    assert_eq!((oddl.frozen.len(), memory.slots().len()), (1, CAPACITY));
}

#[test]
fn samples_stay_that_the_newest_component_names_otherwise() {
    // Of sixteen samples eight are bright, which the frozen classifier calls dark.
    let keys = OddlKeys { threshold: 1.0, room: 0.34, ..OddlKeys::default() };
    let (mut oddl, mut core, mut memory) = (oddl(keys), core(2), memory(CAPACITY));
    teach(&mut core);
    let bias = core.model.heads().weights().value(1).clone();
    call_everything(&mut core, 0);
    oddl.frozen.push(frozen(&oddl, &core));
    oddl.labels.push(Vec::new());
    core.model.heads_mut().weights_mut().set(1, bias);
    assert_eq!(labels(core.model.network(), &core, &samples(4)), [0, 1, 0, 1]);
    store(&mut oddl, &mut core, &mut memory);
    assert_eq!(memory.histogram(), [0, 8]);
}

#[test]
fn one_frozen_component_that_knows_it_is_enough() {
    let (mut oddl, core) = (oddl(OddlKeys { threshold: 0.2, ..OddlKeys::default() }), core(2));
    oddl.frozen.push(frozen(&oddl, &core));
    // Half of what is stored differs and nothing of what is generated, which is named by the same weights.
    let half = oddl.keys.discrepancy.each(&[0, 1].repeat(32), &[0, 0].repeat(32));
    assert!(oddl.is_new(&core, std::slice::from_ref(&half)));
    oddl.frozen.push(frozen(&oddl, &core));
    assert!(oddl.is_new(&core, &[half.clone(), half.clone()]));
    assert!(!oddl.is_new(&core, &[half, vec![0.0; 64]]));
}

#[test]
fn generated_images_are_images() {
    let mut oddl = oddl(OddlKeys::default());
    let images = oddl.form.generated(&oddl.autoencoder, 3, &mut oddl.chance);
    assert_eq!(images.len(), 3);
    for image in &images {
        let Picture::Floats(image) = &image.image else { panic!("floats") };
        assert_eq!([image.height, image.width], [SIZE; 2]);
        assert!(image.pixels.iter().all(|value| (0.0..=1.0).contains(value)));
    }
}

#[test]
fn an_image_is_answered_by_the_component_that_tells_it_best() {
    let (mut oddl, mut core) = (oddl(OddlKeys { vae_lr: 2e-3, ..OddlKeys::default() }), core(2));
    let of = |class: usize| vec![Sample::new(half(class), class); 8];
    let memory = Memory::new("first", CAPACITY, 1).unwrap();
    // The first component knows one image and calls everything 1, the second knows the other and calls all 2.
    oddl.behind = 150;
    oddl.catch_up(&core, &memory, &of(0)).unwrap();
    call_everything(&mut core, 1);
    oddl.frozen.push(frozen(&oddl, &core));
    oddl.autoencoder = oddl.form.autoencoder(&oddl.keys, 1);
    oddl.optimiser = Adam::new(&oddl.form.device);
    core.grow();
    call_everything(&mut core, 2);
    oddl.behind = 150;
    oddl.catch_up(&core, &memory, &of(1)).unwrap();

    let images = [0, 1, 0, 1, 0, 1].map(half);
    let answers = oddl.predict(&core, &images, None).unwrap();
    assert_eq!(answers.iter().map(Scores::best).collect::<Vec<_>>(), [1, 2, 1, 2, 1, 2]);
    for answer in answers {
        let sum: f32 = answer.probabilities.iter().sum();
        assert!(answer.probabilities.len() == 3 && (sum - 1.0).abs() < 1e-6);
    }
}

#[test]
fn states_that_do_not_fit_are_refused() {
    let problem = |change: &dyn Fn(&mut Oddl, &mut Core)| {
        let (mut oddl, mut core) = (oddl(OddlKeys { components: 2, ..OddlKeys::default() }), core(2));
        oddl.frozen.push(frozen(&oddl, &core));
        oddl.labels.push(vec![0; 5]);
        change(&mut oddl, &mut core);
        oddl.check_loaded(&core, &memory(5)).map_err(|error| error.to_string())
    };
    assert_eq!(problem(&|_, _| ()), Ok(()));
    let too_many = problem(&|oddl, core| oddl.frozen.push(frozen(oddl, core))).unwrap_err();
    assert!(too_many.contains("makes 3 components, of which there may be 2"), "{too_many}");
    assert!(problem(&|oddl, _| oddl.labels[0].push(0)).unwrap_err().contains("of 5 samples by 1 components"));
    assert!(problem(&|oddl, _| oddl.labels.push(Vec::new())).is_err());
    let grown = problem(&|oddl, core| {
        core.grow();
        oddl.frozen[0] = frozen(oddl, core);
        *core = self::core(2);
    });
    assert!(grown.unwrap_err().contains("component0.network.heads.classes"));
}
