//! What can be asked, a file each.

#![allow(unused_qualifications, reason = "utoipa writes them")]

pub mod checkpoint;
pub mod memory;
pub mod metrics;
pub mod observe;
pub mod openapi;
pub mod page;
pub mod predict;
pub mod status;

use axum::extract::{Query, rejection::QueryRejection};

use crate::problem::Problem;

/// A query, or what is wrong with it.
type Asked<T> = Result<Query<T>, QueryRejection>;

fn asked<T>(query: Asked<T>) -> Result<T, Problem> {
    let Query(query) = query.map_err(|problem| Problem::malformed(problem.body_text()))?;
    Ok(query)
}
