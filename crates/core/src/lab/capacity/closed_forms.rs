//! Queues with a closed-form capacity: they show how often the intervals of a search contain the truth.
//!
//! | queue | P(delay > D) = x at the rate |
//! | --- | --- |
//! | M/M/1 | μ + ln x / D: the delay is exponential with rate μ − λ |
//! | M/D/1 | by P(wait ≤ t) = (1 − ρ) Σ_k e^{λ(t − k s)} (−λ(t − k s))^k / k! over k ≤ t / s |
//!
//! Source: Tijms, "A First Course in Stochastic Models", 2003, section 9.2.

use super::{Capacity, CapacitySearch, RunLength};
use crate::base::ids::QueryId;
use crate::base::machine::Machine;
use crate::base::time::Nanos;
use crate::cost::Cost;
use crate::lab::{Objective, StudyError, draw_all};
use crate::query::ArrivalProcess;
use crate::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use crate::sim::{Experiment, SimQuery};

const SERVICE_MS: f64 = 10.0;
/// The share of late queries in the objective, p99.
const LATE_SHARE: f64 = 0.01;
/// Number of service times that represent an exponential distribution: the means of equally likely parts.
const PARTS: u32 = 40_000;

/// A single server with Poisson arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClosedForm {
    /// Exponential service times, with a deadline in milliseconds.
    MM1(f64),
    /// Constant service times, with a deadline in milliseconds.
    MD1(f64),
}

/// The intervals of several searches compared with the closed-form capacity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Coverage {
    /// Number of searches, each with its own seeds.
    pub cases: usize,
    /// Number of searches whose interval contains the capacity.
    pub covered: usize,
    /// Number of searches whose interval ends below the capacity.
    pub below: usize,
    /// The mean answer divided by the capacity, minus 1.
    pub mean_error: f64,
    /// The mean width of the intervals, as a share of the capacity.
    pub mean_width: f64,
}

impl ClosedForm {
    /// Queues from half idle to almost never idle.
    pub const ALL: [Self; 6] =
        [Self::MM1(100.0), Self::MM1(1000.0), Self::MM1(5000.0), Self::MD1(30.0), Self::MD1(60.0), Self::MD1(200.0)];

    /// The name, such as `M/M/1, 100 ms`.
    #[must_use]
    pub fn name(self) -> String {
        match self {
            Self::MM1(deadline_ms) => format!("M/M/1, {deadline_ms} ms"),
            Self::MD1(deadline_ms) => format!("M/D/1, {deadline_ms} ms"),
        }
    }

    /// The rate at which 1 % of the queries are late.
    #[must_use]
    pub fn capacity_qps(self) -> f64 {
        let served_qps = 1e3 / SERVICE_MS;
        match self {
            Self::MM1(deadline_ms) => served_qps + LATE_SHARE.ln() / (deadline_ms / 1e3),
            Self::MD1(deadline_ms) => {
                let (mut low, mut high) = (0.0, served_qps);
                for _ in 0..100 {
                    let middle = 0.5 * (low + high);
                    let is_late = late_share_of_m_d_1(middle, (deadline_ms - SERVICE_MS) / 1e3) > LATE_SHARE;
                    if is_late { high = middle } else { low = middle }
                }
                low
            }
        }
    }

    /// The capacity that the search finds with these seeds.
    ///
    /// # Errors
    /// If an interrupt came.
    pub fn search(self, seeds: &[u64], length: RunLength) -> Result<Capacity, StudyError> {
        let query = |(id, ms): (u32, f64)| {
            let service = Cost::on_cpu_and_gpu(Nanos::from_ms(ms), Nanos::MAX);
            SimQuery { id: QueryId(id), service, estimate: service }
        };
        let (deadline_ms, queries): (f64, Vec<SimQuery>) = match self {
            Self::MM1(deadline_ms) => (deadline_ms, (0..).zip(exponential_ms()).map(query).collect()),
            Self::MD1(deadline_ms) => (deadline_ms, vec![query((0, SERVICE_MS))]),
        };
        let experiment = Experiment {
            model: Machine::new(1, 0).into(),
            deadline: Nanos::from_ms(deadline_ms),
            arrivals: draw_all(&ArrivalProcess::Poisson, seeds, 0, queries.len()),
            queries,
            cluster: None,
        };
        let policy = PolicyKind::CpuOnly.with(PolicyOptions::default());
        let search = CapacitySearch::new(&experiment, Objective::default(), length)?;
        Ok(search.of(&policy as &dyn PolicyFactory)?)
    }

    /// Searches `cases` times, each with `seeds` other seeds.
    ///
    /// # Errors
    /// If an interrupt came.
    pub fn coverage(self, cases: usize, seeds: u64, length: RunLength) -> Result<Coverage, StudyError> {
        let truth_qps = self.capacity_qps();
        let mut found = Coverage { cases, covered: 0, below: 0, mean_error: 0.0, mean_width: 0.0 };
        for case in 0..cases as u64 {
            let seeds: Vec<u64> = (1 + case * seeds..=(case + 1) * seeds).collect();
            let Capacity { qps, interval, .. } = self.search(&seeds, length)?;
            found.covered += usize::from(interval.low <= truth_qps && truth_qps <= interval.high);
            found.below += usize::from(interval.high < truth_qps);
            found.mean_error += (qps / truth_qps - 1.0) / cases as f64;
            found.mean_width += (interval.high - interval.low) / truth_qps / cases as f64;
        }
        Ok(found)
    }
}

/// The means of equally likely parts of an exponential distribution; their variance is accurate to 0.1 %.
fn exponential_ms() -> impl Iterator<Item = f64> {
    // This is the integral of −ln v.
    let integral = |v: f64| if v > 0.0 { v - v * v.ln() } else { 0.0 };
    let at = |part: u32| 1.0 - f64::from(part) / f64::from(PARTS);
    (0..PARTS).map(move |part| SERVICE_MS * f64::from(PARTS) * (integral(at(part)) - integral(at(part + 1))))
}

/// The share of waiting times above `wait_s` in an M/D/1 queue. Above ten service times the sum loses digits. The tail
/// there is C exp(−θ t) with λ (exp(θ s) − 1) = θ (Cramér and Lundberg), accurate to six digits.
fn late_share_of_m_d_1(rate_qps: f64, wait_s: f64) -> f64 {
    let s = SERVICE_MS / 1e3;
    if wait_s > 10.0 * s {
        let (mut low, mut high) = (1e-9, 4.0 * (1.0 - rate_qps * s) / (rate_qps * s * s));
        for _ in 0..200 {
            let middle = 0.5 * (low + high);
            if rate_qps * ((middle * s).exp() - 1.0) > middle { high = middle } else { low = middle }
        }
        return (1.0 - rate_qps * s) / (rate_qps * s * (low * s).exp() - 1.0) * (-low * wait_s).exp();
    }
    let terms = (0..=(wait_s / s + 1e-9) as i32).map(|k| {
        let x = rate_qps * (wait_s - f64::from(k) * s).max(0.0);
        let factorial: f64 = (1..=k).map(f64::from).product();
        x.exp() * (-x).powi(k) / factorial
    });
    1.0 - (1.0 - rate_qps * s) * terms.sum::<f64>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capacities_are_those_of_theory() {
        // The numbers come from an independent program, with two decimals.
        let expected = [53.95, 95.39, 99.08, 31.95, 62.95, 88.56];
        for (form, expected) in ClosedForm::ALL.into_iter().zip(expected) {
            let found = form.capacity_qps();
            assert!((found - expected).abs() < 0.011, "{}: {found}, expected {expected}", form.name());
        }
        let mean = exponential_ms().sum::<f64>() / f64::from(PARTS);
        let square = exponential_ms().map(|ms| ms * ms).sum::<f64>() / f64::from(PARTS);
        assert!((mean / SERVICE_MS - 1.0).abs() < 1e-9 && (square / SERVICE_MS.powi(2) / 2.0 - 1.0).abs() < 1e-3);
    }
}
