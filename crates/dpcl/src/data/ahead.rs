//! Reading ahead: images are decoded on a thread of their own while the learner is busy with earlier ones.
//!
//! Knows an order of positions and nothing of why it is that order.

use std::{
    panic::resume_unwind,
    sync::{
        Arc,
        mpsc::{Receiver, sync_channel},
    },
    thread::JoinHandle,
};

use super::{Image, ImageSource};
use crate::error::Result;

/// Images in a given order, a bounded number of them decoded before they are asked for.
///
/// An image that cannot be read comes out as an error in its place, and the ones after it still follow. Dropping the
/// reader stops its thread.
pub struct Ahead {
    images: Option<Receiver<Result<Image>>>,
    worker: Option<JoinHandle<()>>,
    left: usize,
}

impl Ahead {
    /// Starts reading `positions` of `source`, at most `depth` images ahead (at least one).
    pub fn new(source: Arc<dyn ImageSource>, positions: Vec<usize>, depth: usize) -> Self {
        // The worker holds one more decoded image while it waits for room.
        let (sender, receiver) = sync_channel(depth.max(1) - 1);
        let left = positions.len();
        let worker = std::thread::spawn(move || {
            for position in positions {
                if sender.send(source.image(position)).is_err() {
                    break;
                }
            }
        });
        Self { images: Some(receiver), worker: Some(worker), left }
    }
}

impl Iterator for Ahead {
    type Item = Result<Image>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.left == 0 {
            return None;
        }
        let next = self.images.as_ref().and_then(|images| images.recv().ok());
        if next.is_none()
            && let Some(Err(panic)) = self.worker.take().map(JoinHandle::join)
        {
            // The source's own panic: going on would silently drop images.
            resume_unwind(panic);
        }
        self.left -= 1;
        next
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl ExactSizeIterator for Ahead {}

impl Drop for Ahead {
    fn drop(&mut self) {
        // Without a receiver the worker's next hand-over fails, which ends it.
        drop(self.images.take());
        if let Some(worker) = self.worker.take() {
            let _panicked = worker.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    };

    use proptest::prelude::*;

    use super::*;
    use crate::error::Error;

    /// Serves its position as a pixel, fails on 13, panics on 99, and counts how often it was asked.
    #[derive(Default)]
    struct Counted {
        asked: AtomicUsize,
        open: Mutex<()>,
    }

    impl ImageSource for Counted {
        fn image(&self, index: usize) -> Result<Image> {
            let _wait = self.open.lock().unwrap();
            self.asked.fetch_add(1, Ordering::SeqCst);
            assert_ne!(index, 99, "broken source");
            if index == 13 {
                return Err(Error::bad_data("13.png", "is unlucky", "skip it"));
            }
            Ok(Image { height: 1, width: 1, pixels: vec![index as u8; 3].into() })
        }
    }

    fn values(ahead: Ahead) -> Vec<Option<u8>> {
        ahead.map(|image| image.ok().map(|image| image.pixels[0])).collect()
    }

    #[test]
    fn errors_come_out_in_their_place() {
        let ahead = Ahead::new(Arc::new(Counted::default()), vec![5, 13, 2, 5], 3);
        assert_eq!(ahead.len(), 4);
        assert_eq!(values(ahead), [Some(5), None, Some(2), Some(5)]);
    }

    #[test]
    fn it_reads_ahead_but_not_without_bound_and_stops_when_dropped() {
        let source = Arc::new(Counted::default());
        let mut ahead = Ahead::new(Arc::clone(&source) as Arc<dyn ImageSource>, (14..90).collect(), 4);
        // Taking six shows that at least six were read; the bound allows four more and no other.
        for _ in 0..6 {
            ahead.next().unwrap().unwrap();
        }
        drop(ahead);
        let asked = source.asked.load(Ordering::SeqCst);
        assert!((6..=10).contains(&asked), "{asked}");
        assert_eq!(Arc::strong_count(&source), 1, "the thread has ended");
    }

    #[test]
    fn images_are_ready_before_they_are_asked_for() {
        let source = Arc::new(Counted::default());
        let mut ahead = Ahead::new(Arc::clone(&source) as Arc<dyn ImageSource>, vec![1, 2, 3, 4, 5], 3);
        while source.asked.load(Ordering::SeqCst) < 3 {
            std::thread::yield_now();
        }
        let closed = source.open.lock().unwrap();
        // The source is closed, yet the images decoded before can be taken.
        assert_eq!(ahead.next().unwrap().unwrap().pixels[0], 1);
        assert_eq!(ahead.next().unwrap().unwrap().pixels[0], 2);
        drop(closed);
        assert_eq!(values(ahead), [Some(3), Some(4), Some(5)]);
    }

    #[test]
    #[should_panic(expected = "broken source")]
    fn a_panic_of_the_source_is_not_swallowed() {
        values(Ahead::new(Arc::new(Counted::default()), vec![1, 99, 2], 2));
    }

    proptest! {
        #[test]
        fn any_order_comes_back_as_given(
            order in proptest::collection::vec(14_usize..90, 0..40),
            depth in 0_usize..6,
        ) {
            let ahead = Ahead::new(Arc::new(Counted::default()), order.clone(), depth);
            let expected: Vec<Option<u8>> = order.iter().map(|&position| Some(position as u8)).collect();
            prop_assert_eq!(values(ahead), expected);
        }
    }
}
