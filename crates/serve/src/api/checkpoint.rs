//! `GET /checkpoint`, the learner in one file, and `POST /checkpoint`, which writes one.

use std::{fs::File, io::Read, sync::Arc};

use axum::{
    Json,
    body::{Body, Bytes},
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::oneshot;
use utoipa::ToSchema;

use crate::{
    keeper::{Safe, lock},
    problem::Problem,
    service::Shared,
};

/// Bytes that are read from the file at a time.
const PIECE: usize = 256 << 10;

/// A checkpoint that is safe on disk.
#[derive(Serialize, ToSchema)]
pub struct Kept {
    /// Samples it has learned.
    version: u64,
}

/// The newest checkpoint: everything the learner is, in the file that `dpcl predict` and others read. Its version is the
/// `ETag`; with `If-None-Match` nothing is sent twice.
#[utoipa::path(
    get, path = "/checkpoint", tag = "keeping",
    params(("If-None-Match" = Option<String>, Header, description = "The ETag of the one that is known.")),
    responses(
        (status = 200, description = "The file.", body = super::openapi::Bytes, content_type = "application/octet-stream"),
        (status = 304, description = "It is the one that is known."),
        (status = 401, description = "The token is missing or wrong.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "A replica has none; or the request comes from another site.", body = Problem, content_type = "application/problem+json"),
        (status = 409, description = "There is none yet.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn get(State(service): Shared, headers: HeaderMap) -> Result<Response, Problem> {
    let teaching = service.teaching()?;
    // A file can go while a newer one is written: the newer one is then there.
    for _ in 0..3 {
        let newest = lock(&teaching.newest).clone();
        let Some(safe) = newest else { return Err(Problem::no_checkpoint("nothing was written yet")) };
        let tag = format!("\"{}\"", safe.learned);
        if headers.get(header::IF_NONE_MATCH).is_some_and(|known| known.as_bytes() == tag.as_bytes()) {
            return Ok((StatusCode::NOT_MODIFIED, [(header::ETAG, tag)]).into_response());
        }
        if let Ok(response) = sent(&safe, &tag) {
            return Ok(response);
        }
    }
    Err(Problem::failed("the checkpoint cannot be read"))
}

fn sent(safe: &Safe, tag: &str) -> std::io::Result<Response> {
    let file = Arc::new(File::open(&safe.path)?);
    let length = file.metadata()?.len();
    let pieces = stream::try_unfold(file, |file| async move {
        let reader = Arc::clone(&file);
        let read = move || -> std::io::Result<Bytes> {
            let mut piece = Vec::with_capacity(PIECE);
            (&*reader).take(PIECE as u64).read_to_end(&mut piece)?;
            Ok(piece.into())
        };
        let piece = tokio::task::spawn_blocking(read).await.map_err(std::io::Error::other)??;
        Ok::<_, std::io::Error>((!piece.is_empty()).then_some((piece, file)))
    });
    let name = format!("attachment; filename=\"{}.ckpt\"", safe.learned);
    let headers = [
        (header::CONTENT_TYPE, "application/octet-stream"),
        (header::CACHE_CONTROL, "no-cache"),
        (header::ETAG, tag),
        (header::CONTENT_DISPOSITION, &name),
    ];
    let mut response = (headers, Body::from_stream(pieces)).into_response();
    response.headers_mut().insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    Ok(response)
}

/// Writes a checkpoint of what has been learned and answers when it is safe on disk.
#[utoipa::path(
    post, path = "/checkpoint", tag = "keeping",
    responses(
        (status = 200, description = "It is safe on disk.", body = Kept),
        (status = 401, description = "The token is missing or wrong.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "A replica has none; or the request comes from another site.", body = Problem, content_type = "application/problem+json"),
        (status = 503, description = "Learning has ended.", body = Problem, content_type = "application/problem+json"),
        (status = 507, description = "The disk does not take it; the one before is intact.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn post(State(service): Shared) -> Result<Json<Kept>, Problem> {
    let teaching = service.teaching()?;
    let (tell, told) = oneshot::channel();
    if let Some(problem) = teaching.counts.failure() {
        return Err(Problem::ended(problem));
    }
    teaching.queue.wish(tell);
    match told.await {
        Ok(Ok(version)) => Ok(Json(Kept { version })),
        Ok(Err(problem)) => Err(Problem::full(problem)),
        Err(_) => Err(Problem::stopping("the learning thread has ended")),
    }
}
