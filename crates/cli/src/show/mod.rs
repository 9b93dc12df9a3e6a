//! How progress is shown: bars where somebody watches a terminal, plain lines elsewhere. Everything goes to stderr.

mod bars;
mod lines;
mod quiet;
mod tally;
mod words;

pub use bars::download;
pub use words::duration;

use crate::{conductor::Audience, output};

/// The audience that suits stderr, for runs with these titles.
pub fn audience(titles: Vec<String>) -> Box<dyn Audience> {
    if output::watched() { Box::new(bars::Bars::new(titles)) } else { Box::new(lines::Lines::new(titles)) }
}
