//! `GET /metrics`: counts and gauges for Prometheus.

use std::sync::atomic::Ordering;

use axum::{extract::State, http::header, response::IntoResponse};

use crate::{
    keeper::lock,
    metrics::Text,
    problem::Problem,
    service::{Part, Service, Shared, Teaching},
};

/// The format's own content type.
const FORMAT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counts and gauges in Prometheus' text format.
#[utoipa::path(
    get, path = "/metrics", tag = "watching",
    responses(
        (status = 200, description = "Counts and gauges.", body = String, content_type = "text/plain; version=0.0.4; charset=utf-8"),
        (status = 401, description = "The token is missing or wrong.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The request comes from another site.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn metrics(State(service): Shared) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, FORMAT)], written(&service))
}

fn written(service: &Service) -> String {
    let mut text = Text::default();
    let version = service.published.current();
    text.gauge("dpcl_version", "Samples that the answering network has learned.", version.number as f64);
    let age = version.since.elapsed().as_secs_f64();
    text.gauge("dpcl_version_age_seconds", "Time since the answering network was swapped in.", age);
    text.describe("dpcl_stored", "gauge", "Samples in the memory, by class.");
    for (label, count) in service.stored() {
        text.line("dpcl_stored", &[("class", &label)], count as f64);
    }
    match &service.part {
        Part::Learner(teaching) => learner(&mut text, teaching),
        Part::Replica(standing) => {
            let stale = standing.stale().as_secs_f64();
            let help = "Time since the replica last knew that it has the newest checkpoint.";
            text.gauge("dpcl_stale_seconds", help, stale);
            if let Some(behind) = standing.behind(version.number) {
                text.gauge("dpcl_behind", "Samples learned that the replica lacks.", behind as f64);
            }
        }
    }
    service.metrics.write(&mut text);
    text.finish()
}

fn learner(text: &mut Text, teaching: &Teaching) {
    let counts = &teaching.counts;
    let read = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Acquire) as f64;
    for (name, help, value) in [
        ("dpcl_accepted_total", "Samples that are safe on disk.", read(&counts.accepted)),
        ("dpcl_learned_total", "Samples that were learned.", read(&counts.learned)),
        ("dpcl_updates_total", "Training steps since the server started to learn.", read(&counts.updates)),
    ] {
        text.describe(name, "counter", help);
        text.line(name, &[], value);
    }
    text.gauge("dpcl_waiting", "Samples that wait to be learned.", counts.waiting() as f64);
    text.gauge("dpcl_log_bytes", "Bytes of the log.", read(&counts.log_bytes));
    let failed = f64::from(counts.failure().is_some());
    text.gauge("dpcl_learning_failed", "1 when nothing can be learned any more.", failed);
    if let Some(safe) = &*lock(&teaching.newest) {
        text.gauge("dpcl_checkpoint", "Samples that the newest checkpoint has learned.", safe.learned as f64);
    }
    let tally = lock(&teaching.shown).clone();
    for (name, help, value) in [
        ("dpcl_accuracy", "Share of samples answered rightly before they were learned.", tally.accuracy()),
        ("dpcl_late_accuracy", "The same of the last 500.", tally.late_accuracy()),
        ("dpcl_loss", "Loss of the last training step.", tally.loss),
        ("dpcl_rate", "Learning rate of the last training step.", tally.rate),
    ] {
        if let Some(value) = value {
            text.gauge(name, help, value);
        }
    }
    text.describe("dpcl_class_learned_total", "counter", "Samples that were learned, by class.");
    for (label, class) in &tally.classes {
        text.line("dpcl_class_learned_total", &[("class", label)], class.learned as f64);
    }
}
