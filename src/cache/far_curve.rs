//! What share of a query's reads is far, under any budget.

use std::fmt::{self, Display, Formatter};
use std::str::FromStr;

/// The share of its expected reads that a query does far, over the share of all rows that lie near: known at
/// [`SHARES`](Self::SHARES) and interpolated between them. It never rises, from 1 with nothing near to 0 with everything.
///
/// As text: its values between semicolons, to a hundred-thousandth.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FarCurve([f32; FarCurve::SHARES.len()]);

impl FarCurve {
    /// Where it is known.
    pub const SHARES: [f64; 19] =
        [0.0, 0.005, 0.01, 0.02, 0.03, 0.05, 0.075, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0];
    /// Of 1, what values are whole numbers of: so that they are the same as text.
    const STEPS: f32 = 1e5;

    /// Of a query that reads so often of what lies from here to there in the order of rows, both as shares of all rows; each
    /// place of a part is read as often as the others. A query that reads nothing reads nothing far.
    #[must_use]
    pub fn of(parts: &[(f64, (f64, f64))]) -> Self {
        let all: f64 = parts.iter().map(|&(reads, _)| reads).sum();
        let far_at = |near: f64| {
            let far_part = |&(reads, (from, to)): &(f64, (f64, f64))| {
                let far = if to > from {
                    ((to - near) / (to - from)).clamp(0.0, 1.0)
                } else {
                    f64::from(u8::from(from >= near))
                };
                reads * far
            };
            parts.iter().map(far_part).sum::<f64>()
        };
        let mut last = 1.0_f32;
        Self(Self::SHARES.map(|near| {
            let share = if all > 0.0 && near < 1.0 { (far_at(near) / all) as f32 } else { 0.0 };
            last = last.min((share * Self::STEPS).round() / Self::STEPS);
            last
        }))
    }

    /// The share of the query's reads that is far where such a share of all rows, 0 to 1, lies near.
    #[must_use]
    pub fn far_share(&self, near: f64) -> f64 {
        let after = Self::SHARES.partition_point(|&share| share < near);
        let value = |place: usize| f64::from(self.0[place.min(self.0.len() - 1)]);
        let Some(before) = after.checked_sub(1).filter(|_| after < self.0.len()) else { return value(after) };
        let (low, high) = (Self::SHARES[before], Self::SHARES[after]);
        value(before) + (near - low) / (high - low) * (value(after) - value(before))
    }
}

impl Display for FarCurve {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for (place, share) in self.0.iter().enumerate() {
            let text = format!("{share:.5}");
            let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
            write!(f, "{}{text}", if place > 0 { ";" } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for FarCurve {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let values: Vec<f32> =
            text.split(';').map(|part| part.trim().parse().map_err(drop)).collect::<Result<_, _>>()?;
        let shares: [f32; Self::SHARES.len()] = values.try_into().map_err(drop)?;
        let is_share = shares.iter().all(|share| (0.0..=1.0).contains(share));
        if is_share && shares.is_sorted_by(|a, b| a >= b) { Ok(Self(shares)) } else { Err(()) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn far_reads_follow_from_where_lists_lie() {
        // Three reads of the first tenth, one of the last half.
        let curve = FarCurve::of(&[(3.0, (0.0, 0.1)), (1.0, (0.5, 1.0))]);
        let far = |near: f64| (1e4 * curve.far_share(near)).round() / 1e4;
        assert_eq!([0.0, 0.05, 0.1, 0.3, 0.5, 0.75, 1.0].map(far), [1.0, 0.625, 0.25, 0.25, 0.25, 0.125, 0.0]);
        // Of places that take no room: near once all before them is.
        assert_eq!(FarCurve::of(&[(1.0, (0.2, 0.2))]).far_share(0.25), 0.0);
        assert_eq!(FarCurve::of(&[]).far_share(0.0), 0.0);
    }

    proptest! {
        #[test]
        fn a_curve_never_rises_and_survives_as_text(
            parts in prop::collection::vec((0.0..100.0_f64, 0.0..1.0_f64, 0.0..1.0_f64), 0..8),
            near in 0.0..=1.0_f64,
        ) {
            let parts: Vec<_> = parts.into_iter().map(|(reads, a, b)| (reads, (a.min(b), a.max(b)))).collect();
            let curve = FarCurve::of(&parts);
            prop_assert_eq!(curve.far_share(1.0), 0.0);
            let far = curve.far_share(near);
            prop_assert!((0.0..=1.0).contains(&far) && far <= curve.far_share(near / 2.0) + 1e-9);
            let read: FarCurve = curve.to_string().parse().unwrap();
            prop_assert!((read.far_share(near) - far).abs() < 1e-5);
        }
    }

    #[test]
    fn texts_that_are_no_curves_are_refused() {
        let good = FarCurve::of(&[(1.0, (0.0, 1.0))]).to_string();
        assert!(good.parse::<FarCurve>().is_ok());
        for text in ["", "1", "x", &good.replacen('1', "2", 1), &good.replacen("0.9", "0.1", 1), &format!("{good};0")] {
            assert!(text.parse::<FarCurve>().is_err(), "{text}");
        }
    }
}
