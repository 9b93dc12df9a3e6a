//! Learns a stream with a loop of its own and says how long that took: what the Python package is measured against.
//!
//! `cargo run --release --example learn_loop -- 'per_class = 50' [checkpoint]`

#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::{env, time::Instant};

use dpcl::{Config, Learner, Run, Shape};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = env::args().skip(1);
    let config = Config::from_toml(&arguments.next().unwrap_or_default())?;
    let run = Run::open(&config)?;
    let (dataset, schedule) = (run.dataset(), run.schedule());
    let order = schedule.tasks.iter().flat_map(|task| &task.samples);
    let samples: Vec<_> = order
        .map(|&position| {
            let label = dataset.classes[dataset.train.labels[position]].as_str();
            Ok((dataset.train.images.image(position)?, label))
        })
        .collect::<dpcl::Result<_>>()?;

    let shape = Shape { channels: 3, height: dataset.size, width: dataset.size };
    let mut learner = Learner::new(&config, shape)?;
    let begun = Instant::now();
    learner.observe_all(samples.iter().map(|(image, label)| (image, *label)))?;
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{{\"seconds\": {seconds}, \"samples\": {}, \"updates\": {}}}",
        samples.len(),
        learner.updates()
    );
    if let Some(path) = arguments.next() {
        learner.save(path)?;
    }
    Ok(())
}
