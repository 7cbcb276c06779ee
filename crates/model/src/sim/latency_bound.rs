//! Lower bounds on the mean and on percentiles of latency, for any schedule of given arrivals.
//!
//! The schedule may know the future, interrupt and resume queries at no cost, and run a query on several lanes at once.
//!
//! **Per query.** No query is faster than alone on an idle machine, on all lanes of its fastest class together:
//! `f_i = min over c of time_ic / speed-up_c`. A percentile of the latencies is at least that percentile of the `f_i`, and their
//! mean at least the mean.
//!
//! **Pooled.** Put a price y_c on each class; the prices sum to 1. A query takes at least `w_i = min over c of y_c time_ic / m_c`
//! of priced machine time, since speed-ups do not exceed the number of lanes, and the machine provides at most one second of it
//! per second. So the schedule is one of a single server with service times w_i that may split its capacity. There the mean
//! latency is least if the query with the least remaining work always runs:
//!
//! ```text
//!   suppose that at some moment the server works on k although i has less left. Of the time that both get later, give the first
//!   part to i and the rest to k: i ends earlier than either did before, k ends when the later of both did. The sum falls.
//! ```
//!
//! The mean is bounded by the larger of both. Batches make queries cheaper than alone, so that `time_ic` is the least share of a
//! query in any batch.
//!
//! Source: Schrage, "A Proof of the Optimality of the Shortest Remaining Processing Time Discipline", Operations Research 1968.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use super::bounds::{Shares, View};
use super::{Arrivals, SimQuery};
use crate::base::machine::{Class, PerClass};
use crate::base::quantile::select_nearest_rank;
use crate::base::time::Nanos;
use crate::cost::{BatchSizes, MachineModel};

/// Prices tried for each pair of classes.
const PRICES: u32 = 40;

/// Lower bounds on the latencies of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyBound {
    /// Bound on the mean, in milliseconds.
    pub mean_ms: f64,
    /// Bound on the 99th percentile, in milliseconds.
    pub p99_ms: f64,
}

/// The bounds for these arrivals at a rate; `None` without arrivals or processors.
#[must_use]
pub fn latency_bound(
    arrivals: &Arrivals,
    queries: &[SimQuery],
    model: &MachineModel,
    rate_qps: f64,
) -> Option<LatencyBound> {
    let classes: Vec<Class> = model.machine.classes().collect();
    let fastest: Vec<Nanos> = queries.iter().map(|query| model.fastest(&query.service)).collect::<Option<Vec<_>>>()?;
    let mut alone: Vec<u64> = arrivals.queries().map(|row| fastest[row as usize].0).collect();
    let per_query_ms = alone.iter().map(|&time| time as f64).sum::<f64>() / alone.len() as f64 / 1e6;
    let p99 = select_nearest_rank(&mut alone, 0.99)?;
    let mut mean_ms = per_query_ms;
    for &view in View::of(model) {
        let shares: Vec<Shares> =
            queries.iter().map(|query| view.shares(model, &query.service, BatchSizes::Any)).collect();
        for price in prices(&classes) {
            let weights: Vec<f64> = shares
                .iter()
                .map(|share| classes.iter().map(|&class| price[class] * share[class]).fold(f64::INFINITY, f64::min))
                .collect();
            let jobs = arrivals.at_rate(rate_qps).map(|(at, row)| (at.as_secs(), weights[row as usize]));
            mean_ms = mean_ms.max(1e3 * least_mean_s(jobs));
        }
    }
    Some(LatencyBound { mean_ms, p99_ms: Nanos(p99).as_ms() })
}

/// Prices to try, on the line between the first class and all others, which get equal prices.
fn prices(classes: &[Class]) -> impl Iterator<Item = PerClass<f64>> + '_ {
    let steps = if classes.len() > 1 { PRICES } else { 1 };
    (0..steps).map(move |i| {
        let of_first = if classes.len() > 1 { (f64::from(i) + 0.5) / f64::from(steps) } else { 1.0 };
        let of_others = (1.0 - of_first) / (classes.len().max(2) - 1) as f64;
        PerClass::from_fn(|class| if class == classes[0] { of_first } else { of_others })
    })
}

/// The mean latency of a single server that always runs the job with the least work left, in seconds. Jobs are times of arrival,
/// ascending, and work.
fn least_mean_s(jobs: impl Iterator<Item = (f64, f64)>) -> f64 {
    // Work left, ordered as bits: the order of positive floats is that of their bits.
    let mut left: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
    let (mut now, mut sum, mut count) = (0.0_f64, 0.0, 0_usize);
    let mut run_until = |left: &mut BinaryHeap<Reverse<(u64, u64)>>, until: f64| {
        while let Some(Reverse((work, arrival))) = left.pop() {
            let (work, end) = (f64::from_bits(work), now + f64::from_bits(work));
            if end > until {
                left.push(Reverse(((work - (until - now)).max(0.0).to_bits(), arrival)));
                now = until;
                return;
            }
            now = end;
            sum += now - f64::from_bits(arrival);
        }
        now = now.max(until);
    };
    for (arrival, work) in jobs {
        run_until(&mut left, arrival);
        left.push(Reverse((work.to_bits(), arrival.to_bits())));
        count += 1;
    }
    run_until(&mut left, f64::MAX);
    sum / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;

    use proptest::prelude::*;

    use super::*;
    use crate::base::ids::QueryId;
    use crate::base::machine::Machine;
    use crate::cost::{Cost, Parallelism, SpeedUp};

    /// More than the work of all jobs.
    const TOTAL_WORK: u32 = 16;
    /// A sum of latencies that no sensible schedule reaches.
    const HOPELESS: u32 = 1_000_000;

    /// The least sum of latencies of jobs, each with an arrival and the work left, on `lanes` lanes from `now` on. In each unit of
    /// time a job gets any number of lanes and does as much work.
    fn brute_force(lanes: u32, now: u32, jobs: &[(u32, u32)], known: &mut HashMap<(u32, Vec<u32>), u32>) -> u32 {
        if jobs.iter().all(|&(_, left)| left == 0) {
            return 0;
        }
        // By then every job has ended in a schedule that is never idle while jobs wait.
        if now > jobs.iter().map(|job| job.0).max().unwrap_or(0) + TOTAL_WORK {
            return HOPELESS;
        }
        let key = (now, jobs.iter().map(|job| job.1).collect::<Vec<_>>());
        if let Some(&sum) = known.get(&key) {
            return sum;
        }
        // Every job that has arrived and not ended adds one unit of latency in this unit of time.
        let waiting = jobs.iter().filter(|&&(arrival, left)| arrival <= now && left > 0).count() as u32;
        let mut best = u32::MAX;
        let mut choices = vec![(0, jobs.to_vec(), lanes)];
        while let Some((at, jobs, free)) = choices.pop() {
            if at == jobs.len() {
                best = best.min(brute_force(lanes, now + 1, &jobs, known));
                continue;
            }
            let most = if jobs[at].0 <= now { free.min(jobs[at].1) } else { 0 };
            for given in 0..=most {
                let mut after = jobs.clone();
                after[at].1 -= given;
                choices.push((at + 1, after, free - given));
            }
        }
        known.insert(key, waiting + best);
        waiting + best
    }

    fn bound(lanes: usize, jobs: &[(u32, u32)]) -> LatencyBound {
        let query = |(id, &(_, work)): (u32, &(u32, u32))| {
            let service = Cost::on_cpu_and_gpu(Nanos::from_secs(f64::from(work)), Nanos::MAX);
            SimQuery { id: QueryId(id), service, estimate: service }
        };
        let queries: Vec<SimQuery> = (0..).zip(jobs).map(query).collect();
        let unit = jobs.iter().map(|job| f64::from(job.0)).collect();
        let arrivals = Arrivals::given(0, unit, (0..jobs.len() as u32).collect());
        // A job gains as much from further lanes as in the brute force.
        let speed_up = SpeedUp::of_all((1..=lanes).map(|lanes| lanes as f64).collect());
        let parallelism = Some(Arc::new(Parallelism::of(speed_up, vec![Nanos(1)])));
        let model = MachineModel { parallelism, ..Machine::new(lanes, 0).into() };
        latency_bound(&arrivals, &queries, &model, 1.0).unwrap()
    }

    proptest! {
        #[test]
        fn no_schedule_has_a_lower_mean_and_on_one_lane_the_best_one_reaches_it(
            lanes in 1_u32..4,
            mut jobs in prop::collection::vec((0..6_u32, 1..5_u32), 1..5),
        ) {
            jobs.sort_unstable();
            let least = f64::from(brute_force(lanes, 0, &jobs, &mut HashMap::new())) / jobs.len() as f64 * 1e3;
            let found = bound(lanes as usize, &jobs).mean_ms;
            prop_assert!(found <= least * (1.0 + 1e-9), "{found} > {least}");
            if lanes == 1 {
                prop_assert!(found >= least * (1.0 - 1e-9), "{found} < {least}");
            }
        }
    }

    #[test]
    fn a_percentile_is_at_least_that_of_the_queries_alone() {
        let jobs: Vec<(u32, u32)> = (0..100).map(|i| (1000 * i, if i < 98 { 1 } else { 7 })).collect();
        assert_eq!(bound(1, &jobs), LatencyBound { mean_ms: 1120.0, p99_ms: 7000.0 });
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
}
