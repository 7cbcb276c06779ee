//! The throughput model, and the division of a memory that it asks for.
//!
//! A batch of `n` queries is made, moved, and computed, one after the other. With `c(n)` the time of making and computing a
//! query, `t(S_b)` that of moving a megabyte and `dq(S_c)` the megabytes that a query brings along,
//!
//! ```text
//!     TP = 1 / (c(n) + t(S_b) dq(S_c))          c(n) = c0 + c1 / n          t(S_b) = t0 + t1 / S_b
//! ```
//!
//! where c1 and t1 are what a batch costs however small it is: launches, the copies' beginnings. `n` and `dq` are no guesses:
//! walking through the log tells them for every division, without a device. A larger cache S_c lets queries bring less; a
//! larger buffer S_b holds more of them, which all wait for the whole batch. Under a limit θ of that time the buffer is the
//! largest that keeps to it.

use super::Walk;

/// One measured batch, or the mean of some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeasuredBatch {
    /// Queries of it.
    pub(crate) queries: f64,
    /// Microseconds of making it and of the device's computing.
    pub(crate) calculation_us: f64,
    /// Megabytes that were moved to the device.
    pub(crate) mb: f64,
    /// Microseconds that moving them took.
    pub(crate) transfer_us: f64,
}

/// `y = constant + inverse / x`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fit {
    /// What is left for large x.
    pub(crate) constant: f64,
    /// Divided by x.
    pub(crate) inverse: f64,
    /// The root of the mean squared residual, relative to each value.
    pub(crate) relative_residual: f64,
}

impl Fit {
    /// The value at x.
    #[must_use]
    pub(crate) fn at(&self, x: f64) -> f64 {
        self.constant + self.inverse / x
    }

    /// Fits points (x, y), both above 0, by least squares of the residuals relative to y; neither part is below 0.
    #[must_use]
    pub(crate) fn of(points: &[(f64, f64)]) -> Self {
        // Relative residuals: every equation divided by its y. Unknowns: constant, inverse.
        let (mut aa, mut ab, mut bb, mut ya, mut yb) = (0.0, 0.0, 0.0, 0.0, 0.0);
        for &(x, y) in points {
            let (a, b) = (1.0 / y, 1.0 / (x * y));
            aa += a * a;
            ab += a * b;
            bb += b * b;
            ya += a;
            yb += b;
        }
        let determinant = aa * bb - ab * ab;
        let solved = if determinant > 1e-12 * aa * bb {
            ((ya * bb - yb * ab) / determinant, (yb * aa - ya * ab) / determinant)
        } else {
            (-1.0, -1.0)
        };
        let (constant, inverse) = match solved {
            (constant, inverse) if constant >= 0.0 && inverse >= 0.0 => (constant, inverse),
            // One of them alone: what is left of the other when it may not be negative.
            (constant, inverse) if bb > 0.0 && constant < 0.0 && inverse >= 0.0 => (0.0, yb / bb),
            _ if aa > 0.0 => (ya / aa, 0.0),
            _ => (0.0, 0.0),
        };
        let mut fit = Self { constant, inverse, relative_residual: 0.0 };
        let squares: f64 = points.iter().map(|&(x, y)| ((fit.at(x) - y) / y).powi(2)).sum();
        fit.relative_residual = (squares / points.len().max(1) as f64).sqrt();
        fit
    }
}

/// The model, fitted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ThroughputModel {
    /// `c(n)`: microseconds a query, by queries a batch.
    pub(crate) calculation: Fit,
    /// `t(S_b)`: microseconds a megabyte, by megabytes a batch.
    pub(crate) transfer: Fit,
}

/// A memory divided, and what the model expects of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Division {
    /// Bytes of the cache: S_c.
    pub(crate) cache_bytes: u64,
    /// Bytes of the buffer: S_b.
    pub(crate) buffer_bytes: u64,
    /// Queries a second.
    pub(crate) qps: f64,
    /// Milliseconds of one batch: what a query waits for its answer.
    pub(crate) batch_ms: f64,
    /// Queries a batch, and megabytes moved for each.
    pub(crate) walk: Walk,
}

impl ThroughputModel {
    /// Fits both parts.
    #[must_use]
    pub(crate) fn fit(batches: &[MeasuredBatch]) -> Self {
        let calculation: Vec<(f64, f64)> = batches
            .iter()
            .filter(|batch| batch.queries > 0.0 && batch.calculation_us > 0.0)
            .map(|batch| (batch.queries, batch.calculation_us / batch.queries))
            .collect();
        let transfer: Vec<(f64, f64)> = batches
            .iter()
            .filter(|batch| batch.mb > 0.0 && batch.transfer_us > 0.0)
            .map(|batch| (batch.mb, batch.transfer_us / batch.mb))
            .collect();
        Self { calculation: Fit::of(&calculation), transfer: Fit::of(&transfer) }
    }

    /// Microseconds a query, if batches are as a walk found them.
    #[must_use]
    pub(crate) fn query_us(&self, walk: &Walk) -> f64 {
        let n = walk.queries_a_batch().max(1.0);
        let mb = walk.mb_a_query();
        let moved = if mb > 0.0 { self.transfer.at(mb * n) * mb } else { 0.0 };
        self.calculation.at(n) + moved
    }

    fn divide(&self, cache_bytes: u64, buffer_bytes: u64, walk: Walk) -> Division {
        let query_us = self.query_us(&walk);
        let batch_ms = query_us * walk.queries_a_batch() / 1e3;
        Division { cache_bytes, buffer_bytes, qps: 1e6 / query_us, batch_ms, walk }
    }

    /// The division with a cache of `cache_bytes` of `memory_bytes` and the largest buffer whose batches take `limit_ms` at
    /// most; `None` if no buffer does. `walk` tells of a buffer what batches it makes, or `None` if it holds none.
    ///
    /// A batch takes the longer the larger it is, so halving finds the buffer, to a 256th of what there is.
    pub(crate) fn with_cache(
        &self,
        memory_bytes: u64,
        cache_bytes: u64,
        limit_ms: f64,
        mut walk: impl FnMut(u64) -> Option<Walk>,
    ) -> Option<Division> {
        let most = memory_bytes.checked_sub(cache_bytes)?;
        let mut try_buffer = |buffer_bytes: u64| {
            walk(buffer_bytes)
                .map(|walk| self.divide(cache_bytes, buffer_bytes, walk))
                .filter(|found| found.batch_ms <= limit_ms)
        };
        if let Some(whole) = try_buffer(most) {
            return Some(whole);
        }
        // What is too small for a query fails, too: the largest that keeps to the limit lies above it.
        let mut best = None;
        let (mut low, mut high) = (0, most);
        for _ in 0..8 {
            let middle = low + (high - low) / 2;
            match try_buffer(middle) {
                Some(found) => (low, best) = (middle, Some(found)),
                None => high = middle,
            }
        }
        best
    }
}
