//! What can be reproduced, as text.

use std::fmt::Write;

use crate::matrix::{MATRIX, Scale};

/// Every table and figure with its columns and rows.
pub fn text() -> String {
    let mut text = String::new();
    for experiment in MATRIX.experiments() {
        let (columns, rows) = (experiment.column_names().join("; "), experiment.labels().join(", "));
        let _ = write!(
            text,
            "{}: {}\n  columns  {columns}\n  rows     {rows}\n\n",
            experiment.id, experiment.title
        );
    }
    let about = |scale: Scale| {
        let value = clap::ValueEnum::to_possible_value(&scale);
        let help = value.and_then(|value| value.get_help().map(ToString::to_string)).unwrap_or_default();
        format!("  {:<8} {help}\n", scale.name())
    };
    text.push_str("scales:\n");
    [Scale::Paper, Scale::Mid, Scale::Small, Scale::Smoke]
        .into_iter()
        .for_each(|scale| text.push_str(&about(scale)));
    text
}
