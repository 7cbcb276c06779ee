//! The clairvoyant bound: the highest rate at which any schedule of given arrivals can meet all deadlines.
//!
//! Put a price y_r on each resource; the prices sum to 1. Wherever a query runs, it takes from the machine at least this
//! much priced time:
//!
//! ```text
//!   w_i = min over r of  y_r c_ir / m_r
//! ```
//!
//! The machine provides at most one second of priced time a second. If a schedule meets every deadline D, then queries
//! that arrive within \[s, t\] are done by t + D, so their weights sum to at most t + D − s. That is the condition under
//! which a single FIFO server with service times w_i keeps every delay within D (Lindley's recursion, 2 ns per query). The
//! highest rate at which it holds, minimised over some prices, bounds this very trace; it is a certificate, not an
//! estimate.

use super::bounds::{Shares, View, region_of};
use super::{Arrivals, SimQuery};
use crate::base::machine::{Class, PerClass};
use crate::base::time::Nanos;
use crate::cost::{BatchSizes, MachineModel};

/// Prices tried, besides the one at which the capacity region is tight.
const PRICES: u32 = 40;
const PRECISION: f64 = 1e-4;
/// A rate below this share of the limit counts as none: queries that arrive at one moment miss at every rate.
const NO_RATE: f64 = 1e-12;

/// The highest rate at which any schedule can meet every deadline, for `arrivals` that ask `queries`: the clairvoyant
/// bound of the [module](self). It needs 16 bytes per arrival. It also holds for longer runs that begin with these
/// arrivals.
///
/// `None` if rates up to `limit_qps` are not excluded. Zero if a query misses its deadline even when alone, or queries
/// that arrive at one moment can't all meet theirs.
///
/// # Panics
/// If an arrival names a query that `queries` lacks.
#[must_use]
pub fn clairvoyant_qps(
    arrivals: &Arrivals,
    queries: &[SimQuery],
    model: &MachineModel,
    deadline: Nanos,
    limit_qps: f64,
) -> Option<f64> {
    let services = || arrivals.queries().map(|query| queries[query as usize].service);
    let classes: Vec<Class> = model.machine.classes().collect();
    // Arrivals are played some hundred times, so they are drawn once.
    let drawn: Vec<(f64, u32)> = arrivals.iter().collect();
    if services().any(|service| model.fastest(&service).is_none_or(|time| time > deadline)) {
        return Some(0.0);
    }
    // A run rounds arrivals to a nanosecond; two nanoseconds of slack keep the certificate strict.
    let deadline_s = deadline.as_secs() + 2e-9;
    let mut best = limit_qps;
    for &view in View::of(model) {
        let shares: Vec<Shares> =
            queries.iter().map(|query| view.shares(model, &query.service, BatchSizes::Any)).collect();
        let asked: Vec<Shares> = arrivals.queries().map(|query| shares[query as usize]).collect();
        let tight = region_of(asked, model).map(|region| region.price);
        let mut weights = vec![0.0; queries.len()];
        for price in tight.into_iter().chain(prices(&classes)) {
            for (weight, share) in weights.iter_mut().zip(&shares) {
                *weight = classes.iter().map(|&class| price[class] * share[class]).fold(f64::INFINITY, f64::min);
            }
            best = least_rate(&drawn, &weights, best, deadline_s, limit_qps * NO_RATE);
            if best == 0.0 {
                return Some(0.0);
            }
        }
    }
    (best < limit_qps).then_some(best)
}

/// Prices to try, on the line between the first class and all others, which get equal prices.
pub(super) fn prices(classes: &[Class]) -> impl Iterator<Item = PerClass<f64>> + '_ {
    let steps = if classes.len() > 1 { PRICES } else { 1 };
    (0..steps).map(move |i| {
        let of_first = if classes.len() > 1 { (f64::from(i) + 0.5) / f64::from(steps) } else { 1.0 };
        let of_others = (1.0 - of_first) / (classes.len().max(2) - 1) as f64;
        PerClass::from_fn(|class| if class == classes[0] { of_first } else { of_others })
    })
}

/// The highest rate up to `best` at which a single FIFO server with these service times keeps every delay within the
/// deadline; 0 below `nothing_qps`.
fn least_rate(arrivals: &[(f64, u32)], weights: &[f64], best: f64, deadline_s: f64, nothing_qps: f64) -> f64 {
    let mut best = best;
    if !lindley_exceeds(arrivals, weights, best, deadline_s) {
        return best;
    }
    let mut kept = 0.0;
    while best - kept > best * PRECISION {
        if best < nothing_qps {
            return 0.0;
        }
        let middle = 0.5 * (kept + best);
        if lindley_exceeds(arrivals, weights, middle, deadline_s) {
            best = middle;
        } else {
            kept = middle;
        }
    }
    best
}

/// Whether a single FIFO server exceeds a delay of `deadline_s` at this rate.
fn lindley_exceeds(arrivals: &[(f64, u32)], weights: &[f64], rate_qps: f64, deadline_s: f64) -> bool {
    let mut free_at = 0.0_f64;
    arrivals.iter().any(|&(unit, query)| {
        let arrival = unit / rate_qps;
        free_at = free_at.max(arrival) + weights[query as usize];
        free_at - arrival > deadline_s
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::QueryId;
    use crate::base::machine::Machine;
    use crate::cost::Cost;
    use crate::sim::bounds::region;

    fn costs(cpu_ms: f64, gpu_ms: f64) -> PerClass<Cost> {
        Cost::on_cpu_and_gpu(Nanos::from_ms(cpu_ms), Nanos::from_ms(gpu_ms))
    }

    /// The bound of one query that is asked at each time of `unit`.
    fn bound_of(unit: &[f64], service: PerClass<Cost>, machine: &Machine, deadline: Nanos) -> Option<f64> {
        let queries = [SimQuery { id: QueryId(0), service, estimate: service }];
        let arrivals = Arrivals::given(0, unit.to_vec(), vec![0; unit.len()]);
        clairvoyant_qps(&arrivals, &queries, &machine.clone().into(), deadline, 1e6)
    }

    #[test]
    fn a_hopeless_query_has_no_rate_and_an_easy_one_no_bound() {
        let machine = Machine::new(1, 1);
        let bound = |unit: &[f64], service: PerClass<Cost>| bound_of(unit, service, &machine, Nanos::from_ms(500.0));
        let slow = costs(600.0, 700.0);
        assert_eq!(bound(&[1.0], slow), Some(0.0));
        let quick = costs(6.0, 7.0);
        assert_eq!(bound(&[1.0], quick), None);
        // Sixty queries at one moment miss at every rate.
        let crowd = costs(30.0, 30.0);
        assert_eq!(bound(&[0.0; 60], crowd), Some(0.0));
        assert_eq!(region([], &machine.into(), BatchSizes::Any), None);
        assert_eq!(region([quick], &Machine::new(0, 0).into(), BatchSizes::Any), None);
    }

    #[test]
    fn prices_sum_to_one_and_cover_the_line_between_the_first_class_and_the_others() {
        for classes in [&[Class::CPU, Class::GPU][..], &[Class::CPU, Class::GPU, Class::CPU2]] {
            let found: Vec<PerClass<f64>> = prices(classes).collect();
            for price in &found {
                assert!((classes.iter().map(|&class| price[class]).sum::<f64>() - 1.0).abs() < 1e-12, "{price:?}");
            }
            let of_first: Vec<f64> = found.iter().map(|price| price[Class::CPU]).collect();
            assert_eq!((of_first.len(), of_first[0], of_first[39]), (40, 0.0125, 0.9875));
        }
        assert_eq!(prices(&[Class::GPU]).map(|price| price[Class::GPU]).collect::<Vec<_>>(), [1.0]);
    }

    #[test]
    fn the_bound_of_one_fifo_server_is_the_rate_at_which_its_delay_reaches_the_deadline() {
        // Two arrivals a unit apart cost 10 ms each: the second waits 10 ms − 1/rate and ends within 15 ms up to 200/s.
        let service = costs(10.0, 1e9);
        let found = bound_of(&[1.0, 2.0], service, &Machine::new(1, 0), Nanos::from_ms(15.0)).unwrap();
        assert!((found / 200.0 - 1.0).abs() < 2.0 * PRECISION, "{found}");
    }
}
