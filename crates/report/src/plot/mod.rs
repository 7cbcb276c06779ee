//! Figures, for files and for the page: drawn as SVG, without any font or library of the system.
//!
//! [`LineChart`], bars and the timeline of a run say what is drawn; `axis` places values and ticks; `canvas` draws, by plotters;
//! `look` has the colours and markers, which are the same for a policy in all figures.

mod axis;
mod bars;
mod canvas;
mod lines;
mod look;
mod timeline;

pub(crate) use bars::{Bar, Bars};
pub(crate) use canvas::Medium;
pub use lines::{LineChart, Point, Series, Signs, Stroke};
pub(crate) use look::style_sheet;
pub use look::{look_of, looks_of};
pub(crate) use timeline::Timeline;
