//! Checkpoints and weight files: read, made into a learner, asked and taught.

use std::{collections::BTreeMap, fs, path::Path, sync::Arc};

use dpcl::{
    Config, Image, Learner, Shape,
    checkpoint::Checkpoint,
    method::{Array, Elements},
    methods::METHODS,
};

use super::{MIB, Target, measured, seal};

const SIDE: usize = 8;

fn image(side: usize, value: u8) -> Image {
    Image { height: side, width: side, pixels: vec![value; side * side * 3].into() }
}

/// As small as learners get; every method, with a partly filled buffer, a memory and a task behind it, and `dpcl` with
/// every part it has.
fn seeds() -> Vec<Vec<u8>> {
    let learned = |method: &str| {
        let parts = if method == "dpcl" { "memory_scheme = 'pim'\nrate = 'pima'\n" } else { "" };
        let text = format!(
            "method = '{method}'\n{parts}model = 'slim'\nwidth = 1\nmemory = 4\nupdates = 1.0\nbatch = 4\nthreads = 1\n\
             [dpcl]\nperiod = 2\nheads = 2\nrank = 2"
        );
        let shape = Shape { channels: 3, height: SIDE, width: SIDE };
        let mut learner = Learner::new(&Config::from_toml(&text).unwrap(), shape).unwrap();
        for number in 0..7_u8 {
            let task = usize::from(number > 4);
            learner.observe_in(task, &image(SIDE, number * 30), i64::from(number / 2)).unwrap();
            if number == 4 {
                learner.task_end().unwrap();
            }
        }
        let mut bytes = Vec::new();
        let mut checkpoint = Checkpoint::of(&learner);
        checkpoint.classes = ["otter", "seal", "eel", "asp"].map(String::from).to_vec();
        checkpoint.write_to(&mut bytes).unwrap();
        bytes
    };
    METHODS.iter().map(|info| learned(info.name)).collect()
}

/// Whether a learner came out of it. What it makes of its work is its own affair, as long as it does not fall over.
fn taken_up(bytes: &[u8]) -> bool {
    Checkpoint::from_bytes(bytes, Path::new("some.ckpt")).is_ok_and(|checkpoint| used(&checkpoint))
}

fn used(checkpoint: &Checkpoint) -> bool {
    let Ok(mut learner) = checkpoint.learner() else { return false };
    let side = learner.shape().height;
    let setup = learner.setup();
    // Large images, long buffers and many steps are asked for by right, and take their time.
    let small = side <= 64 && setup.batch <= 64 && setup.updates <= 4.0;
    if small {
        let _ = learner.predict(&image(side, 100));
        for number in 0..3_u8 {
            let _ = learner.observe_in(usize::from(number), &image(side, number), i64::from(number));
        }
        let _ = learner.predict_all(&[image(side, 1), image(side, 200)]);
    }
    learner.state();
    true
}

#[test]
fn checkpoints() {
    let target = Target {
        seal: Some(seal::checkpoint),
        memory: 128 * MIB,
        every: 5,
        ..Target::new("checkpoint", seeds())
    };
    target.run(taken_up);
}

/// The checkpoint of a method, to be taken apart.
fn whole(bytes: &[u8]) -> Checkpoint {
    Checkpoint::from_bytes(bytes, Path::new("some.ckpt")).unwrap()
}

#[test]
fn checkpoints_with_other_values() {
    for seed in seeds() {
        let checkpoint = whole(&seed);
        let text = serde_json::to_vec(&checkpoint.state.values).unwrap();
        let target = Target { memory: 128 * MIB, every: 5, ..Target::new("checkpoint-values", vec![text]) };
        target.run(|text| {
            let Ok(values) = serde_json::from_slice(text) else { return false };
            let mut altered = checkpoint.clone();
            altered.state.values = values;
            used(&altered)
        });
    }
}

#[test]
fn checkpoints_with_other_shapes() {
    for seed in seeds() {
        let checkpoint = whole(&seed);
        let shapes: BTreeMap<&String, &Vec<usize>> =
            checkpoint.state.arrays.iter().map(|(name, array)| (name, &array.shape)).collect();
        let text = serde_json::to_vec(&shapes).unwrap();
        let target = Target { memory: 128 * MIB, every: 5, ..Target::new("checkpoint-shapes", vec![text]) };
        target.run(|text| {
            let Ok(shapes) = serde_json::from_slice::<BTreeMap<String, Vec<usize>>>(text) else {
                return false;
            };
            let mut altered = checkpoint.clone();
            altered.state.arrays.retain(|name, _| shapes.contains_key(name));
            for (name, shape) in shapes {
                let Some(array) = altered.state.arrays.get_mut(&name) else { continue };
                // More elements than that would be a long file, and no small one can claim them.
                let length = shape.iter().try_fold(1, |length: usize, &extent| length.checked_mul(extent));
                let Some(length) = length.filter(|&length| length <= 100_000) else { return false };
                *array = Arc::new(match &array.elements {
                    Elements::F32(elements) => Array::floats(shape, resized(elements, length)),
                    Elements::U8(elements) => Array::bytes(shape, resized(elements, length)),
                });
            }
            used(&altered)
        });
    }
}

#[test]
fn checkpoints_with_other_configurations() {
    for seed in seeds() {
        let checkpoint = whole(&seed);
        let text = checkpoint.config.to_toml().unwrap().into_bytes();
        let target = Target { memory: 128 * MIB, every: 5, ..Target::new("checkpoint-config", vec![text]) };
        target.run(|text| {
            let Ok(text) = std::str::from_utf8(text) else { return false };
            let Ok(config) = Config::from_recorded_toml(text) else { return false };
            used(&Checkpoint { config, ..checkpoint.clone() })
        });
    }
}

#[test]
fn a_network_that_is_larger_than_the_file_is_refused_before_there_is_room_for_it() {
    for seed in seeds() {
        let checkpoint = whole(&seed);
        let change = |change: &dyn Fn(&mut Checkpoint)| {
            let mut altered = checkpoint.clone();
            change(&mut altered);
            let (used, learner) = measured(|| altered.learner().map(|_| ()));
            let error = learner.unwrap_err();
            assert!(used <= 32 * MIB, "{used} bytes for a file of {}: {error}", seed.len());
            error
        };
        for width in [2, 64, 4096] {
            change(&|altered| altered.config.settings.width = Some(width));
        }
        change(&|altered| altered.config.settings.model = "resnet34-imagenet".into());
        if checkpoint.learner().unwrap().setup().memory > 0 {
            let error = change(&|altered| altered.config.settings.memory = Some(1_000_000_000_000));
            assert!(error.to_string().contains("no stream has so many samples"), "{error}");
        }
        change(&|altered| altered.shape.height = 100_000_000);
        change(&|altered| {
            altered.shape = Shape { height: 1_000_000_000, width: 1_000_000_000, channels: 3 };
        });
    }
}

fn resized<T: Clone + Default>(elements: &[T], length: usize) -> Vec<T> {
    let mut elements = elements.to_vec();
    elements.resize(length, T::default());
    elements
}

#[test]
fn weight_files() {
    let root = tempfile::tempdir().unwrap();
    let path = root.path().join("weights.safetensors");
    let mut config =
        Config::from_toml("method = 'er'\nmodel = 'slim'\nwidth = 1\nmemory = 4\nbatch = 4\nthreads = 1")
            .unwrap();
    config.settings.weights = Some(path.clone());
    let shape = Shape { channels: 3, height: SIDE, width: SIDE };
    let target = Target { every: 5, ..Target::new("weights", seeds()) };
    target.run(|bytes| {
        fs::write(&path, bytes).unwrap();
        Learner::new(&config, shape).is_ok()
    });
}
