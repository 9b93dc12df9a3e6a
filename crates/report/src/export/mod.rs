//! Text formats, one file each: a [`Report`](crate::Report) in, a `String` out.

pub mod csv;
pub mod json;
pub mod latex;
pub mod markdown;
pub mod terminal;
