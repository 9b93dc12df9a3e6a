//! `POST /predict`: what images show.

use std::collections::BTreeMap;

use axum::{Json, body::Body, extract::State, http::HeaderMap};
use dpcl::Prediction;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Asked, asked};
use crate::{
    body,
    predicting::{Answered, Unanswered},
    problem::Problem,
    service::{Part, Shared},
};

/// What is said beside the body.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Wishes {
    /// An answer less probable than this is an abstention.
    #[param(minimum = 0.0, maximum = 1.0)]
    threshold: Option<f64>,
}

/// What images show.
#[derive(Serialize, ToSchema)]
pub struct Answers {
    /// Samples that the network had learned that answered.
    version: u64,
    /// For a replica: seconds since it last knew that it has the newest checkpoint.
    #[serde(skip_serializing_if = "Option::is_none")]
    stale_seconds: Option<f64>,
    /// One for each image, in order.
    answers: Vec<Answer>,
}

/// What an image shows.
#[derive(Serialize, ToSchema)]
pub struct Answer {
    /// The most probable class.
    label: String,
    /// Its probability.
    probability: f32,
    /// Whether it is less probable than the threshold.
    abstain: bool,
    /// How much the network's heads disagree, in nats.
    disagreement: f64,
    /// Entropy of the probabilities, in nats.
    entropy: f64,
    /// Every class with its probability.
    probabilities: BTreeMap<String, f32>,
}

/// Answers for one image or many, at any time: it never waits for learning. The body is as for `/observe`; labels in it
/// count for nothing.
#[utoipa::path(
    post, path = "/predict", tag = "answering", params(Wishes),
    request_body(content(
        (super::openapi::Samples = "application/json"),
        (super::openapi::Form = "multipart/form-data"),
        (super::openapi::Bytes = "image/png"),
        (super::openapi::Bytes = "image/jpeg"),
    )),
    responses(
        (status = 200, description = "An answer for each image.", body = Answers),
        (status = 400, description = "The request cannot be read.", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The request comes from another site.", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "Nothing has been learned yet.", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body, an image or the number of images is too large.", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body is of another kind.", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "An image cannot be read.", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many requests at once; see Retry-After.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn predict(
    State(service): Shared,
    headers: HeaderMap,
    wishes: Asked<Wishes>,
    body: Body,
) -> Result<Json<Answers>, Problem> {
    let threshold = asked(wishes)?.threshold.unwrap_or(0.0);
    if !(0.0..=1.0).contains(&threshold) {
        return Err(Problem::malformed("threshold must lie between 0 and 1"));
    }
    let held = body::read(&headers, body, &service.limits, &service.room).await?;
    let sent = body::images(&headers, held.bytes.clone(), None, service.limits.images).await?;
    let images = service.decode(sent.into_iter().map(|sent| sent.bytes).collect()).await?;
    let Answered { predictions, version } = service.predictor.ask(images).await.map_err(problem)?;
    let stale_seconds = match &service.part {
        Part::Learner(_) => None,
        Part::Replica(standing) => Some(standing.stale().as_secs_f64()),
    };
    let answers = predictions.into_iter().map(|prediction| answer(prediction, threshold)).collect();
    Ok(Json(Answers { version: version.number, stale_seconds, answers }))
}

fn problem(unanswered: Unanswered) -> Problem {
    match unanswered {
        Unanswered::Busy => Problem::busy("too many images wait for answers").after(1),
        Unanswered::NothingLearned => Problem::nothing_learned("there is no class to answer with"),
        Unanswered::Failed(problem) => Problem::failed(problem),
    }
}

fn answer(prediction: Prediction, threshold: f64) -> Answer {
    let Prediction { label, probabilities, disagreement, entropy } = prediction;
    let own = probabilities.iter().find(|(other, _)| *other == label);
    let probability = own.map_or(0.0, |(_, probability)| *probability);
    let named = probabilities.into_iter().map(|(label, probability)| (label.to_string(), probability));
    Answer {
        label: label.to_string(),
        probability,
        abstain: f64::from(probability) < threshold,
        disagreement,
        entropy,
        probabilities: named.collect(),
    }
}
