//! Images that cannot be read when their turn comes: they end the run, or are left out and written down.

use dpcl_report::record::{BadImages, Event, Part};

use super::{Execution, Watch};
use crate::{
    data::OnBadImage,
    error::{Error, Result},
};

impl Execution<'_> {
    /// Images of the stream that had their turn, those passed over included.
    pub(super) fn behind(&self) -> usize {
        (self.standing.samples + BadImages::of(&self.events).stream) as usize
    }

    /// A stream image that cannot be read: the end of the run, or a line of the record.
    pub(super) fn pass_over(&mut self, position: usize, problem: Error, watch: &mut Watch<'_>) -> Result<()> {
        let samples = self.standing.samples;
        if self.run.setup.on_bad_image == OnBadImage::Fail {
            let what = format!("stream sample {} (training image {position})", self.behind() + 1);
            return Err(Error::BadImage { what, source: Box::new(problem) });
        }
        let file = self.run.dataset.train.images.file_name(position);
        self.emit(Event::BadImage { samples, part: Part::Stream, position, file }, watch)
    }

    /// Writes down the test images that could not be read, each at the first evaluation that misses it. The events
    /// are the memory of which those are, so that a run that goes on from its record knows them too.
    pub(super) fn note_unread(&mut self, unread: &[usize], watch: &mut Watch<'_>) -> Result<()> {
        for &unread in unread {
            let known = self.events.iter().any(|event| match event {
                Event::BadImage { part: Part::Test, position, .. } => *position == unread,
                _ => false,
            });
            if !known {
                let (samples, file) = (self.standing.samples, self.test.file_name(unread));
                let event = Event::BadImage { samples, part: Part::Test, position: unread, file };
                self.emit(event, watch)?;
            }
        }
        Ok(())
    }

    /// A stream of which nothing could be read has no result.
    pub(super) fn refuse_nothing_learned(&self, total: u64) -> Result<()> {
        if self.standing.samples > 0 {
            return Ok(());
        }
        let problem = format!("none of the {total} images of the stream can be read");
        let hint = "look at the files that the record's events name";
        Err(Error::bad_data(&self.run.dataset.name, problem, hint))
    }
}
