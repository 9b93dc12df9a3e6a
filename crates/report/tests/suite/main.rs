//! What is made of records, in one program.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod against;
mod costs;
mod documents;
mod formats;
mod golden_metrics;
mod grouping;
mod made_up;
mod marks;
mod page;
mod reproduce;
mod unaveraged;
