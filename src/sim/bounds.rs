//! Rates that no scheduler can exceed, not even one that knows the future, preempts and splits queries.
//!
//! # The capacity region
//! Of n queries, i costs c_i on one of m CPUs or g_i on one of k GPUs; a share x_i of it goes to the CPUs. The work a
//! query brings on average must fit both sides:
//!
//! ```text
//!   minimise T   with   Σ c_i x_i / n ≤ m T,   Σ g_i (1 − x_i) / n ≤ k T,   0 ≤ x_i ≤ 1;   rate ≤ 1 / T
//! ```
//!
//! With two kinds no solver is needed: sort by c/g and move queries to the CPUs, smallest ratio first, until both sides
//! take equally long; one query is split. In the long run no scheduler is stable above this rate; a short run may be.
//!
//! # The clairvoyant bound
//! Put a price y in \[0, 1\] on CPU time and 1 − y on GPU time. Wherever a query runs, it takes from
//! the machine at least
//!
//! ```text
//!   w_i = min(y c_i / m, (1 − y) g_i / k)
//! ```
//!
//! of priced time, of which the machine gives at most one second a second. If any schedule meets every deadline, then
//! whatever arrives within \[s, t\] is done by t + D, so the weights of those queries sum to at most t + D − s:
//! exactly that a single FIFO server with service times w_i keeps every delay within D (Lindley's recursion, 2 ns a
//! query). The highest rate at which it does, the least over some prices, bounds this very trace; it is a
//! certificate, not an estimate.

use super::{Arrivals, SimQuery};
use crate::machine::{Class, Machine, PerClass};
use crate::time::Nanos;

/// Prices tried, besides the one at which the capacity region is tight.
const PRICES: u32 = 40;
/// Rates are found to this relative precision.
const PRECISION: f64 = 1e-4;
/// A rate below this share of the limit counts as none: queries that arrive at one moment miss at every rate.
const NO_RATE: f64 = 1e-12;

/// The optimum of the capacity region's linear program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Highest rate at which any scheduler is stable, in queries per second.
    pub rate_qps: f64,
    /// Share of the queries that go to the CPUs.
    pub cpu_share: f64,
    /// The threshold: queries whose CPU time is below this many times their GPU time belong on the CPUs. 0 without
    /// CPUs, infinite without GPUs.
    pub cut_ratio: f64,
}

/// Solves the capacity region for queries that are asked equally often.
///
/// `None` without queries, without processors, or if everything costs nothing.
#[must_use]
pub fn region(services: impl IntoIterator<Item = PerClass<Nanos>>, machine: &Machine) -> Option<Region> {
    let [cpus, gpus] = [Class::CPU, Class::GPU].map(|kind| machine.count(kind) as f64);
    let mut costs: Vec<(f64, f64)> =
        services.into_iter().map(|service| (service[Class::CPU].as_secs(), service[Class::GPU].as_secs())).collect();
    let n = costs.len() as f64;
    let alone = |total: f64, count: f64, cpu_share: f64, cut_ratio: f64| {
        let rate_qps = n * count / total;
        (rate_qps.is_finite() && rate_qps > 0.0).then_some(Region { rate_qps, cpu_share, cut_ratio })
    };
    if gpus == 0.0 {
        return alone(costs.iter().map(|c| c.0).sum(), cpus, 1.0, f64::INFINITY);
    }
    if cpus == 0.0 {
        return alone(costs.iter().map(|c| c.1).sum(), gpus, 0.0, 0.0);
    }
    // By c/g without dividing, so that a cost of nothing needs no special case.
    costs.sort_by(|a, b| (a.0 * b.1).total_cmp(&(b.0 * a.1)));
    let mut cpu_work = 0.0;
    let mut gpu_work: f64 = costs.iter().map(|c| c.1).sum();
    for (moved, &(c, g)) in costs.iter().enumerate() {
        if (cpu_work + c) / cpus >= (gpu_work - g) / gpus {
            // Balance: (cpu_work + f c) / cpus = (gpu_work − f g) / gpus.
            let fraction = ((cpus * gpu_work - gpus * cpu_work) / (gpus * c + cpus * g)).clamp(0.0, 1.0);
            let rate_qps = n * cpus / (cpu_work + fraction * c);
            let solution = Region { rate_qps, cpu_share: (moved as f64 + fraction) / n, cut_ratio: c / g };
            return (rate_qps.is_finite() && rate_qps > 0.0).then_some(solution);
        }
        cpu_work += c;
        gpu_work -= g;
    }
    None
}

/// The highest rate at which any schedule at all can meet every deadline, for `arrivals` that ask `queries`; the
/// certificate above. It takes 8 bytes a query of the workload, however long the run.
///
/// `None` if rates up to `limit_qps` are not excluded. Zero if a query can't meet its deadline even when alone, or
/// queries that arrive at one moment can't all meet theirs.
///
/// # Panics
/// If an arrival names a query that `queries` lacks.
#[must_use]
pub fn clairvoyant_qps(
    arrivals: &Arrivals,
    queries: &[SimQuery],
    machine: &Machine,
    deadline: Nanos,
    limit_qps: f64,
) -> Option<f64> {
    let services = || arrivals.queries.iter().map(|&query| queries[query as usize].service);
    let fastest = |service: PerClass<Nanos>| machine.processors().map(|(_, processor)| service[processor.class]).min();
    if services().any(|service| fastest(service).is_none_or(|time| time > deadline)) {
        return Some(0.0);
    }
    let [cpus, gpus] = [Class::CPU, Class::GPU].map(|kind| machine.count(kind) as f64);
    let tight = region(services(), machine).map_or(0.5, |r| cpus / (cpus + gpus * r.cut_ratio));
    let prices = (0..PRICES).map(|i| (f64::from(i) + 0.5) / f64::from(PRICES));
    // Arrivals are rounded to a nanosecond in a run; two of slack keep the certificate strict.
    let deadline_s = deadline.as_secs() + 2e-9;
    let mut best = limit_qps;
    // By position in the workload.
    let mut weights = vec![0.0; queries.len()];
    for price in std::iter::once(tight).chain(prices) {
        for (weight, SimQuery { service, .. }) in weights.iter_mut().zip(queries) {
            let on_cpu = price * service[Class::CPU].as_secs() / cpus;
            let on_gpu = (1.0 - price) * service[Class::GPU].as_secs() / gpus;
            *weight = match (cpus > 0.0, gpus > 0.0) {
                (true, true) => on_cpu.min(on_gpu),
                (true, false) => service[Class::CPU].as_secs() / cpus,
                _ => service[Class::GPU].as_secs() / gpus,
            };
        }
        if !lindley_exceeds(arrivals, &weights, best, deadline_s) {
            continue;
        }
        let mut kept = 0.0;
        while best - kept > best * PRECISION {
            if best < limit_qps * NO_RATE {
                return Some(0.0);
            }
            let middle = 0.5 * (kept + best);
            if lindley_exceeds(arrivals, &weights, middle, deadline_s) {
                best = middle;
            } else {
                kept = middle;
            }
        }
    }
    (best < limit_qps).then_some(best)
}

/// Whether any delay of a single FIFO server exceeds `deadline_s` at this rate.
fn lindley_exceeds(arrivals: &Arrivals, weights: &[f64], rate_qps: f64, deadline_s: f64) -> bool {
    let mut free_at = 0.0_f64;
    arrivals.unit.iter().zip(&arrivals.queries).any(|(unit, &query)| {
        let arrival = unit / rate_qps;
        free_at = free_at.max(arrival) + weights[query as usize];
        free_at - arrival > deadline_s
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::QueryId;

    /// Half the queries cost (2, 4) ms, three in ten (8, 5), two in ten (60, 10).
    fn three_classes() -> Vec<PerClass<Nanos>> {
        let class = |n: usize, cpu: f64, gpu: f64| vec![PerClass::two(Nanos::from_ms(cpu), Nanos::from_ms(gpu)); n];
        [class(5, 2.0, 4.0), class(3, 8.0, 5.0), class(2, 60.0, 10.0)].concat()
    }

    fn rate(cpus: usize, gpus: usize) -> f64 {
        region(three_classes(), &Machine::new(cpus, gpus)).unwrap().rate_qps
    }

    #[test]
    fn the_capacity_region_has_its_reference_values() {
        // Solved with HiGHS; see the tolerance: the reference has four decimals.
        let cases = [
            (1, 1, 393.9394),
            (4, 1, 649.3506),
            (8, 1, 909.0909),
            (1, 2, 636.3636),
            (16, 2, 1818.1818),
            (1, 0, 64.9351),
            (0, 1, 181.8182),
        ];
        for (cpus, gpus, expected) in cases {
            assert!((rate(cpus, gpus) - expected).abs() < 5e-5, "{cpus} CPUs, {gpus} GPUs: {}", rate(cpus, gpus));
        }
    }

    #[test]
    fn the_price_at_the_cut_is_the_dual_of_the_reference() {
        let cut = region(three_classes(), &Machine::new(1, 1)).unwrap();
        assert!((1.0 / (1.0 + cut.cut_ratio) - 5.0 / 13.0).abs() < 1e-12);
        // All of the first class and 0.641 of the second.
        assert!((cut.cpu_share - (0.5 + 0.3 * 0.641)).abs() < 1e-4);
    }

    /// The bound of one query that is asked at each of `unit`.
    fn bound_of(unit: &[f64], service: PerClass<Nanos>, machine: &Machine, deadline: Nanos) -> Option<f64> {
        let queries = [SimQuery { id: QueryId(0), service, estimate: service }];
        let arrivals = Arrivals { seed: 0, unit: unit.to_vec(), queries: vec![0; unit.len()] };
        clairvoyant_qps(&arrivals, &queries, machine, deadline, 1e6)
    }

    #[test]
    fn a_hopeless_query_has_no_rate_and_an_easy_one_no_bound() {
        let machine = Machine::new(1, 1);
        let bound = |unit: &[f64], service: PerClass<Nanos>| bound_of(unit, service, &machine, Nanos::from_ms(500.0));
        let slow = PerClass::two(Nanos::from_ms(600.0), Nanos::from_ms(700.0));
        assert_eq!(bound(&[1.0], slow), Some(0.0));
        let quick = PerClass::two(Nanos::from_ms(6.0), Nanos::from_ms(7.0));
        assert_eq!(bound(&[1.0], quick), None);
        // Sixty at one moment miss at every rate.
        let crowd = PerClass::two(Nanos::from_ms(30.0), Nanos::from_ms(30.0));
        assert_eq!(bound(&[0.0; 60], crowd), Some(0.0));
        assert_eq!(region([], &machine), None);
        assert_eq!(region([quick], &Machine::new(0, 0)), None);
    }

    #[test]
    fn the_bound_of_one_fifo_server_is_the_rate_at_which_its_delay_reaches_the_deadline() {
        // Two arrivals a unit apart that cost 10 ms each: the second waits 10 ms − 1/rate and ends
        // within 15 ms up to 200/s.
        let service = PerClass::two(Nanos::from_ms(10.0), Nanos::MAX);
        let found = bound_of(&[1.0, 2.0], service, &Machine::new(1, 0), Nanos::from_ms(15.0)).unwrap();
        assert!((found / 200.0 - 1.0).abs() < 2.0 * PRECISION, "{found}");
    }
}
