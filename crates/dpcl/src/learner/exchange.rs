//! Exchange with other programs: the encoder's weights in PyTorch's layouts.

use super::Learner;
use crate::{
    error::{Error, Result},
    state::{Elements, Persist, State},
};

impl Learner {
    /// Weights and running statistics of the encoder that answers, under the names and in the layouts of a checkpoint's
    /// `encoder` part.
    pub fn encoder(&self) -> State {
        let mut state = State::default();
        self.core.model.answering().encoder().save(&mut state);
        state
    }

    /// Begins with an encoder trained elsewhere.
    ///
    /// # Errors
    /// When something has been learned already, or an entry is missing, has another shape or is not finite; the learner
    /// is then as before.
    pub fn begin_with_encoder(&mut self, state: &State) -> Result<()> {
        if self.samples > 0 {
            return Err(Error::AlreadyLearning { samples: self.samples });
        }
        let finite = |elements: &Elements| match elements {
            Elements::F32(elements) => elements.iter().all(|element| element.is_finite()),
            Elements::U8(_) => true,
        };
        if let Some((key, _)) = state.arrays.iter().find(|(_, array)| !finite(&array.elements)) {
            return Err(Error::BadState { key: key.clone(), problem: "holds what is no number".into() });
        }
        let mut encoder = self.core.model.encoder().clone();
        encoder.load(state)?;
        *self.core.model.encoder_mut() = encoder;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        config::Config,
        data::Image,
        learner::Shape,
        state::{Array, Elements},
    };

    fn learner(seed: u64) -> Learner {
        let mut config = Config::default();
        config.settings.seed = seed;
        config.settings.width = Some(2);
        Learner::new(&config, Shape { channels: 3, height: 8, width: 8 }).unwrap()
    }

    fn image() -> Image {
        Image { height: 8, width: 8, pixels: (0..192).collect::<Vec<u8>>().into() }
    }

    #[test]
    fn an_encoder_that_was_handed_over_makes_the_same_features() {
        let (teacher, mut pupil) = (learner(1), learner(2));
        let expected = teacher.features(&[image()]).unwrap();
        assert_eq!(expected[0].len(), 16);
        assert_ne!(pupil.features(&[image()]).unwrap(), expected);
        pupil.begin_with_encoder(&teacher.encoder()).unwrap();
        assert_eq!(pupil.features(&[image()]).unwrap(), expected);
    }

    #[test]
    fn what_does_not_fit_changes_nothing() {
        let (mut learner, teacher) = (learner(1), learner(2));
        let before = learner.features(&[image()]).unwrap();
        let mut lacking = teacher.encoder();
        lacking.arrays.remove("group4.block1.bn2.running_var").unwrap();
        let error = learner.begin_with_encoder(&lacking).unwrap_err().to_string();
        assert!(error.contains("`group4.block1.bn2.running_var` is missing"), "{error}");
        let mut broken = teacher.encoder();
        broken.arrays.insert(
            "stem.bn.weight".into(),
            Array { shape: vec![2], elements: Elements::F32(vec![1.0, f32::NAN]) }.into(),
        );
        assert!(learner.begin_with_encoder(&broken).unwrap_err().to_string().contains("`stem.bn.weight`"));
        assert_eq!(learner.features(&[image()]).unwrap(), before);
        learner.observe(&image(), 0).unwrap();
        let error = learner.begin_with_encoder(&teacher.encoder()).unwrap_err();
        assert!(matches!(error, Error::AlreadyLearning { samples: 1 }));
    }
}
