//! Summary statistics of a trace's burstiness.

use super::Trace;
use crate::base::time::Nanos;

/// Statistics of a trace's rate and burstiness.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceSummary {
    /// The number of arrivals.
    pub arrivals: usize,
    /// From time 0 to the last arrival.
    pub span: Nanos,
    /// Arrivals over the span; 0 for a trace without any.
    pub rate_qps: f64,
    /// Squared coefficient of variation of the gaps, including the one before the first arrival: 0 for a metronome, 1 for
    /// Poisson, more for bursts. `None` for fewer than two arrivals, or if all come at time 0.
    pub gap_variation: Option<f64>,
    /// Variance over mean of the counts in whole seconds of the span: 1 for Poisson. `None` for fewer than two whole
    /// seconds.
    pub count_dispersion: Option<f64>,
    /// Arrivals in the busiest second from time 0, including the last partial second.
    pub busiest_second: u64,
}

impl TraceSummary {
    /// Summarises `trace` in time linear in its arrivals; seconds without arrivals cost nothing.
    pub fn of(trace: &Trace) -> Self {
        let span = trace.rows.last().map_or(Nanos::ZERO, |row| row.0);
        let arrivals = trace.rows.len();
        let mut previous = Nanos::ZERO;
        let gaps: Vec<f64> = trace
            .rows
            .iter()
            .map(|&(arrival, _)| {
                let gap = arrival.since(previous).as_secs();
                previous = arrival;
                gap
            })
            .collect();
        let whole_seconds = span.0 / NANOS_A_SECOND;
        let (mut busiest_second, mut sum, mut sum_of_squares) = (0, 0.0, 0.0);
        for second in trace.rows.chunk_by(|a, b| a.0.0 / NANOS_A_SECOND == b.0.0 / NANOS_A_SECOND) {
            let count = second.len() as u64;
            busiest_second = busiest_second.max(count);
            if second[0].0.0 / NANOS_A_SECOND < whole_seconds {
                sum += count as f64;
                sum_of_squares += (count as f64).powi(2);
            }
        }
        let seconds = whole_seconds as f64;
        let count_dispersion = (whole_seconds >= 2 && sum > 0.0).then(|| {
            let mean = sum / seconds;
            (sum_of_squares - seconds * mean * mean) / (seconds - 1.0) / mean
        });
        Self {
            arrivals,
            span,
            rate_qps: if span == Nanos::ZERO { 0.0 } else { arrivals as f64 / span.as_secs() },
            gap_variation: squared_variation(&gaps),
            count_dispersion,
            busiest_second,
        }
    }
}

const NANOS_A_SECOND: u64 = 1_000_000_000;

/// Sample variance over the squared mean.
fn squared_variation(values: &[f64]) -> Option<f64> {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    (values.len() >= 2 && mean > 0.0).then(|| squares / (n - 1.0) / (mean * mean))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::QueryId;
    use crate::traffic::{ArrivalProcess, Burstiness};

    fn summary(process: &ArrivalProcess) -> TraceSummary {
        TraceSummary::of(&Trace::draw(&[QueryId(0)], process, 100.0, 7, 100_000))
    }

    #[test]
    fn processes_differ_in_burstiness() {
        let uniform = summary(&ArrivalProcess::Uniform);
        assert!(uniform.gap_variation.unwrap() < 1e-9 && uniform.count_dispersion.unwrap() < 0.01, "{uniform:?}");
        assert!((uniform.rate_qps - 100.0).abs() < 1e-6, "{uniform:?}");
        let poisson = summary(&ArrivalProcess::Poisson);
        // The tolerance is five standard errors of the dispersion of 1000 counts: 5 sqrt(2 / 1000).
        assert!((poisson.count_dispersion.unwrap() - 1.0).abs() < 0.23, "{poisson:?}");
        let bursty = summary(&ArrivalProcess::Bursty(Burstiness::default()));
        assert!(bursty.count_dispersion.unwrap() > 10.0, "{bursty:?}");
    }

    #[test]
    fn short_traces_tell_little() {
        let at = |times: &[u64]| Trace {
            rows: times.iter().map(|&ms| (Nanos(ms * 1_000_000), QueryId(0))).collect(),
            ..Trace::default()
        };
        let none = TraceSummary::of(&at(&[]));
        assert_eq!((none.rate_qps, none.gap_variation, none.busiest_second), (0.0, None, 0));
        let one = TraceSummary::of(&at(&[0]));
        assert_eq!((one.rate_qps, one.gap_variation, one.count_dispersion), (0.0, None, None));
        let some = TraceSummary::of(&at(&[100, 900, 2500]));
        // The whole seconds have 2 and 0 arrivals.
        assert_eq!((some.busiest_second, some.count_dispersion), (2, Some(2.0)));
    }
}
