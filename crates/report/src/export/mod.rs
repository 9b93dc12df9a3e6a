//! Text formats, one file each: a [`Report`](crate::Report) in, a `String` out.

pub mod csv;
pub mod evaluations;
pub mod json;
pub mod latex;
pub mod markdown;
pub mod tensorboard;
pub mod terminal;
