//! Slow-down of a workload's queries on a busy machine, relative to their times alone.
//!
//! How far cores slow each other down depends on what they read. Queries whose lists fit a core's caches take seven tenths of
//! their time alone when they follow each other. Queries of a collection a few times as large take more than alone. So this is
//! measured per workload, not per machine. Costs of the machine that do not depend on the queries are in the [machine
//! file](super::MachineFile).

use serde::{Deserialize, Serialize};

use super::comment_line;
use super::machine_file::{InUse, MOST_LANES, Quantile, distribution, not_negative};
use crate::files::Provenance;

/// Contention of a workload on the machine of its measurement, in whole streams of queries. It is independent of policies.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contention {
    /// CPU work over work alone, by busy CPU lanes, ascending from 1.
    pub cpu: Vec<CpuContention>,
    /// CPU work with all CPU lanes busy while GPU lanes run batches, over the last value of `cpu`.
    #[serde(default = "one")]
    pub cpu_beside_gpu: f64,
    /// Work of single queries on a GPU lane, by the lane's utilisation, ascending; empty without a GPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_in_use: Vec<InUse>,
    /// Consecutive batches of a GPU lane by busy CPU lanes, ascending from 0; empty without a GPU.
    #[serde(default)]
    pub gpu_batches: Vec<BatchContention>,
    /// Consecutive batches on a GPU lane that holds several, by queries of a batch, ascending, with no CPU lane busy. If it is
    /// known, `gpu_batches` gives only the slow-down by CPU lanes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_streams: Vec<BatchStream>,
}

/// Work while a number of CPU lanes are busy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuContention {
    /// Busy lanes, including this one.
    pub busy: u32,
    /// Factor on the time alone.
    pub times: f64,
}

/// Times of batches while a number of CPU lanes are busy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchContention {
    /// Busy CPU lanes.
    pub busy_cpus: u32,
    /// Factor on the thread's time by the formula of the batches.
    pub host: f64,
    /// Factor on the device's time by the formula of the batches.
    pub device: f64,
}

/// Times of batches of one size that follow each other on a lane without a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchStream {
    /// Queries of each batch.
    pub queries: u32,
    /// Factor on the thread's time by the formula of the batches.
    pub host: f64,
    /// Share of the thread's time before the launch. While it prepares one batch, the thread notices no other batch's end.
    #[serde(default)]
    pub prepared: f64,
    /// Factor on the device's time by the formula of the batches.
    pub device: f64,
    /// Time between the ends of two batches, over the longer of a batch's thread and device times. It is 1 if batches wait for
    /// each other, and less if they overlap on the device.
    pub spacing: f64,
    /// Quantiles of the device's time over its expected value at that moment, shares ascending.
    pub noise: Vec<Quantile>,
    /// Quantiles of the thread's time over its expected value, with all stalls of the thread, shares ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_noise: Vec<Quantile>,
    /// Correlation time of the thread's speed, in microseconds. The correlation of the normal scores of `host_noise` between
    /// two batches falls to 1/e in it. 0 if batches vary independently.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_lasts_us: f64,
}

fn is_zero(us: &f64) -> bool {
    *us == 0.0
}

fn one() -> f64 {
    1.0
}

/// Key of the comment line of a workload file that holds it.
const KEY: &str = "contention";

impl Contention {
    /// Takes it out of the comment lines of a file: `contention: {...}`.
    ///
    /// # Errors
    /// If the line is invalid, with the fault.
    pub(super) fn take_from(provenance: &mut Provenance) -> Result<Option<Self>, String> {
        comment_line::take(provenance, KEY, Self::check)
    }

    /// The comment lines with this contention, which replaces an older one.
    pub(super) fn in_provenance(contention: Option<&Self>, provenance: &Provenance) -> Provenance {
        comment_line::with(provenance, KEY, contention)
    }

    fn check(&self) -> Result<(), String> {
        let ascends = |lanes: &[u32], first: u32| {
            lanes.first().is_none_or(|&lanes| lanes == first) && lanes.windows(2).all(|pair| pair[0] < pair[1])
        };
        let busy: Vec<u32> = self.cpu.iter().map(|point| point.busy).collect();
        let beside: Vec<u32> = self.gpu_batches.iter().map(|point| point.busy_cpus).collect();
        if !ascends(&busy, 1) || !ascends(&beside, 0) {
            return Err(String::from("busy lanes must ascend, from 1 in `cpu` and from 0 in `gpu_batches`"));
        }
        if let Some(lanes) = busy.iter().chain(&beside).find(|&&lanes| lanes > MOST_LANES) {
            return Err(format!("{lanes} busy lanes, expected at most {MOST_LANES}"));
        }
        if !self.gpu_streams.is_sorted_by(|a, b| a.queries < b.queries) {
            return Err(String::from("queries must ascend in `gpu_streams`"));
        }
        if !self.gpu_in_use.is_sorted_by(|a, b| a.share < b.share) {
            return Err(String::from("shares must ascend in `gpu_in_use`"));
        }
        if let Some(point) = self.gpu_in_use.iter().find(|point| !(point.plus_us.is_finite() && point.plus_us >= 0.0)) {
            return Err(format!("`gpu_in_use`: plus_us is {}, expected 0 or more", point.plus_us));
        }
        for stream in &self.gpu_streams {
            distribution(&format!("`gpu_streams` of {} queries: noise", stream.queries), &stream.noise)?;
            distribution(&format!("`gpu_streams` of {} queries: host_noise", stream.queries), &stream.host_noise)?;
            not_negative(&format!("`gpu_streams` of {} queries: host_lasts_us", stream.queries), stream.host_lasts_us)?;
        }
        if let Some(stream) = self.gpu_streams.iter().find(|stream| !(0.0..=1.0).contains(&stream.prepared)) {
            return Err(format!("`gpu_streams`: a share of {} is prepared, expected 0 to 1", stream.prepared));
        }
        let batches = self.gpu_batches.iter().flat_map(|point| [point.host, point.device]);
        let streams = self.gpu_streams.iter().flat_map(|point| [point.host, point.device, point.spacing]);
        let cpu = self.cpu.iter().map(|point| point.times).chain([self.cpu_beside_gpu]);
        let singles = self.gpu_in_use.iter().map(|point| point.times);
        let mut times = cpu.chain(singles).chain(batches).chain(streams);
        match times.find(|times| !(times.is_finite() && *times > 0.0)) {
            Some(times) => Err(format!("{times} times as long, expected a number above 0")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_survives_the_comment_lines_and_what_is_wrong_is_told() {
        let found = Contention {
            cpu: vec![CpuContention { busy: 1, times: 0.9 }, CpuContention { busy: 8, times: 1.2 }],
            cpu_beside_gpu: 1.05,
            gpu_in_use: vec![
                InUse { share: 0.1, times: 1.3, plus_us: 0.0 },
                InUse { share: 0.8, times: 1.2, plus_us: 0.0 },
            ],
            gpu_batches: vec![BatchContention { busy_cpus: 0, host: 1.1, device: 1.0 }],
            gpu_streams: vec![
                BatchStream {
                    queries: 16,
                    host: 1.2,
                    prepared: 0.6,
                    device: 1.1,
                    spacing: 0.6,
                    noise: vec![Quantile { share: 0.1, value: 0.8 }, Quantile { share: 0.9, value: 1.3 }],
                    host_noise: vec![Quantile { share: 0.5, value: 0.9 }, Quantile { share: 1.0, value: 9.0 }],
                    host_lasts_us: 120.5,
                },
                BatchStream {
                    queries: 2048,
                    host: 1.4,
                    prepared: 0.0,
                    device: 1.0,
                    spacing: 1.0,
                    noise: Vec::new(),
                    host_noise: Vec::new(),
                    host_lasts_us: 0.0,
                },
            ],
        };
        let mut lines = Contention::in_provenance(Some(&found), &Provenance::new().with("k", 10));
        // Without correlation the field is left out, so older files keep their form.
        assert_eq!(lines.get(KEY).map(|line| line.matches("host_lasts_us").count()), Some(1));
        assert_eq!(Contention::take_from(&mut lines), Ok(Some(found)));
        assert_eq!((Contention::take_from(&mut lines), lines.get("k")), (Ok(None), Some("10")));
        let fault = |text: &str| Contention::take_from(&mut Provenance::new().with(KEY, text)).unwrap_err();
        assert!(fault("1").contains("`contention` is no model: invalid type"));
        assert!(fault(r#"{"cpu":[{"busy":2,"times":1}]}"#).contains("must ascend, from 1"));
        assert!(fault(r#"{"cpu":[{"busy":1,"times":-1}]}"#).contains("-1 times as long"));
        assert!(fault(r#"{"cpu":[{"busy":1,"times":1},{"busy":70000,"times":1}]}"#).contains("70000 busy lanes"));
        let twice = r#"{"share":0.5,"times":1,"plus_us":0}"#;
        assert!(fault(&format!(r#"{{"cpu":[],"gpu_in_use":[{twice},{twice}]}}"#)).contains("shares must ascend"));
        let stream = r#"{"queries":8,"host":1,"device":1,"spacing":1,"noise":[{"share":0.5,"value":1},{"share":0.9,"value":0.5}]}"#;
        let twice = stream.replace(r#",{"share":0.9,"value":0.5}"#, "");
        let hosts = twice.replace("]}", r#"],"host_noise":[{"share":0.5,"value":-1}]}"#);
        assert!(
            fault(&format!(r#"{{"cpu":[],"gpu_streams":[{hosts}]}}"#))
                .contains("`gpu_streams` of 8 queries: host_noise")
        );
        let lasts = twice.replace("]}", r#"],"host_lasts_us":-1}"#);
        let wrong = "`gpu_streams` of 8 queries: host_lasts_us is -1, expected 0 or more";
        assert!(fault(&format!(r#"{{"cpu":[],"gpu_streams":[{lasts}]}}"#)).contains(wrong));
        assert!(fault(&format!(r#"{{"cpu":[],"gpu_streams":[{twice},{twice}]}}"#)).contains("queries must ascend"));
        assert!(fault(&format!(r#"{{"cpu":[],"gpu_streams":[{stream}]}}"#)).contains("values never fall"));
    }
}
