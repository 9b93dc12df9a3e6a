//! One thread answers: questions that came while it was busy share the next pass through the network.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
    mpsc,
};

use dpcl::{Image, Prediction};
use tokio::sync::oneshot;

use crate::{
    metrics::Metrics,
    published::{Published, Version},
};

/// Images that go through the network together.
const ROWS: usize = 64;

/// Images that may wait for their answers; each has been decoded.
const MOST_WAITING: usize = 4096;

/// Answers to one question, and who gave them.
pub struct Answered {
    /// One for each image, in order.
    pub predictions: Vec<Prediction>,
    /// The version that answered.
    pub version: Arc<Version>,
}

/// Why there is no answer.
#[derive(Debug)]
pub enum Unanswered {
    /// Too many wait.
    Busy,
    /// No class is known.
    NothingLearned,
    /// The network cannot answer.
    Failed(String),
}

struct Question {
    images: Vec<Image>,
    tell: oneshot::Sender<Result<Answered, Unanswered>>,
}

/// Where questions are asked.
pub struct Predictor {
    questions: mpsc::Sender<Question>,
    waiting: Arc<AtomicUsize>,
}

impl Predictor {
    /// Starts the thread; it ends when the predictor is dropped.
    ///
    /// # Errors
    /// When the system gives no thread.
    pub fn start(published: Arc<Published>, metrics: Arc<Metrics>) -> std::io::Result<Self> {
        let (questions, asked) = mpsc::channel();
        let waiting = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&waiting);
        let answer = move || answer_all(&asked, &published, &counted, &metrics);
        std::thread::Builder::new().name("dpcl-predict".into()).spawn(answer)?;
        Ok(Self { questions, waiting })
    }

    /// What the images show.
    ///
    /// # Errors
    /// When there is no answer.
    pub async fn ask(&self, images: Vec<Image>) -> Result<Answered, Unanswered> {
        let count = images.len();
        let room = |waiting| (waiting + count <= MOST_WAITING).then_some(waiting + count);
        if self.waiting.fetch_update(Ordering::Relaxed, Ordering::Relaxed, room).is_err() {
            return Err(Unanswered::Busy);
        }
        let (tell, told) = oneshot::channel();
        let gone = || Unanswered::Failed("the thread that answers has ended".into());
        self.questions.send(Question { images, tell }).map_err(|_| gone())?;
        told.await.map_err(|_| gone())?
    }
}

fn answer_all(
    asked: &mpsc::Receiver<Question>,
    published: &Published,
    waiting: &AtomicUsize,
    metrics: &Metrics,
) {
    while let Ok(first) = asked.recv() {
        let mut rows = first.images.len();
        let mut together = vec![first];
        while rows < ROWS {
            let Ok(question) = asked.try_recv() else { break };
            rows += question.images.len();
            together.push(question);
        }
        metrics.pass(rows);
        answer(together, &published.current());
        waiting.fetch_sub(rows, Ordering::Relaxed);
    }
}

fn answer(questions: Vec<Question>, version: &Arc<Version>) {
    let images: Vec<Image> = questions.iter().flat_map(|question| question.images.iter().cloned()).collect();
    let answered = version.snapshot.predict_all(&images);
    let mut predictions = match answered {
        Ok(predictions) => predictions.into_iter(),
        Err(error) => {
            for question in questions {
                let why = match &error {
                    dpcl::Error::NoClassYet => Unanswered::NothingLearned,
                    other => Unanswered::Failed(other.to_string()),
                };
                // Whoever asked may have gone.
                let _ = question.tell.send(Err(why));
            }
            return;
        }
    };
    for Question { images, tell } in questions {
        let predictions = predictions.by_ref().take(images.len()).collect();
        let _ = tell.send(Ok(Answered { predictions, version: Arc::clone(version) }));
    }
}
