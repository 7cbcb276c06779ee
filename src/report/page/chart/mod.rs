//! Charts as inline SVG: drawn here, coloured by the page's style sheet, read by a screen reader as title and
//! description, with the numbers in a table beside.
//!
//! A [`Chart`] says what is shown; [`Plane`] places it: a horizontal and a vertical [`Axis`](crate::report::axis::Axis)
//! on a canvas of fixed units, which the page scales. Looks (colour and shape of marker) go by number, so that a policy
//! looks the same in all charts.

mod intervals;
mod lines;
mod plane;
mod timeline;

pub(super) use intervals::{Intervals, Row};
pub(super) use lines::{Chart, Place, Series};
pub(super) use plane::{Scale, Unit};
pub(super) use timeline::Timeline;

use crate::sched::PolicyKind;

/// Looks that the style sheet has.
const LOOKS: usize = 12;

/// The look of a policy, wherever it is drawn; others get what is left, by the letters of their name.
#[must_use]
pub(super) fn look_of(policy: &str) -> usize {
    let known = PolicyKind::ALL.iter().position(|kind| kind.name() == policy);
    known.unwrap_or_else(|| policy.bytes().map(usize::from).sum()) % LOOKS
}

/// A marker's path around a point: circle, square, triangle, diamond, triangle on its head, then again.
fn marker(x: f64, y: f64, look: usize) -> String {
    let r = 4.5;
    match look % 5 {
        0 => format!("M{:.1} {y:.1}a{r} {r} 0 1 0 {} 0a{r} {r} 0 1 0 -{} 0z", x - r, 2.0 * r, 2.0 * r),
        1 => format!("M{:.1} {:.1}h8v8h-8z", x - 4.0, y - 4.0),
        2 => format!("M{x:.1} {:.1}l5 9h-10z", y - 5.5),
        3 => format!("M{x:.1} {:.1}l5.5 5.5l-5.5 5.5l-5.5 -5.5z", y - 5.5),
        _ => format!("M{x:.1} {:.1}l-5 -9h10z", y + 5.5),
    }
}
