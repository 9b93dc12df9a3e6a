//! GDumb between its trainings, which a user of the library does not see.

use crate::{Config, Image, Learner, Shape, state::State};

const SIZE: usize = 16;

/// Teaches it samples of two greys.
fn teach(learner: &mut Learner, count: usize) {
    for number in 0..count {
        let class = number % 2;
        let level = 40 + 150 * class + number;
        let pixels = vec![level as u8; SIZE * SIZE * 3].into();
        learner.observe(&Image { height: SIZE, width: SIZE, pixels }, class).unwrap();
    }
}

fn network(learner: &Learner) -> State {
    learner.state().part("core.model")
}

#[test]
fn every_training_of_gdumb_starts_from_the_same_network() {
    let keys = "method = 'gdumb'\nmodel = 'slim'\nwidth = 4\nmemory = 6\nbatch = 4\nupdates = 1.0";
    let shape = Shape { channels: 3, height: SIZE, width: SIZE };
    let mut gdumb = Learner::new(&Config::from_toml(keys).unwrap(), shape).unwrap();
    let begun = network(&gdumb).part("encoder");
    teach(&mut gdumb, 8);
    gdumb.announce_task_end().unwrap();
    let first = network(&gdumb);
    assert!(first.part("encoder") == begun, "the network the run began with");
    while !gdumb.catch_up().unwrap().is_empty() {}
    assert!(network(&gdumb) != first, "it was trained");

    teach(&mut gdumb, 8);
    gdumb.announce_task_end().unwrap();
    assert!(network(&gdumb) == first, "weights, statistics, heads and moments are those of the first start");
    while !gdumb.catch_up().unwrap().is_empty() {}
    assert!(network(&gdumb) != first, "it was trained again");
}
