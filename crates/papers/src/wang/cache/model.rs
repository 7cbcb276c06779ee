//! The throughput model, and the best division of a memory.
//!
//! A batch of `n` queries is made, moved and computed, one step after the other. `c(n)` is the time of making and
//! computing a query, `t(S_b)` that of moving a megabyte, and `dq(S_c)` the megabytes moved per query:
//!
//! ```text
//!     TP = 1 / (c(n) + t(S_b) dq(S_c))          c(n) = c0 + c1 / n          t(S_b) = t0 + t1 / S_b
//! ```
//!
//! c1 and t1 are fixed costs of a batch, such as launches and the start of copies. `n` and `dq` are counted by making
//! the batches of a log for a division, without a device. A larger cache S_c reduces copies. A larger buffer S_b holds
//! more queries, which all wait for the whole batch. Under a limit θ of that time the buffer is the largest one within
//! the limit.

use super::batches::BatchTrace;

/// A measured batch, or the mean of some.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct MeasuredBatch {
    pub(crate) queries: f64,
    /// Microseconds of making the batch and of computing.
    pub(crate) calculation_us: f64,
    pub(crate) mb: f64,
    pub(crate) transfer_us: f64,
}

/// `y = constant + inverse / x`.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Fit {
    pub(crate) constant: f64,
    pub(crate) inverse: f64,
    /// Root mean square of residuals relative to the values.
    pub(crate) relative_residual: f64,
}

impl Fit {
    pub(crate) fn at(&self, x: f64) -> f64 {
        self.constant + self.inverse / x
    }

    /// Fits positive points (x, y) by least squares of the residuals relative to y; neither coefficient is negative.
    pub(crate) fn of(points: &[(f64, f64)]) -> Self {
        // Dividing each equation by its y makes residuals relative. The unknowns are constant and inverse.
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
            // If one coefficient would be negative, the other one is fitted alone.
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

#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct ThroughputModel {
    /// `c(n)`: microseconds per query, by queries per batch.
    pub(crate) calculation: Fit,
    /// `t(S_b)`: microseconds per megabyte, by megabytes per batch.
    pub(crate) transfer: Fit,
}

/// A division of a memory with its modelled performance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Division {
    /// Bytes of the cache: S_c.
    pub(crate) cache_bytes: u64,
    /// Bytes of the buffer: S_b.
    pub(crate) buffer_bytes: u64,
    pub(crate) qps: f64,
    /// Milliseconds of a batch, the response time of its queries.
    pub(crate) batch_ms: f64,
    /// Batches of the log under this division.
    pub(crate) trace: BatchTrace,
}

impl ThroughputModel {
    /// Fits c(n) and t(S_b).
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

    /// Returns microseconds per query for these batches.
    pub(crate) fn query_us(&self, trace: &BatchTrace) -> f64 {
        let n = trace.queries_per_batch().max(1.0);
        let mb = trace.mb_per_query();
        let moved = if mb > 0.0 { self.transfer.at(mb * n) * mb } else { 0.0 };
        self.calculation.at(n) + moved
    }

    fn divide(&self, cache_bytes: u64, buffer_bytes: u64, trace: BatchTrace) -> Division {
        let query_us = self.query_us(&trace);
        let batch_ms = query_us * trace.queries_per_batch() / 1e3;
        Division { cache_bytes, buffer_bytes, qps: 1e6 / query_us, batch_ms, trace }
    }

    /// Returns the division with this cache and the largest buffer whose batches take at most `limit_ms`; `None` if
    /// there is none. `trace` counts the batches of a buffer, or returns `None` if no query fits.
    ///
    /// The time of a batch grows with the buffer, so that bisection finds the buffer, to a 256th of the room.
    pub(crate) fn with_cache(
        &self,
        memory_bytes: u64,
        cache_bytes: u64,
        limit_ms: f64,
        mut trace: impl FnMut(u64) -> Option<BatchTrace>,
    ) -> Option<Division> {
        let most = memory_bytes.checked_sub(cache_bytes)?;
        let mut try_buffer = |buffer_bytes: u64| {
            trace(buffer_bytes)
                .map(|trace| self.divide(cache_bytes, buffer_bytes, trace))
                .filter(|found| found.batch_ms <= limit_ms)
        };
        if let Some(whole) = try_buffer(most) {
            return Some(whole);
        }
        // A buffer too small for a query fails as well; the largest one within the limit is above it.
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
