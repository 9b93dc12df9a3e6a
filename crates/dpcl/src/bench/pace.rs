//! How fast this machine learns and answers with a configuration: the configured method itself, on made-up images.

use std::time::{Duration, Instant};

use crate::{
    config::Setup,
    data::Image,
    error::Result,
    learner::{Learner, Shape},
    random::Random,
};

/// What was measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pace {
    /// Seconds of a training step; 0 for a method that takes none.
    pub step_seconds: f64,
    /// Seconds that an answer to one test image takes.
    pub answer_seconds: f64,
}

/// Larger images are measured at this side, and the time is scaled by multiply-adds.
const LARGEST: usize = 64;
/// Images answered at once.
const ROWS: usize = 64;
/// Classes of the made-up stream.
const CLASSES: usize = 10;
/// Batches after which a method that takes no step in passing is asked to take those of its end.
const BATCHES: usize = 3;

impl Pace {
    /// Learns until `patience` has passed, at least two steps after one that does not count, then answers.
    ///
    /// # Errors
    /// When a learner cannot be made of the configuration, or training runs away.
    pub fn measure(setup: &Setup, patience: Duration) -> Result<Self> {
        let size = setup.size.min(LARGEST);
        let scale = {
            let architecture = setup.architecture()?;
            architecture.multiply_adds(setup.size) as f64 / architecture.multiply_adds(size).max(1) as f64
        };
        let mut config = setup.config();
        let settings = &mut config.settings;
        (settings.size, settings.from, settings.from_checksum) = (Some(size), None, None);
        // A step for every half batch, whatever the stream earns.
        settings.updates = Some(2.0 / setup.batch as f64);
        let mut learner = Learner::new(&config, Shape { channels: 3, height: size, width: size })?;
        let mut images = Images { random: Random::named(1, "pace"), size };
        let step_seconds = step(&mut learner, &mut images, setup.batch, patience)?;
        let rows: Vec<Image> = (0..ROWS).map(|_| images.next()).collect();
        learner.predict_all(&rows[..1])?;
        let begin = Instant::now();
        learner.predict_all(&rows)?;
        let answer_seconds = begin.elapsed().as_secs_f64() / ROWS as f64;
        Ok(Self { step_seconds: step_seconds * scale, answer_seconds: answer_seconds * scale })
    }
}

fn step(learner: &mut Learner, images: &mut Images, batch: usize, patience: Duration) -> Result<f64> {
    let mut learn = |learner: &mut Learner| -> Result<u64> {
        let before = learner.updates();
        for sample in 0..batch {
            learner.observe_in(0, &images.next(), (sample % CLASSES) as i64)?;
        }
        Ok(learner.updates() - before)
    };
    let mut warm = 0;
    for _ in 0..BATCHES {
        warm += learn(learner)?;
        if warm > 0 {
            break;
        }
    }
    if warm == 0 {
        return late(learner);
    }
    let (begin, mut steps) = (Instant::now(), 0);
    while steps < 2 || begin.elapsed() < patience {
        steps += learn(learner)?;
    }
    Ok(begin.elapsed().as_secs_f64() / steps as f64)
}

/// The steps of a method that learns at the end of a task or of the stream.
fn late(learner: &mut Learner) -> Result<f64> {
    let (begin, before) = (Instant::now(), learner.updates());
    learner.task_end()?;
    learner.finish()?;
    let steps = learner.updates() - before;
    Ok(if steps == 0 { 0.0 } else { begin.elapsed().as_secs_f64() / steps as f64 })
}

/// Noise.
struct Images {
    random: Random,
    size: usize,
}

impl Images {
    fn next(&mut self) -> Image {
        let pixels: Vec<u8> = (0..self.size * self.size * 3).map(|_| self.random.below(256) as u8).collect();
        Image { height: self.size, width: self.size, pixels: pixels.into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{config::Config, methods::METHODS};

    #[test]
    fn every_method_has_a_pace() {
        for info in METHODS {
            let text = format!("method = '{}'\nwidth = 4\nbatch = 4\nmemory = 8\nsize = 16", info.name);
            let setup = Config::from_toml(&text).unwrap().check().unwrap();
            let pace = Pace::measure(&setup, Duration::ZERO).unwrap();
            assert!(pace.step_seconds > 0.0 && pace.answer_seconds > 0.0, "{}: {pace:?}", info.name);
        }
    }
}
