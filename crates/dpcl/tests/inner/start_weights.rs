//! A learner can start from encoder weights in a file.

use std::collections::HashMap;

use crate::{
    Config, Error, Learner, Shape,
    model::{Architecture, Encoder},
    random::Random,
    state::{Elements, Persist, State},
};
use safetensors::{Dtype, tensor::TensorView};

const SHAPE: Shape = Shape { channels: 3, height: 16, width: 16 };

fn config(width: usize) -> Config {
    let mut config = Config::default();
    config.settings.model = "slim".into();
    config.settings.width = Some(width);
    config
}

fn write_weights(width: usize, path: &std::path::Path) -> State {
    let architecture = Architecture::named("slim", Some(width), 1e-6, 0.1).unwrap();
    let device = crate::device::named("cpu").unwrap();
    let encoder = Encoder::new(architecture, &mut Random::named(77, "elsewhere"), &device);
    let mut state = State::default();
    encoder.save(&mut state);
    let bytes: HashMap<&String, (Vec<usize>, Vec<u8>)> = state
        .arrays
        .iter()
        .map(|(name, array)| {
            let Elements::F32(floats) = &array.elements else { panic!("weights are floats") };
            (name, (array.shape.clone(), floats.iter().flat_map(|float| float.to_le_bytes()).collect()))
        })
        .collect();
    let views = bytes.iter().map(|(name, (shape, bytes))| {
        (name.as_str(), TensorView::new(Dtype::F32, shape.clone(), bytes).unwrap())
    });
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
    state
}

#[test]
fn the_encoder_starts_from_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("encoder.safetensors");
    let expected = write_weights(4, &path);
    let mut config = config(4);
    config.settings.weights = Some(path);
    let learner = Learner::new(&config, SHAPE).unwrap();
    let state = learner.state();
    let found = state.part("core").part("model").part("encoder");
    assert_eq!(found.arrays, expected.arrays);
}

#[test]
fn weights_of_another_network_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("encoder.safetensors");
    write_weights(6, &path);
    let mut config = config(4);
    config.settings.weights = Some(path.clone());
    let Err(error) = Learner::new(&config, SHAPE) else { panic!("another width cannot fit") };
    assert!(matches!(&error, Error::BadData { path: named, .. } if *named == path), "{error}");
    std::fs::write(&path, b"not a file of weights").unwrap();
    let Err(error) = Learner::new(&config, SHAPE) else { panic!("nonsense cannot fit") };
    assert!(error.to_string().contains("not a safetensors file"), "{error}");
}
