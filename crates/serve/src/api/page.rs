//! `GET /`: the live page. One file without anything from elsewhere; its script and style carry a number that is another
//! in every answer, and nothing without it is run.

use std::hash::{BuildHasher, RandomState};

use axum::{
    http::header,
    response::{IntoResponse, Response},
};

use crate::problem::Problem;

const PAGE: &str = include_str!("page.html");

/// What stands in the page where the number goes.
const PLACE: &str = "{{nonce}}";

/// The live page.
#[utoipa::path(
    get, path = "/", tag = "watching",
    responses(
        (status = 200, description = "The page.", body = String, content_type = "text/html; charset=utf-8"),
        (status = 403, description = "The request comes from another site.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn page() -> Response {
    let nonce = nonce();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; img-src blob:; connect-src 'self'; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    let headers = [
        (header::CONTENT_TYPE, "text/html; charset=utf-8"),
        (header::CONTENT_SECURITY_POLICY, &policy),
        (header::CACHE_CONTROL, "no-store"),
    ];
    (headers, PAGE.replace(PLACE, &nonce)).into_response()
}

/// 128 bits that nobody can guess: fresh hashers have keys from the system's source of chance.
fn nonce() -> String {
    let half = || RandomState::new().hash_one(0);
    format!("{:016x}{:016x}", half(), half())
}
