//! A learner that never stops, behind HTTP.
//!
//! It is a crate of its own so that a network and an asynchronous runtime are impossible in the library.
//!
//! ```text
//! POST /observe ─▶ log (synced) ─▶ queue ─▶ learning thread ─▶ checkpoint
//!                                                 │ snapshot, swapped in whole
//! POST /predict ──────────▶ predicting thread ◀───┘
//! ```
//!
//! | file | what it is responsible for | what it does not know |
//! |---|---|---|
//! | `server.rs`, `start.rs` | a server as a whole; taking up a folder | requests |
//! | `log/`, `keys.rs`, `writer.rs` | accepted samples on disk, confirmed together | learning |
//! | `queue.rs`, `learning.rs`, `tally.rs` | learning in the order of the log, and what is counted meanwhile | HTTP |
//! | `keeper.rs` | checkpoints, and what of the log they make superfluous | HTTP |
//! | `published.rs`, `predicting.rs` | what answers, and one pass for several questions | learning |
//! | `follow.rs` | a replica that answers from another's checkpoints | the log |
//! | `service.rs`, `api/`, `body.rs`, `guard.rs`, `problem.rs` | requests and what they are answered | threads |
//! | `connections.rs` | how many connections, how slow, how they end | what is asked |

mod api;
mod body;
mod connections;
mod counts;
mod error;
mod follow;
mod guard;
mod keeper;
mod keys;
mod learning;
mod log;
mod metrics;
mod options;
mod predicting;
mod problem;
mod published;
mod queue;
mod server;
mod service;
mod start;
mod tally;
mod writer;

pub use error::{Error, Result};
pub use options::{Begin, Following, Journal, Learning, Limits, Options, Role, Source};
pub use server::Server;
