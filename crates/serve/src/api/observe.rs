//! `POST /observe`: labelled images to be learned.

use std::sync::{Arc, atomic::Ordering};

use axum::{
    Json,
    body::Body,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode},
    response::{IntoResponse, Response},
};
use dpcl::Image;
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::{Asked, asked};
use crate::{
    body::{self, Sent},
    keys::Key,
    options::Limits,
    problem::Problem,
    service::{Service, Shared, Teaching},
    writer::Outcome,
};

/// Header by which a client says that a request is the same as one before.
const KEY: &str = "idempotency-key";

/// Longest such key.
const LONGEST_KEY: usize = 256;

/// What is said beside the body.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Wishes {
    /// What the images show, where the body does not say.
    label: Option<String>,
}

/// Samples that are safe.
#[derive(Serialize, ToSchema)]
pub struct Accepted {
    /// How many images of the request were accepted: all of them.
    accepted: usize,
    /// Number of the last one, counted from the server's first; absent when the request was accepted before.
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<u64>,
    /// Samples that wait to be learned.
    waiting: u64,
}

/// Takes labelled images. They are on disk when the answer comes, and are learned in the order of acceptance. Either all
/// images of a request are accepted or none.
///
/// The body is one image (`image/png`, `image/jpeg`) with `?label=`, a form whose parts `label` hold for the parts `image`
/// behind them, or JSON: `{"label": NAME, "image": BASE64}` or `{"samples": [{"label": …, "image": …}]}`. With an
/// `Idempotency-Key` a request that is sent again is not learned again.
#[utoipa::path(
    post, path = "/observe", tag = "learning", params(
        Wishes,
        ("Idempotency-Key" = Option<String>, Header, description = "The same for every try of one request.", max_length = 256),
    ),
    request_body(content(
        (super::openapi::Samples = "application/json"),
        (super::openapi::Form = "multipart/form-data"),
        (super::openapi::Bytes = "image/png"),
        (super::openapi::Bytes = "image/jpeg"),
    )),
    responses(
        (status = 202, description = "All images are safe on disk.", body = Accepted),
        (status = 400, description = "The request cannot be read.", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "A replica takes no samples; or the request comes from another site.", body = Problem, content_type = "application/problem+json"),
        (status = 408, description = "The body did not arrive in time.", body = Problem, content_type = "application/problem+json"),
        (status = 413, description = "The body, an image or the number of images is too large.", body = Problem, content_type = "application/problem+json"),
        (status = 415, description = "The body is of another kind.", body = Problem, content_type = "application/problem+json"),
        (status = 422, description = "An image or label cannot be one, or the key came with another request.", body = Problem, content_type = "application/problem+json"),
        (status = 429, description = "Too many samples wait; see Retry-After.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Nothing can be learned any more.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk is full; nothing was accepted.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn observe(
    State(service): Shared,
    headers: HeaderMap,
    wishes: Asked<Wishes>,
    body: Body,
) -> Result<Response, Problem> {
    let teaching = service.teaching()?;
    if let Some(problem) = teaching.counts.failure() {
        return Err(Problem::ended(problem));
    }
    if teaching.counts.stopping.load(Ordering::Acquire) {
        return Err(Problem::stopping("it takes no more samples").after(5));
    }
    let wishes = asked(wishes)?;
    let held = body::read(&headers, body, &service.limits, &service.room).await?;
    let sent =
        body::images(&headers, held.bytes.clone(), wishes.label.as_deref(), service.limits.images).await?;
    let samples = samples(&service, sent).await?;
    let key = key(&headers, &samples)?;
    accept(&service, teaching, key, samples).await
}

/// Labels checked, images decoded.
async fn samples(service: &Arc<Service>, sent: Vec<Sent>) -> Result<Vec<(String, Image)>, Problem> {
    let (mut labels, mut files) = (Vec::new(), Vec::new());
    for (position, Sent { label, bytes }) in (1..).zip(sent) {
        labels.push(checked(position, label, &service.limits)?);
        files.push(bytes);
    }
    Ok(labels.into_iter().zip(service.decode(files).await?).collect())
}

fn checked(position: usize, label: Option<String>, limits: &Limits) -> Result<String, Problem> {
    let most = limits.label_bytes;
    match label {
        None => Err(Problem::bad_label(format!("image {position} has no label"))),
        Some(label) if label.trim().is_empty() => {
            Err(Problem::bad_label(format!("the label of image {position} is empty")))
        }
        Some(label) if label.len() > most => {
            let problem = format!("the label of image {position} has {} bytes; at most {most}", label.len());
            Err(Problem::bad_label(problem))
        }
        Some(label) => Ok(label),
    }
}

/// The request's key, which stands for what is to be learned, however that was packed.
fn key(headers: &HeaderMap, samples: &[(String, Image)]) -> Result<Option<Key>, Problem> {
    let Some(value) = headers.get(KEY) else { return Ok(None) };
    let wrong =
        || Problem::malformed(format!("Idempotency-Key must be 1 to {LONGEST_KEY} visible characters"));
    let key = value.to_str().map_err(|_| wrong())?;
    if key.is_empty() || key.len() > LONGEST_KEY {
        return Err(wrong());
    }
    let parts = samples.iter().flat_map(|(label, image)| [label.as_bytes(), &image.pixels[..]]);
    Ok(Some(Key::of(key, parts)))
}

async fn accept(
    service: &Service,
    teaching: &Teaching,
    key: Option<Key>,
    samples: Vec<(String, Image)>,
) -> Result<Response, Problem> {
    let (counts, count) = (&teaching.counts, samples.len());
    if !counts.reserve(count as u64) {
        let problem = format!("{} samples wait", counts.waiting());
        return Err(Problem::behind(problem).after(counts.seconds_until_room(count as u64)));
    }
    let labels = samples.iter().map(|(label, _)| label.as_str());
    let new = counts.take_on(labels, service.limits.classes).map_err(|_| {
        counts.release(count as u64);
        Problem::too_many_classes(format!("at most {} classes are learned", service.limits.classes))
    })?;
    match teaching.writer.write(key, samples).await {
        Outcome::Accepted { last } => Ok(accepted(count, Some(last), counts.waiting())),
        Outcome::Before(count) => {
            let mut response = accepted(count as usize, None, counts.waiting());
            response.headers_mut().insert("idempotency-replayed", HeaderValue::from_static("true"));
            Ok(response)
        }
        Outcome::OtherRequest => {
            counts.give_up(&new);
            Err(Problem::key_reused("its samples are others than those of the first request"))
        }
        Outcome::Refused(problem) => {
            counts.give_up(&new);
            Err(Problem::full(problem))
        }
    }
}

fn accepted(accepted: usize, last: Option<u64>, waiting: u64) -> Response {
    (StatusCode::ACCEPTED, Json(Accepted { accepted, last, waiting })).into_response()
}
