//! Figures for files and pages, written as SVG without any font or library of the system.
//!
//! [`LineChart`], bars and the timeline of a run define figures. `axis` places values and ticks, and `canvas` draws.
//! `look` has the colours and markers, which are the same for a policy in all figures.

mod axis;
pub(crate) mod bars;
pub(crate) mod canvas;
mod lines;
pub(crate) mod look;
pub(crate) mod timeline;

pub use lines::{LineChart, Point, Series, Signs};
pub use look::{Stroke, look_of, looks_of};
