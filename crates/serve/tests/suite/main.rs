//! Servers as clients meet them, in one program: on loopback, at a free port, with a network of width 4.

#![allow(clippy::unwrap_used, reason = "a test may fail")]

mod answers;
mod bad_input;
mod durability;
mod following;
mod limits;
mod place;
mod process;
