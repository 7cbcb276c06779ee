//! Draws figures as SVG by plotters, without any font or library of the system.
//! `lines` draws the charts of [`figure`](crate::figure), and `paper` has what figures share.

pub(crate) mod axis;
mod lines;
pub(crate) mod look;
pub(crate) mod paper;
