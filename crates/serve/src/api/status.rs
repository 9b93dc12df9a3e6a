//! `GET /status`: how far the server is.

use std::collections::BTreeMap;

use axum::{Json, extract::State};
use serde::Serialize;
use utoipa::ToSchema;

use crate::{
    keeper::lock,
    problem::Problem,
    service::{Part, Service, Shared, Teaching},
    tally::WIDEST,
};
use std::sync::atomic::Ordering;

/// How far the server is.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
pub enum Status {
    /// Of a server that learns.
    Learner(LearnerStatus),
    /// Of a server that follows another.
    Replica(ReplicaStatus),
}

/// How far a server is that learns.
#[derive(Serialize, ToSchema)]
pub struct LearnerStatus {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    learning: Learning,
}

/// How far a server is that follows another.
#[derive(Serialize, ToSchema)]
pub struct ReplicaStatus {
    #[serde(flatten)]
    common: Common,
    #[serde(flatten)]
    following: Following,
}

/// What every server knows.
#[derive(Serialize, ToSchema)]
pub struct Common {
    /// `learner` or `replica`.
    role: &'static str,
    /// Samples that the answering network has learned.
    version: u64,
    /// Classes that it can answer with, in order of first arrival.
    classes: Vec<Class>,
    /// Height and width that images are scaled to.
    size: usize,
    /// Samples in the memory.
    stored: usize,
    /// Seconds since the server started.
    uptime_seconds: f64,
}

/// A class.
#[derive(Serialize, ToSchema)]
pub struct Class {
    /// Its name.
    label: String,
    /// Samples of it in the memory.
    stored: usize,
    /// Samples of it that were learned; unknown to replicas.
    #[serde(skip_serializing_if = "Option::is_none")]
    learned: Option<u64>,
    /// Share of them that was answered rightly before it was learned.
    #[serde(skip_serializing_if = "Option::is_none")]
    accuracy: Option<f64>,
}

/// What a server that learns knows.
#[derive(Serialize, ToSchema)]
pub struct Learning {
    /// Samples that are safe on disk.
    accepted: u64,
    /// Samples that were learned.
    learned: u64,
    /// Samples that wait to be learned.
    waiting: u64,
    /// Training steps taken.
    updates: u64,
    /// Samples learned a second, of late.
    samples_per_second: f64,
    /// Samples that the newest checkpoint has learned.
    checkpoint: Option<u64>,
    /// Bytes of the log.
    log_bytes: u64,
    /// Share of all samples answered rightly before they were learned.
    accuracy: Option<f64>,
    /// The same of the last 500.
    late_accuracy: Option<f64>,
    /// Loss of the last training step.
    loss: Option<f64>,
    /// Its learning rate.
    rate: Option<f64>,
    /// How many of the last 500 samples were disagreed on so much.
    disagreement: Histogram,
    /// How it went: at most 256 points.
    curve: Vec<Point>,
    /// Why nothing is learned any more, if it is so.
    #[serde(skip_serializing_if = "Option::is_none")]
    failure: Option<String>,
}

/// Equal bars from 0.
#[derive(Serialize, ToSchema)]
pub struct Histogram {
    /// Upper end of the last bar, which also holds what lies beyond, in nats.
    upper: f64,
    /// Samples in each bar.
    bars: Vec<u64>,
}

/// A point of the curves.
#[derive(Serialize, ToSchema)]
pub struct Point {
    /// Samples learned.
    learned: u64,
    /// Share of the 500 before that were answered rightly before they were learned.
    accuracy: Option<f64>,
    /// Mean loss since the point before.
    loss: Option<f64>,
    /// Learning rate.
    rate: Option<f64>,
}

/// What a replica knows.
#[derive(Serialize, ToSchema)]
pub struct Following {
    /// Whom it follows.
    follows: String,
    /// Seconds since it last knew that it has the newest checkpoint.
    stale_seconds: f64,
    /// Samples that the other had learned when last asked, beyond those this one has; unknown for a folder.
    #[serde(skip_serializing_if = "Option::is_none")]
    behind: Option<u64>,
    /// Why the last look failed, if it did.
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

/// Says how far the server is.
#[utoipa::path(
    get, path = "/status", tag = "watching",
    responses(
        (status = 200, description = "How far it is.", body = Status),
        (status = 401, description = "The token is missing or wrong.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The request comes from another site.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn status(State(service): Shared) -> Json<Status> {
    Json(of(&service))
}

/// How far a server is.
pub fn of(service: &Service) -> Status {
    let version = service.published.current();
    let common = |role| Common {
        role,
        version: version.number,
        classes: classes(service),
        size: version.snapshot.shape().height,
        stored: version.snapshot.memory().map_or(0, |memory| memory.slots().len()),
        uptime_seconds: service.started.elapsed().as_secs_f64(),
    };
    match &service.part {
        Part::Learner(teaching) => {
            Status::Learner(LearnerStatus { common: common("learner"), learning: learning(teaching) })
        }
        Part::Replica(standing) => {
            let following = Following {
                follows: standing.source(),
                stale_seconds: standing.stale().as_secs_f64(),
                behind: standing.behind(version.number),
                problem: standing.problem(),
            };
            Status::Replica(ReplicaStatus { common: common("replica"), following })
        }
    }
}

fn classes(service: &Service) -> Vec<Class> {
    let version = service.published.current();
    let stored = service.stored();
    let tallies = match &service.part {
        Part::Learner(teaching) => lock(&teaching.shown).classes.clone(),
        Part::Replica(_) => BTreeMap::new(),
    };
    let class = |label: String| {
        let tally = tallies.get(&label);
        let accuracy = tally.filter(|tally| tally.answered > 0);
        Class {
            stored: stored.get(&label).copied().unwrap_or(0),
            learned: tally.map(|tally| tally.learned),
            accuracy: accuracy.map(|tally| tally.right as f64 / tally.answered as f64),
            label,
        }
    };
    version.snapshot.labels().iter().map(|label| class(label.to_string())).collect()
}

fn learning(teaching: &Teaching) -> Learning {
    let counts = &teaching.counts;
    let tally = lock(&teaching.shown).clone();
    let point = |point: &crate::tally::Point| Point {
        learned: point.learned,
        accuracy: point.accuracy,
        loss: point.loss,
        rate: point.rate,
    };
    Learning {
        accepted: counts.accepted.load(Ordering::Acquire),
        learned: counts.learned.load(Ordering::Acquire),
        waiting: counts.waiting(),
        updates: counts.updates.load(Ordering::Relaxed),
        samples_per_second: counts.pace(),
        checkpoint: lock(&teaching.newest).as_ref().map(|safe| safe.learned),
        log_bytes: counts.log_bytes.load(Ordering::Relaxed),
        accuracy: tally.accuracy(),
        late_accuracy: tally.late_accuracy(),
        loss: tally.loss,
        rate: tally.rate,
        disagreement: Histogram { upper: WIDEST, bars: tally.disagreement().to_vec() },
        curve: tally.curve.iter().map(point).collect(),
        failure: counts.failure(),
    }
}
