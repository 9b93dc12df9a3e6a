//! What a client is told when a request is not answered: JSON after RFC 9457, with a status that says whose turn it is.

use axum::{
    Json,
    http::{HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

/// A problem, as a client sees it.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct Problem {
    /// Which kind of problem: `/problems#` and a name that does not change.
    #[serde(rename = "type")]
    kind: String,
    /// The same in words.
    title: &'static str,
    /// The status of the answer.
    status: u16,
    /// What is wrong with this request.
    detail: String,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<&'static str>,
    /// Seconds after which to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u64>,
}

macro_rules! kinds {
    ($($(#[doc = $doc:literal])+ $function:ident: $status:ident, $name:literal, $title:literal, $hint:expr;)*) => {
        impl Problem {
            $($(#[doc = $doc])+
            pub fn $function(detail: impl Into<String>) -> Self {
                Self {
                    kind: concat!("/problems#", $name).into(),
                    title: $title,
                    status: StatusCode::$status.as_u16(),
                    detail: detail.into(),
                    hint: $hint,
                    retry_after: None,
                }
            })*
        }
    };
}

kinds! {
    /// A body or query that cannot be read.
    malformed: BAD_REQUEST, "malformed", "the request cannot be read", Some("see /openapi.json for what is taken");
    /// No token, or another one.
    unauthorized: UNAUTHORIZED, "unauthorized", "the token is missing or wrong", Some("send `Authorization: Bearer TOKEN`");
    /// A page of another site asks.
    foreign: FORBIDDEN, "foreign", "the request comes from another site", Some("ask from the server's own page, or without `Origin`");
    /// Only a learner can do that.
    replica: FORBIDDEN, "replica", "this server answers for another one and takes no samples", Some("send it to the server that learns");
    /// No such place.
    not_found: NOT_FOUND, "not-found", "there is nothing here", Some("see /openapi.json for what there is");
    /// No such verb here.
    method: METHOD_NOT_ALLOWED, "method-not-allowed", "this is not asked for with that method", Some("see /openapi.json for what there is");
    /// The client was too slow.
    slow: REQUEST_TIMEOUT, "slow", "the request did not arrive in time", None;
    /// Nothing to answer with.
    nothing_learned: CONFLICT, "nothing-learned", "nothing has been learned yet", Some("teach something first: `POST /observe`");
    /// There is none yet.
    no_checkpoint: CONFLICT, "no-checkpoint", "there is no checkpoint yet", Some("`POST /checkpoint` writes one");
    /// A key that came with another request.
    key_reused: UNPROCESSABLE_ENTITY, "key-reused", "the idempotency key came with another request before", Some("give every request a key of its own");
    /// Too much at once.
    too_large: PAYLOAD_TOO_LARGE, "too-large", "the request is larger than is taken", Some("send less at a time");
    /// An image of too many pixels.
    image_too_large: PAYLOAD_TOO_LARGE, "image-too-large", "an image has too many pixels", Some("send a smaller image");
    /// A kind of body that is not taken.
    unsupported: UNSUPPORTED_MEDIA_TYPE, "unsupported", "this kind of body is not taken",
        Some("send image bytes, multipart/form-data or application/json");
    /// Bytes that are no image.
    not_an_image: UNPROCESSABLE_ENTITY, "not-an-image", "an image cannot be read", Some("send a whole PNG or JPEG image");
    /// A label that cannot be one.
    bad_label: UNPROCESSABLE_ENTITY, "bad-label", "a label is missing, empty or too long", None;
    /// More classes than allowed.
    too_many_classes: UNPROCESSABLE_ENTITY, "too-many-classes", "there would be too many classes", None;
    /// Learning does not keep up.
    behind: TOO_MANY_REQUESTS, "behind", "too many samples wait to be learned", Some("try again later");
    /// The server has enough to do.
    busy: TOO_MANY_REQUESTS, "busy", "too many requests at once", Some("try again later");
    /// Learning has ended.
    ended: SERVICE_UNAVAILABLE, "learning-ended", "nothing can be learned any more", Some("see the server's log, and start it again");
    /// The server ends.
    stopping: SERVICE_UNAVAILABLE, "stopping", "the server is being stopped", Some("try again later");
    /// Something went wrong that the client did not cause.
    failed: INTERNAL_SERVER_ERROR, "failed", "the request could not be answered", Some("see the server's log");
    /// The disk is full.
    full: INSUFFICIENT_STORAGE, "full", "the disk does not take the samples", Some("nothing was accepted; make room and send them again");
}

impl Problem {
    /// The same with a time after which to try again.
    #[must_use]
    pub fn after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(seconds);
        self
    }

    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let (status, retry_after) = (self.status(), self.retry_after);
        let unauthorized = status == StatusCode::UNAUTHORIZED;
        let mut response = (status, Json(self)).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if unauthorized {
            headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}
