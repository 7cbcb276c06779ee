//! Power of devices by batch size.

use serde::{Deserialize, Serialize};

use crate::base::random::ln;

/// Power of each device of a class.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Power {
    /// Power without work, in watts.
    pub idle_watts: f64,
    /// Power without pauses: queries of a batch, ascending, and watts.
    pub busy_watts: Vec<(u32, f64)>,
    /// Energy of a query beyond idle power, in millijoules, by the queries of its batch, ascending. It is interpolated over the
    /// logarithm of the queries. Files of earlier versions lack it.
    #[serde(default)]
    pub query_mj: Vec<(u32, f64)>,
}

impl Power {
    /// The lists by queries of a batch, with their names.
    pub(super) fn lists(&self) -> [(&'static str, &[(u32, f64)]); 2] {
        [("busy_watts", &self.busy_watts), ("query_mj", &self.query_mj)]
    }

    /// The energy of a query beyond idle power, in a batch of this number of queries, in joules.
    #[must_use]
    pub fn query_joules(&self, queries: u32) -> f64 {
        let points = self.query_mj.iter().map(|&(queries, mj)| (ln(queries.into()), mj));
        interpolated(points, ln(queries.into())).unwrap_or(0.0) / 1e3
    }
}

/// The value at `x` of a piecewise linear function through points of ascending x. It is constant before the first and after
/// the last point.
#[inline]
pub(super) fn interpolated(points: impl Iterator<Item = (f64, f64)>, x: f64) -> Option<f64> {
    let mut before: Option<(f64, f64)> = None;
    for (at, value) in points {
        if at >= x {
            return Some(match before {
                Some((from, low)) if at > from => low + (value - low) * (x - from) / (at - from),
                _ => value,
            });
        }
        before = Some((at, value));
    }
    before.map(|(_, value)| value)
}
