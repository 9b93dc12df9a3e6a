//! What a batch holds, in which order, and that images of floats are rehearsed like any other.

use super::*;
use crate::{
    data::{FloatImage, Policy},
    error::Error,
};

const SIZE: usize = 4;

fn batcher() -> Batcher {
    let pipeline = Pipeline { padding: 0, flip: false, policy: Policy::None, mean: [0.0; 3], std: [1.0; 3] };
    Batcher::new(pipeline, CutMix { probability: 0.0, alpha: 1.0 }, SIZE, 1)
}

fn floats(value: f32, class: usize) -> Sample {
    Sample::new(FloatImage { height: SIZE, width: SIZE, pixels: vec![value; SIZE * SIZE * 3].into() }, class)
}

fn bytes(value: u8, class: usize) -> Sample {
    Sample::new(Image { height: SIZE, width: SIZE, pixels: vec![value; SIZE * SIZE * 3].into() }, class)
}

/// A memory of three samples: bytes of 51 (a fifth), floats of −0.5 and of 2.
fn memory() -> Memory {
    let mut memory = Memory::new("reservoir", 3, 1).unwrap();
    for sample in [bytes(51, 0), floats(-0.5, 1), floats(2.0, 2)] {
        memory.offer(&sample, None);
    }
    memory
}

/// The value of each row's first pixel.
fn values(batch: &Batch) -> Vec<f32> {
    batch.images.chunks(SIZE * SIZE * 3).map(|row| row[0]).collect()
}

#[test]
fn images_of_floats_are_rehearsed_as_they_are_stored() {
    let mut memory = memory();
    let ingredients = Recipe::plain(3).draw(&mut memory);
    let batch = batcher().make(&[floats(7.5, 3)], &ingredients);
    assert_eq!((batch.stream_rows(), batch.beside, batch.labels[0]), (1, 0, 3));
    let stored = [0.2, -0.5, 2.0];
    let expected: Vec<f32> =
        std::iter::once(7.5).chain(batch.slots.iter().map(|&slot| stored[slot])).collect();
    assert_eq!(values(&batch), expected);
    assert_eq!(batch.labels[1..], batch.slots[..], "class and slot are the same number here");
}

#[test]
fn rows_beside_come_last_and_candidates_join_when_they_are_chosen() {
    let mut memory = memory();
    let ingredients = Recipe { beside: 2, ..Recipe::plain(1) }.draw(&mut memory);
    let batch = batcher().make(&[bytes(255, 3)], &ingredients);
    assert_eq!((batch.labels.len(), batch.slots.len(), batch.beside), (4, 3, 2));

    let ingredients = Recipe { candidates: 3, ..Recipe::plain(1) }.draw(&mut memory);
    let batch = batcher().make(&[bytes(255, 3)], &ingredients);
    assert_eq!((values(&batch), batch.stream_rows()), (vec![1.0], 1));
    let candidates = batch.candidates.clone().unwrap();
    assert_eq!((candidates.classes.len(), candidates.wanted), (3, 1));
    let batch = batch.joined(&[2]);
    assert_eq!(batch.labels, [3, candidates.classes[2]]);
    assert_eq!(batch.slots, [candidates.slots[2]]);
    assert_eq!(values(&batch)[1], candidates.clean[2 * SIZE * SIZE * 3]);
}

#[test]
fn a_mixed_batch_can_be_taken_apart_again() {
    let mut batcher = Batcher { cutmix: CutMix { probability: 1.0, alpha: 1.0 }, ..batcher() };
    let samples: Vec<Sample> = (0..6).map(|class| bytes(10 * class as u8, class)).collect();
    let batch = batcher.of(&samples);
    let unmixed = batch.unmixed();
    assert!(!batch.mixes.is_empty() && unmixed.mixes.is_empty());
    let expected: Vec<f32> =
        (0..6).flat_map(|class| vec![10.0 * class as f32 / 255.0; SIZE * SIZE * 3]).collect();
    assert_eq!(unmixed.images, expected);
}

#[test]
fn halves_that_are_apart_have_boxes_and_partners_of_their_own() {
    let recipe = Recipe { apart: true, ..Recipe::plain(3) };
    let mut batcher = Batcher { cutmix: CutMix { probability: 0.5, alpha: 1.0 }, ..batcher() };
    let mut memory = memory();
    let stream = [bytes(0, 3), bytes(255, 4)];
    let ends = |batch: &Batch| batch.groups().iter().map(|group| group.end).collect::<Vec<usize>>();
    let (mut met, mut alike) = ([0; 4], 0);
    for _ in 0..200 {
        let batch = batcher.make(&stream, &recipe.draw(&mut memory));
        let rows: Vec<Range<usize>> = batch.mixes.iter().map(Mix::rows).collect();
        let kind = usize::from(rows.contains(&(0..2))) + 2 * usize::from(rows.contains(&(2..5)));
        met[kind] += 1;
        assert_eq!(rows.len(), [0, 1, 1, 2][kind], "{rows:?}");
        assert_eq!(ends(&batch), if kind == 0 { vec![5] } else { vec![2, 5] });
        if let [stream, memory] = batch.mixes.as_slice() {
            alike += usize::from(stream.area == memory.area);
        }
        for group in [0..2, 2..5] {
            let Some((partners, _)) = batch.mixed(&group) else { continue };
            let own = &batch.labels[group];
            assert!(partners.iter().all(|label| own.contains(label)), "{partners:?} beside {own:?}");
        }
        let unmixed: Vec<f32> = batch.slots.iter().map(|&slot| [0.2, -0.5, 2.0][slot]).collect();
        assert_eq!(values(&batch.unmixed()), [vec![0.0, 1.0], unmixed].concat());
    }
    assert!(alike < 10, "{alike} of {} pairs have one box", met[3]);
    assert!(met.iter().all(|count| (25..80).contains(count)), "each half by chance of its own: {met:?}");

    let alone = batcher.make(&stream, &recipe.draw(&mut Memory::new("none", 0, 1).unwrap()));
    assert_eq!(ends(&alone), [2]);
}

#[test]
fn things_made_ahead_arrive_in_order_and_stop_on_error() {
    let mut next = 0;
    let mut met = Vec::new();
    let make = || {
        next += 1;
        next
    };
    ahead(5, make, |thing| {
        met.push(thing);
        Ok(())
    })
    .unwrap();
    assert_eq!(met, [1, 2, 3, 4, 5]);

    let mut made = 0;
    let outcome = ahead(100, || made += 1, |()| Err(Error::NoClassYet));
    assert!(matches!(outcome, Err(Error::NoClassYet)));
    assert!(made < 100, "the maker stops when nobody listens");
}
