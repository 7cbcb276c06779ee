//! How much longer batches take on a GPU's lane that is never without one, laid out to be asked millions of times a second.

use super::Quantile;
use super::lanes::{STEP, interpolated, unit, value_at};
use crate::cost::{BatchStream, Contention};
use crate::random::{ln, mix};

/// What company makes of a batch.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BatchTimes {
    /// How many times as long as by the batches' own formula the lane's thread is at it.
    pub host: f64,
    /// Of that, the share before the launch.
    pub prepared: f64,
    /// How many times as long its device is at it.
    pub device: f64,
    /// The share of its device's time in which no other batch can run there.
    pub spacing: f64,
}

/// By a batch's size, and by who works beside it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct BatchCompany {
    /// By busy CPU lanes: how many times as long thread and device are at a batch. More than the last count as that.
    by_busy_cpus: Vec<(f64, f64)>,
    /// By the logarithm of a batch's queries, ascending; `by_busy_cpus` comes to it.
    by_size: Vec<(f64, BatchStream)>,
}

impl BatchCompany {
    /// As a workload's own batches were found to take in `company`, or else as a machine file says of its: `of_file` are thread
    /// and device.
    pub(super) fn new(of_file: (f64, f64), company: Option<&Contention>) -> Self {
        let Some(company) = company.filter(|company| !company.gpu_batches.is_empty()) else {
            return Self { by_busy_cpus: vec![of_file], by_size: Vec::new() };
        };
        let by_size: Vec<(f64, BatchStream)> =
            company.gpu_streams.iter().map(|stream| (f64::from(stream.queries.max(1)).ln(), stream.clone())).collect();
        // With sizes told by themselves, only what CPU lanes add is left to say.
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
        Self { by_busy_cpus: (0..=busiest).map(at).collect(), by_size }
    }

    /// Of a batch of so many queries while so many CPU lanes work; `bits` are what chance is drawn from.
    #[inline]
    pub(super) fn times(&self, queries: u32, busy_cpus: u32, bits: u64) -> BatchTimes {
        let (host, device) = self.by_busy_cpus[(busy_cpus as usize).min(self.by_busy_cpus.len() - 1)];
        let at = ln(f64::from(queries.max(1)));
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
        // How the thread varies says nothing of how the device does.
        let (of_device, of_host) = (unit(bits), unit(mix(bits ^ STEP)));
        let noise = |noise: &[Quantile], drawn| value_at(noise, drawn).unwrap_or(1.0);
        BatchTimes {
            host: host * between(&|stream| stream.host) * between(&|stream| noise(&stream.host_noise, of_host)),
            prepared: between(&|stream| stream.prepared),
            device: device * between(&|stream| stream.device) * between(&|stream| noise(&stream.noise, of_device)),
            // A device is never at a batch for longer than that takes.
            spacing: between(&|stream| stream.spacing.min(1.0)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cost::BatchContention;

    fn stream(queries: u32, host: f64, spacing: f64, noise: &[(f64, f64)]) -> BatchStream {
        let noise = noise.iter().map(|&(share, value)| Quantile { share, value }).collect();
        BatchStream { queries, host, prepared: 0.5, device: 1.0, spacing, noise, host_noise: Vec::new() }
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
        let times = |queries, busy| batches.times(queries, busy, 1);
        assert_eq!(times(7, 0), BatchTimes { host: 1.5, prepared: 0.0, device: 1.0, spacing: 1.0 });
        assert_eq!(times(700, 2), BatchTimes { host: 2.25, prepared: 0.0, device: 1.1, spacing: 1.0 });
        assert_eq!(times(7, 9), BatchTimes { host: 3.0, prepared: 0.0, device: 1.2, spacing: 1.0 });
        // Nothing known of the workload's own: what the file says.
        for company in [None, Some(&Contention::default())] {
            let times = BatchCompany::new((1.3, 0.9), company).times(7, 3, 1);
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
            let (alone, beside) = (batches.times(queries, 0, 1), batches.times(queries, 4, 1));
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
            |queries: u32| -> Vec<f64> { (0..4000).map(|i| batches.times(queries, 0, mix(i)).device).collect() };
        let small = device(16);
        let mean = small.iter().sum::<f64>() / small.len() as f64;
        let (least, most) = small.iter().fold((f64::MAX, 0.0_f64), |(a, b), &one| (a.min(one), b.max(one)));
        assert!((mean - 1.0).abs() < 0.01 && least < 0.81 && most > 1.19, "{mean}, {least} to {most}");
        // Half way to a size that does not vary, half as much.
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
        let times: Vec<BatchTimes> = (0..20_000).map(|i| batches.times(16, 0, mix(i))).collect();
        let stalled = times.iter().filter(|times| times.host == 15.0).count();
        assert!((300..500).contains(&stalled), "{stalled} of 20,000");
        // The device knows nothing of it.
        let mean = |of: &dyn Fn(&&BatchTimes) -> bool| {
            let (sum, count) = times.iter().filter(of).fold((0.0, 0.0), |(sum, n), one| (sum + one.device, n + 1.0));
            sum / count
        };
        let (well, held_up) = (mean(&|times| times.host < 15.0), mean(&|times| times.host == 15.0));
        assert!((well - 1.0).abs() < 0.01 && (held_up - 1.0).abs() < 0.03, "{well}, {held_up}");
    }
}
