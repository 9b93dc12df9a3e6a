//! Figures that need the network itself: what was computed with it, as plain numbers. Whoever has the network makes
//! them, `html/figures.rs` draws them.

use serde::{Deserialize, Serialize};

use crate::html;

/// A figure of several panels.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// What it is called in files.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// How it was made.
    pub caption: String,
    /// Its panels, side by side.
    pub panels: Vec<Panel>,
}

/// One drawing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Panel {
    /// Points in a plane, coloured by a value.
    Scatter {
        /// Whose.
        name: String,
        /// The points.
        points: Vec<Point>,
    },
    /// Values over a shift, a line a method.
    Landscape {
        /// Of when.
        name: String,
        /// The methods.
        lines: Vec<Line>,
    },
}

/// A point with its value.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// To the right.
    pub x: f64,
    /// Upwards.
    pub y: f64,
    /// What its colour says.
    pub loss: f64,
    /// Name of its class.
    pub class: String,
}

/// A line of a landscape.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Whose.
    pub name: String,
    /// At each shift one value a seed.
    pub points: Vec<(f64, Vec<f64>)>,
}

impl Figure {
    /// Each panel as a file: its name and an SVG text.
    pub fn drawings(&self) -> Vec<(String, String)> {
        html::figures::drawings(self)
    }
}
