//! `GET /openapi.json`: what can be asked, for programs.

use axum::Json;
use serde::Deserialize;
use utoipa::{
    Modify, OpenApi, ToSchema,
    openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme},
};

use super::{checkpoint, memory, metrics, observe, page, predict, status};
use crate::problem::Problem;

/// A file's bytes.
#[derive(ToSchema)]
#[schema(value_type = String, format = Binary)]
pub struct Bytes(#[allow(dead_code, reason = "it stands for bytes in the document")] Vec<u8>);

/// One image, or a list of them.
#[derive(ToSchema, Deserialize)]
#[serde(untagged)]
#[allow(dead_code, reason = "it stands for a body in the document")]
pub enum Samples {
    /// One.
    One(Sample),
    /// Many.
    Many {
        /// In order.
        #[schema(min_items = 1, max_items = 256)]
        samples: Vec<Sample>,
    },
}

/// An image with its label.
#[derive(ToSchema, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code, reason = "it stands for a body in the document")]
pub struct Sample {
    /// What it shows.
    #[schema(min_length = 1, max_length = 256)]
    label: Option<String>,
    /// A PNG or JPEG file in base64.
    #[schema(format = Byte)]
    image: String,
}

/// A form. Parts can be repeated; a label holds for the images behind it.
#[derive(ToSchema)]
#[allow(dead_code, reason = "it stands for a body in the document")]
pub struct Form {
    /// What the images behind it show.
    label: Option<String>,
    /// A PNG or JPEG file.
    #[schema(value_type = String, format = Binary)]
    image: Vec<u8>,
}

#[derive(OpenApi)]
#[openapi(
    info(
        title = "dpcl serve",
        description = "A learner that never stops: it learns image classes from labelled images and answers at any time."
    ),
    paths(
        observe::observe, predict::predict, status::status, metrics::metrics, memory::memory, checkpoint::get,
        checkpoint::post, document, page::page,
    ),
    components(schemas(Problem)),
    modifiers(&Token),
)]
struct Document;

/// A token is sent where the server asks for one.
struct Token;

impl Modify for Token {
    fn modify(&self, document: &mut utoipa::openapi::OpenApi) {
        let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).build();
        document
            .components
            .get_or_insert_default()
            .add_security_scheme("token", SecurityScheme::Http(bearer));
        let token = SecurityRequirement::new("token", Vec::<String>::new());
        document.security = Some(vec![SecurityRequirement::default(), token]);
    }
}

/// What can be asked, after OpenAPI 3.1.
#[utoipa::path(
    get, path = "/openapi.json", tag = "watching",
    responses(
        (status = 200, description = "This document.", content_type = "application/json"),
        (status = 403, description = "The request comes from another site.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn document() -> Json<utoipa::openapi::OpenApi> {
    Json(Document::openapi())
}
