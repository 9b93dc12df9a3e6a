//! `GET /memory`: the stored samples as a picture.

use axum::{
    extract::State,
    http::header,
    response::{IntoResponse, Response},
};
use dpcl::{Image, data};
use serde::Deserialize;
use utoipa::IntoParams;

use super::{Asked, asked};
use crate::{problem::Problem, published::Version, service::Shared};

/// Images of a class on a sheet, and classes on it.
const SHEET: (usize, usize) = (16, 64);

/// What is said beside the path.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct Wishes {
    /// This class only.
    class: Option<String>,
}

/// A contact sheet: a row of stored samples for each class, in order of first arrival, black where there are fewer.
#[utoipa::path(
    get, path = "/memory", tag = "watching", params(Wishes),
    responses(
        (status = 200, description = "The sheet.", body = super::openapi::Bytes, content_type = "image/png"),
        (status = 400, description = "The query cannot be read.", body = Problem, content_type = "application/problem+json"),
        (status = 401, description = "The token is missing or wrong.", body = Problem, content_type = "application/problem+json"),
        (status = 403, description = "The request comes from another site.", body = Problem, content_type = "application/problem+json"),
        (status = 404, description = "There is no such class.", body = Problem, content_type = "application/problem+json"),
    )
)]
pub async fn memory(State(service): Shared, wishes: Asked<Wishes>) -> Result<Response, Problem> {
    let wishes = asked(wishes)?;
    let version = service.published.current();
    let labels = version.snapshot.labels();
    let rows: Vec<usize> = match &wishes.class {
        None => (0..labels.len().min(SHEET.1)).collect(),
        Some(class) => {
            let found = labels.iter().position(|label| label.to_string() == *class);
            vec![found.ok_or_else(|| Problem::not_found("no class is called that"))?]
        }
    };
    let draw = move || data::png(&sheet(&version, &rows));
    let png = tokio::task::spawn_blocking(draw).await.map_err(|_| Problem::failed("drawing broke off"))?;
    let headers = [(header::CONTENT_TYPE, "image/png"), (header::CACHE_CONTROL, "no-store")];
    Ok((headers, png).into_response())
}

fn sheet(version: &Version, rows: &[usize]) -> Image {
    let side = version.snapshot.shape().height;
    let black = Image { height: side, width: side, pixels: vec![0; side * side * 3].into() };
    let mut cells = vec![black; rows.len() * SHEET.0];
    let mut filled = vec![0; rows.len()];
    for sample in version.snapshot.memory().map(dpcl::method::Memory::slots).unwrap_or_default() {
        let Some(row) = rows.iter().position(|class| *class == sample.class) else { continue };
        if filled[row] < SHEET.0 {
            cells[row * SHEET.0 + filled[row]] = sample.image.to_bytes().into_owned();
            filled[row] += 1;
        }
    }
    data::tile(&cells, SHEET.0)
}
