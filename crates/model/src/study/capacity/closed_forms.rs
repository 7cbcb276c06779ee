//! Queues with a closed-form capacity: they show how often the intervals of a search contain the truth.
//!
//! | queue | share of delays above D, with the service rate μ and the arrival rate λ |
//! | --- | --- |
//! | M/M/c | the wait is 0 with probability 1 − C, and else exponential with rate c μ − λ (C: Erlang's formula) |
//! | M/D/1 | by P(wait ≤ t) = (1 − ρ) Σ_k e^{λ(t − k s)} (−λ(t − k s))^k / k! over k ≤ t / s |
//! | M/H2/1 | the wait is 0 with probability 1 − ρ, and else a mixture of two exponentials (Pollaczek and Khinchine) |
//! | D/M/1 | e^{−μ (1 − σ) D}, with the root σ of σ = e^{−(1 − σ) μ / λ} |
//! | priorities, M/M/1 without preemption | the more important half waits with probability ρ, exponentially with rate μ − λ / 2 (Cobham) |
//!
//! Sources: Tijms, "A First Course in Stochastic Models", 2003, sections 5.1, 9.2 and 9.3; Cobham, "Priority assignment in waiting
//! line problems", Operations Research 2, 1954.

use std::sync::Arc;

use super::{Capacity, CapacitySearch, RunLength};
use crate::base::ids::QueryId;
use crate::base::machine::Machine;
use crate::base::time::Nanos;
use crate::cost::Cost;
use crate::sched::{PolicyFactory, PolicyKind, PolicyOptions};
use crate::sim::{Experiment, SimQuery};
use crate::study::{Objective, StudyError, draw_all};
use crate::traffic::{ArrivalProcess, Priorities};

const SERVICE_MS: f64 = 10.0;
/// The share of late queries in the objective, p99.
const LATE_SHARE: f64 = 0.01;
/// Number of service times that represent an exponential distribution: the means of equally likely parts.
const PARTS: u32 = 40_000;

/// The phases of a hyperexponential service time with a squared coefficient of variation of 4: probabilities, and rates as multiples
/// of the mean rate. Both phases have half of the work.
const PHASES: [(f64, f64); 2] =
    [(0.887_298_334_620_741_7, 1.774_596_669_241_483_4), (0.112_701_665_379_258_3, 0.225_403_330_758_516_6)];

/// A queue whose delays have a known distribution, with a deadline in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ClosedForm {
    /// Poisson arrivals and exponential service times on several servers.
    MMc(u32, f64),
    /// Poisson arrivals and constant service times.
    MD1(f64),
    /// Poisson arrivals and hyperexponential service times.
    MH21(f64),
    /// Arrivals at equal intervals and exponential service times.
    DM1(f64),
    /// Poisson arrivals, of which each second one goes before the others and has the deadline.
    Priorities(f64),
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
    pub const ALL: [Self; 8] = [
        Self::MMc(1, 100.0),
        Self::MMc(1, 5000.0),
        Self::MMc(15, 100.0),
        Self::MD1(60.0),
        Self::MD1(200.0),
        Self::MH21(500.0),
        Self::DM1(150.0),
        Self::Priorities(100.0),
    ];

    /// The name, such as `M/M/1, 100 ms`.
    #[must_use]
    pub fn name(self) -> String {
        let name = match self {
            Self::MMc(servers, _) => format!("M/M/{servers}"),
            Self::MD1(_) => String::from("M/D/1"),
            Self::MH21(_) => String::from("M/H2/1"),
            Self::DM1(_) => String::from("D/M/1"),
            Self::Priorities(_) => String::from("M/M/1 with priorities"),
        };
        format!("{name}, {} ms", self.deadline_ms())
    }

    fn deadline_ms(self) -> f64 {
        match self {
            Self::MMc(_, ms) | Self::MD1(ms) | Self::MH21(ms) | Self::DM1(ms) | Self::Priorities(ms) => ms,
        }
    }

    fn servers(self) -> u32 {
        if let Self::MMc(servers, _) = self { servers } else { 1 }
    }

    /// The rate at which 1 % of the queries are late.
    #[must_use]
    pub fn capacity_qps(self) -> f64 {
        let (mut low, mut high) = (0.0, f64::from(self.servers()) * 1e3 / SERVICE_MS);
        for _ in 0..100 {
            let middle = 0.5 * (low + high);
            if self.late_share(middle) > LATE_SHARE { high = middle } else { low = middle }
        }
        low
    }

    /// The load at this rate.
    #[must_use]
    pub fn load(self) -> f64 {
        self.capacity_qps() * SERVICE_MS / 1e3 / f64::from(self.servers())
    }

    /// The share of late queries at a rate.
    fn late_share(self, rate_qps: f64) -> f64 {
        let (served_qps, deadline_s) = (1e3 / SERVICE_MS, self.deadline_ms() / 1e3);
        match self {
            Self::MMc(servers, _) => {
                let (servers, work) = (f64::from(servers), rate_qps / served_qps);
                // Erlang's loss formula by recursion, and from it the share of queries that wait.
                let lost = (1..=servers as u32).fold(1.0, |lost, k| work * lost / (f64::from(k) + work * lost));
                let waits = servers * lost / (servers - work * (1.0 - lost));
                (1.0 - waits) * (-served_qps * deadline_s).exp()
                    + waits * sum_above(deadline_s, servers * served_qps - rate_qps, served_qps)
            }
            Self::MD1(_) => late_share_of_m_d_1(rate_qps, deadline_s - SERVICE_MS / 1e3),
            Self::MH21(_) => {
                let idle = 1.0 - rate_qps / served_qps;
                let [(p, a), (q, b)] = PHASES.map(|(share, rate)| (share, rate * served_qps));
                // The transform of the wait is idle (s + a) (s + b) / (s + r) (s + t).
                let (half, product) = (0.5 * (a + b - rate_qps), a * b - rate_qps * (p * b + q * a));
                let root = (half * half - product).sqrt();
                let roots = [half - root, half + root];
                let of_phase = |&(share, rate): &(f64, f64)| {
                    let by_root = (0..2).map(|i| {
                        let (r, other) = (roots[i], roots[1 - i]);
                        let weight = idle * (a - r) * (b - r) / (other - r) / r;
                        weight * sum_above(deadline_s, r, rate)
                    });
                    share * (idle * (-rate * deadline_s).exp() + by_root.sum::<f64>())
                };
                [(p, a), (q, b)].iter().map(of_phase).sum()
            }
            Self::DM1(_) => {
                let sigma = (0..10_000).fold(0.5, |sigma: f64, _| (-(1.0 - sigma) * served_qps / rate_qps).exp());
                (-served_qps * (1.0 - sigma) * deadline_s).exp()
            }
            Self::Priorities(_) => {
                let waits = rate_qps / served_qps;
                (1.0 - waits) * (-served_qps * deadline_s).exp()
                    + waits * sum_above(deadline_s, served_qps - 0.5 * rate_qps, served_qps)
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
        let queries: Vec<SimQuery> = match self {
            Self::MD1(_) => vec![query((0, SERVICE_MS))],
            Self::MH21(_) => {
                let of_phase = |(share, rate): (f64, f64)| {
                    exponential_ms((share * f64::from(PARTS)).round() as u32).map(move |ms| ms / rate)
                };
                (0..).zip(PHASES.into_iter().flat_map(of_phase)).map(query).collect()
            }
            _ => (0..).zip(exponential_ms(PARTS)).map(query).collect(),
        };
        let process = if matches!(self, Self::DM1(_)) { ArrivalProcess::Uniform } else { ArrivalProcess::Poisson };
        let arrivals = draw_all(&process, seeds, 0, queries.len());
        let priorities = match self {
            // Deadlines that far apart are an order of priorities.
            Self::Priorities(ms) => Some(format!("first={ms}ms:0.5,second=1000s:0.5")),
            _ => None,
        };
        let priorities = priorities.and_then(|text| Priorities::from_text(&text).ok()).map(Arc::new);
        let experiment = Experiment {
            model: Machine::new(self.servers() as usize, 0).into(),
            deadline: Nanos::from_ms(self.deadline_ms()),
            arrivals: arrivals.into_iter().map(|arrivals| arrivals.with_priorities(priorities.clone())).collect(),
            queries,
            cluster: None,
        };
        let kind = if priorities.is_some() { PolicyKind::Edf } else { PolicyKind::CpuOnly };
        let policy = kind.with(PolicyOptions::default());
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

/// The means of equally likely parts of an exponential distribution; the variance of many is accurate to 0.1 %.
fn exponential_ms(parts: u32) -> impl Iterator<Item = f64> {
    // This is the integral of −ln v.
    let integral = |v: f64| if v > 0.0 { v - v * v.ln() } else { 0.0 };
    let at = move |part: u32| 1.0 - f64::from(part) / f64::from(parts);
    (0..parts).map(move |part| SERVICE_MS * f64::from(parts) * (integral(at(part)) - integral(at(part + 1))))
}

/// The probability that the sum of two exponential times of these rates exceeds a time.
fn sum_above(time_s: f64, a: f64, b: f64) -> f64 {
    let [a, b] = if (a - b).abs() < 1e-6 * b { [a * (1.0 + 1e-6), b] } else { [a, b] };
    (b * (-a * time_s).exp() - a * (-b * time_s).exp()) / (b - a)
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
        let expected = [53.95, 99.08, 1448.34, 62.95, 88.56, 75.21, 83.71, 94.12];
        for (form, expected) in ClosedForm::ALL.into_iter().zip(expected) {
            let found = form.capacity_qps();
            assert!((found - expected).abs() < 0.011, "{}: {found}, expected {expected}", form.name());
        }
        let mean = exponential_ms(PARTS).sum::<f64>() / f64::from(PARTS);
        let square = exponential_ms(PARTS).map(|ms| ms * ms).sum::<f64>() / f64::from(PARTS);
        assert!((mean / SERVICE_MS - 1.0).abs() < 1e-9 && (square / SERVICE_MS.powi(2) / 2.0 - 1.0).abs() < 1e-3);
    }
}
