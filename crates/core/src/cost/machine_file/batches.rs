//! Times of consecutive batches on a busy GPU lane, in tables for millions of look-ups a second.
//!
//! Slow batches follow each other. The thread's time is drawn from its distribution by a normal variable z with a memory, a
//! Gaussian copula over an autoregressive process. The distribution itself stays unchanged:
//!
//! ```text
//!   z' = r z + √(1 − r²) ε        r = e^(−apart / lasts)        share = Φ(z')        host = quantile(share)
//! ```

use super::Quantile;
use super::draws::{interpolated, value_at};
use crate::base::random::{Random, exp, ln, normal_cdf, normal_quantile};
use crate::base::time::Nanos;
use crate::cost::{BatchStream, Contention};

/// A batch whose times under contention are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AskedBatch {
    /// Queries in the batch.
    pub queries: u32,
    /// CPU lanes that are busy meanwhile.
    pub busy_cpus: u32,
    /// The thread's time for it by the formula of the batches.
    pub host: Nanos,
    /// When the batch is handed over.
    pub begin: Nanos,
}

/// How slow a lane's thread was at its last batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spell {
    /// Its place in the distribution, as a standard normal variable.
    z: f64,
    /// When the thread would have started on it at normal speed. `host` is its time at that speed.
    from: Nanos,
    host: Nanos,
}

/// Times of a batch under contention.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchTimes {
    /// Factor on the thread's time by the formula of the batches.
    pub host: f64,
    /// Share of the thread's time before the launch.
    pub prepared: f64,
    /// Factor on the device's time by the formula of the batches.
    pub device: f64,
    /// Share of the device's time in which no other batch can run there.
    pub spacing: f64,
}

/// Contention of batches by their size and by busy CPU lanes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BatchCompany {
    /// Factors on thread and device times by busy CPU lanes. Larger numbers of lanes use the last entry.
    by_busy_cpus: Vec<(f64, f64)>,
    /// Streams by the logarithm of a batch's queries, ascending. The factors of `by_busy_cpus` multiply them.
    by_size: Vec<(f64, BatchStream)>,
    /// Whether slow batches of some size follow each other.
    has_spells: bool,
}

/// The least share that is drawn, since the normal quantile of 0 is infinite.
const LEAST_SHARE: f64 = 1.0 / (1_u64 << 54) as f64;

impl BatchCompany {
    /// Builds the tables from the workload's own contention, if known. Otherwise `of_file`, the factors on thread and device
    /// of a machine file, applies.
    pub(super) fn new(of_file: (f64, f64), company: Option<&Contention>) -> Self {
        let Some(company) = company.filter(|company| !company.gpu_batches.is_empty()) else {
            return Self { by_busy_cpus: vec![of_file], by_size: Vec::new(), has_spells: false };
        };
        let by_size: Vec<(f64, BatchStream)> =
            company.gpu_streams.iter().map(|stream| (f64::from(stream.queries.max(1)).ln(), stream.clone())).collect();
        // Where sizes have their own streams, only the slow-down by CPU lanes remains.
        let (host, device) = match (by_size.is_empty(), company.gpu_batches.first()) {
            (false, Some(alone)) => (alone.host, alone.device),
            _ => (1.0, 1.0),
        };
        let busiest = company.gpu_batches.last().map_or(0, |point| point.busy_cpus);
        let points = |value: fn(&crate::cost::BatchContention) -> f64, busy: u32| {
            let points = company.gpu_batches.iter().map(|point| (f64::from(point.busy_cpus), value(point)));
            interpolated(points, f64::from(busy)).unwrap_or(1.0)
        };
        let at = |busy| (points(|point| point.host, busy) / host, points(|point| point.device, busy) / device);
        let has_spells = by_size.iter().any(|(_, stream)| stream.host_lasts_us > 0.0);
        Self { by_busy_cpus: (0..=busiest).map(at).collect(), by_size, has_spells }
    }

    /// Times of a batch on a lane whose last batch is in `spell`, which is updated. The factor `speed` on the thread's time at
    /// this moment is not included.
    #[inline]
    pub(super) fn times(
        &self,
        batch: &AskedBatch,
        spell: &mut Option<Spell>,
        speed: f64,
        random: &mut Random,
    ) -> BatchTimes {
        let (host, device) = self.by_busy_cpus[(batch.busy_cpus as usize).min(self.by_busy_cpus.len() - 1)];
        let at = ln(f64::from(batch.queries.max(1)));
        let after = self.by_size.partition_point(|&(size, _)| size < at);
        let (low, high) = match (after.checked_sub(1).map(|i| &self.by_size[i]), self.by_size.get(after)) {
            (Some(low), Some(high)) => (low, high),
            (Some(only), None) | (None, Some(only)) => (only, only),
            (None, None) => return BatchTimes { host, prepared: 0.0, device, spacing: 1.0 },
        };
        let part = if high.0 > low.0 { (at - low.0) / (high.0 - low.0) } else { 0.0 };
        let between = |value: &dyn Fn(&BatchStream) -> f64| {
            let (low, high) = (value(&low.1), value(&high.1));
            low + part * (high - low)
        };
        // Variations of thread and device are independent.
        let (of_device, mut of_host) = (random.unit(), random.unit());
        let noise = |noise: &[Quantile], drawn| value_at(noise, drawn).unwrap_or(1.0);
        let host = host * between(&|stream| stream.host);
        if self.has_spells {
            let lasts_ns = between(&|stream| stream.host_lasts_us) * 1e3;
            of_host = remembered(spell, batch, batch.host.scaled(host * speed), lasts_ns, of_host);
        }
        BatchTimes {
            host: host * between(&|stream| noise(&stream.host_noise, of_host)),
            prepared: between(&|stream| stream.prepared),
            device: device * between(&|stream| stream.device) * between(&|stream| noise(&stream.noise, of_device)),
            // A device is busy with a batch for no longer than the batch takes.
            spacing: between(&|stream| stream.spacing.min(1.0)),
        }
    }
}

/// The share of batches that are quicker than this one, given the previous one in `spell`. `drawn` is the share of an
/// independent batch, and `host` the thread's time at normal speed.
///
/// Time is counted as if all batches had normal speed. Otherwise slow spells would hold fewer batches than quick ones of equal
/// length. Batches would then be quicker than measured, by a fiftieth where the thread is never idle.
#[inline]
fn remembered(spell: &mut Option<Spell>, batch: &AskedBatch, host: Nanos, lasts_ns: f64, drawn: f64) -> f64 {
    let fresh = normal_quantile(drawn.max(LEAST_SHARE));
    let Some(before) = *spell else {
        *spell = Some(Spell { z: fresh, from: batch.begin, host });
        return drawn;
    };
    let from = batch.begin.max(before.from + before.host);
    let (z, share) = if lasts_ns > 0.0 {
        let r = exp(-(from.since(before.from).0 as f64) / lasts_ns);
        let z = r * before.z + (1.0 - r * r).sqrt() * fresh;
        (z, normal_cdf(z))
    } else {
        (fresh, drawn)
    };
    *spell = Some(Spell { z, from, host });
    share
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::BatchContention;

    fn stream(queries: u32, host: f64, spacing: f64, noise: &[(f64, f64)]) -> BatchStream {
        let noise = noise.iter().map(|&(share, value)| Quantile { share, value }).collect();
        let host_noise = Vec::new();
        BatchStream { queries, host, prepared: 0.5, device: 1.0, spacing, noise, host_noise, host_lasts_us: 0.0 }
    }

    /// Times of a batch of `queries` queries with `busy_cpus` busy CPU lanes, independent of earlier batches.
    fn times_of(batches: &BatchCompany, queries: u32, busy_cpus: u32, seed: u64) -> BatchTimes {
        let batch = AskedBatch { queries, busy_cpus, ..AskedBatch::default() };
        batches.times(&batch, &mut None, 1.0, &mut Random::new(seed, 0))
    }

    fn company() -> Contention {
        Contention {
            gpu_batches: vec![
                BatchContention { busy_cpus: 0, host: 1.5, device: 1.0 },
                BatchContention { busy_cpus: 4, host: 3.0, device: 1.2 },
            ],
            ..Contention::default()
        }
    }

    #[test]
    fn without_sizes_all_batches_are_longer_by_who_works_beside() {
        let batches = BatchCompany::new((1.0, 1.0), Some(&company()));
        let times = |queries, busy| times_of(&batches, queries, busy, 1);
        assert_eq!(times(7, 0), BatchTimes { host: 1.5, prepared: 0.0, device: 1.0, spacing: 1.0 });
        assert_eq!(times(700, 2), BatchTimes { host: 2.25, prepared: 0.0, device: 1.1, spacing: 1.0 });
        assert_eq!(times(7, 9), BatchTimes { host: 3.0, prepared: 0.0, device: 1.2, spacing: 1.0 });
        // Without contention of the workload the file's factors apply.
        for company in [None, Some(&Contention::default())] {
            let times = times_of(&BatchCompany::new((1.3, 0.9), company), 7, 3, 1);
            assert_eq!(times, BatchTimes { host: 1.3, prepared: 0.0, device: 0.9, spacing: 1.0 });
        }
    }

    #[test]
    fn between_sizes_the_logarithm_counts_and_cpus_add_what_they_add() {
        let streams = vec![stream(16, 1.0, 0.5, &[]), stream(256, 2.0, 1.1, &[])];
        let batches = BatchCompany::new((1.0, 1.0), Some(&Contention { gpu_streams: streams, ..company() }));
        for (queries, host, spacing) in
            [(2, 1.0, 0.5), (16, 1.0, 0.5), (64, 1.5, 0.75), (256, 2.0, 1.0), (4096, 2.0, 1.0)]
        {
            let (alone, beside) = (times_of(&batches, queries, 0, 1), times_of(&batches, queries, 4, 1));
            let near = |a: f64, b: f64| (a - b).abs() < 1e-12;
            assert!(near(alone.host, host) && near(alone.spacing, spacing), "{queries}: {alone:?}");
            assert!(near(beside.host, 2.0 * host) && near(beside.device, 1.2), "{queries}: {beside:?}");
        }
    }

    #[test]
    fn the_device_varies_as_it_was_seen_to() {
        let streams = vec![stream(16, 1.0, 1.0, &[(0.0, 0.8), (1.0, 1.2)]), stream(4096, 1.0, 1.0, &[])];
        let batches = BatchCompany::new((1.0, 1.0), Some(&Contention { gpu_streams: streams, ..company() }));
        let device =
            |queries: u32| -> Vec<f64> { (0..4000).map(|i| times_of(&batches, queries, 0, i).device).collect() };
        let small = device(16);
        let mean = small.iter().sum::<f64>() / small.len() as f64;
        let (least, most) = small.iter().fold((f64::MAX, 0.0_f64), |(a, b), &one| (a.min(one), b.max(one)));
        assert!((mean - 1.0).abs() < 0.01 && least < 0.81 && most > 1.19, "{mean}, {least} to {most}");
        // Half way to a size that does not vary, the variation is half as large.
        let between = device(256);
        assert!(between.iter().all(|one| (0.899..1.101).contains(one)));
        assert!(device(4096).iter().all(|&one| one == 1.0));
    }

    #[test]
    fn the_thread_varies_by_itself_and_stalls_are_as_rare_as_they_were() {
        let host_noise = [(0.0, 0.9), (0.98, 1.0), (0.98, 10.0), (1.0, 10.0)];
        let host_noise = host_noise.map(|(share, value)| Quantile { share, value }).to_vec();
        let streams = vec![BatchStream { host_noise, ..stream(16, 1.5, 1.0, &[(0.0, 0.8), (1.0, 1.2)]) }];
        let batches = BatchCompany::new((1.0, 1.0), Some(&Contention { gpu_streams: streams, ..company() }));
        let times: Vec<BatchTimes> = (0..20_000).map(|i| times_of(&batches, 16, 0, i)).collect();
        let stalled = times.iter().filter(|times| times.host == 15.0).count();
        assert!((300..500).contains(&stalled), "{stalled} of 20,000");
        // The device's times are independent of the spell.
        let mean = |of: &dyn Fn(&&BatchTimes) -> bool| {
            let (sum, count) = times.iter().filter(of).fold((0.0, 0.0), |(sum, n), one| (sum + one.device, n + 1.0));
            sum / count
        };
        let (well, held_up) = (mean(&|times| times.host < 15.0), mean(&|times| times.host == 15.0));
        assert!((well - 1.0).abs() < 0.01 && (held_up - 1.0).abs() < 0.03, "{well}, {held_up}");
    }

    const STALLED: f64 = 5.9;

    /// The thread's times for batches of 16, which take 10 us by the formula, with spells of `lasts_us`. Batches are handed
    /// over every `every_us`, or when the fourth before has ended. Factors are from 0.5 to 1.3, and 50 more for one in fifty;
    /// their mean is 1.
    fn stream_of(lasts_us: f64, every_us: Option<f64>, count: u64) -> Vec<f64> {
        let host_noise = [(0.0, 0.5), (0.98, 1.3), (0.98, STALLED), (1.0, STALLED)];
        let host_noise = host_noise.map(|(share, value)| Quantile { share, value }).to_vec();
        let streams = vec![BatchStream { host_noise, host_lasts_us: lasts_us, ..stream(16, 1.0, 1.0, &[]) }];
        let batches = BatchCompany::new((1.0, 1.0), Some(&Contention { gpu_streams: streams, ..company() }));
        let (mut spell, mut ends, mut random) = (None, [Nanos::ZERO; 4], Random::new(1, 0));
        let times = (0..count).map(|i| {
            let (host, slot) = (Nanos::from_us(10.0), i as usize % 4);
            let begin = every_us.map_or(ends[slot], |us| Nanos::from_us(us * i as f64));
            let batch = AskedBatch { queries: 16, host, begin, busy_cpus: 0 };
            let times = batches.times(&batch, &mut spell, 1.0, &mut random).host;
            ends[slot] = begin.max(ends[(slot + 3) % 4]) + host.scaled(times);
            times
        });
        times.collect()
    }

    fn rank_correlation(times: &[f64], lag: usize) -> f64 {
        let mut order: Vec<usize> = (0..times.len()).collect();
        order.sort_by(|&a, &b| times[a].total_cmp(&times[b]));
        let mut ranks = vec![0.0; times.len()];
        order.iter().enumerate().for_each(|(rank, &at)| ranks[at] = (rank as f64 + 0.5) / times.len() as f64 - 0.5);
        let sum = |lag: usize| ranks.iter().zip(&ranks[lag..]).map(|(a, b)| a * b).sum::<f64>();
        sum(lag) / sum(0)
    }

    #[test]
    fn slow_batches_follow_each_other_for_as_long_as_they_were_seen_to() {
        // Batches come every 30 us, or every 10 us on average. For normal variables with correlation r, the rank correlation
        // is 6/pi asin(r/2).
        for (every_us, apart_us) in [(Some(30.0), 30.0), (None, 10.0)] {
            let times = stream_of(100.0, every_us, 400_000);
            for lag in [1, 3, 10] {
                let r = (-apart_us / 100.0 * lag as f64).exp();
                let expected = 6.0 / std::f64::consts::PI * (r / 2.0).asin();
                let found = rank_correlation(&times, lag);
                assert!((found - expected).abs() < 0.02, "{apart_us} us, {lag} apart: {found}, expected {expected}");
            }
        }
        assert!(rank_correlation(&stream_of(0.0, Some(30.0), 100_000), 1).abs() < 0.01);
    }

    #[test]
    fn batches_take_as_long_as_they_did_however_long_slow_ones_last() {
        // The mean holds whether the thread waits for batches or they wait for it.
        for every_us in [None, Some(12.0), Some(30.0)] {
            let mut times = stream_of(60.0, every_us, 400_000);
            times.sort_by(f64::total_cmp);
            for (share, value) in [(0.1, 0.582), (0.5, 0.908), (0.9, 1.235)] {
                let found = times[(share * times.len() as f64) as usize];
                assert!((found - value).abs() < 0.01, "every {every_us:?} us, {share}: {found}, expected {value}");
            }
            let stalled = times.iter().filter(|&&times| times == STALLED).count() as f64 / times.len() as f64;
            assert!((stalled - 0.02).abs() < 0.002, "{stalled}");
        }
    }

    #[test]
    fn where_slow_batches_do_not_follow_each_other_nothing_is_remembered() {
        let noise = [(0.0, 0.9), (1.0, 1.3)].map(|(share, value)| Quantile { share, value }).to_vec();
        let one = |queries, host_lasts_us| BatchStream {
            host_noise: noise.clone(),
            host_lasts_us,
            ..stream(queries, 1.0, 1.0, &[])
        };
        let with = |streams| BatchCompany::new((1.0, 1.0), Some(&Contention { gpu_streams: streams, ..company() }));
        let (never, small) = (with(vec![one(4, 0.0), one(64, 0.0)]), with(vec![one(4, 50.0), one(64, 0.0)]));
        let (mut unused, mut spell) = (None, None);
        for i in 0..100 {
            let batch = AskedBatch { queries: 64, begin: Nanos(i), ..AskedBatch::default() };
            let drawn = never.times(&batch, &mut unused, 1.0, &mut Random::new(i, 0));
            assert_eq!(drawn, small.times(&batch, &mut spell, 1.0, &mut Random::new(i, 0)));
            assert_eq!(drawn, times_of(&never, 64, 0, i));
        }
        // A small batch that follows a large slow one is slow too.
        assert!(unused.is_none() && spell.is_some());
    }
}
