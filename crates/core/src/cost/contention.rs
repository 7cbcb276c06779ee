//! What queries of a workload take while the machine is busy with their like, over what they take alone.
//!
//! How far cores slow each other down is a matter of what they read: queries of a collection whose lists a core's caches
//! hold take seven tenths of their time alone when they follow each other, and those of one a few times as large take more
//! than alone. So this is measured with a workload, not with a machine; what a machine adds whatever is asked of it is in the
//! [machine file](super::MachineFile).

use serde::{Deserialize, Serialize};

use super::comment_line;
use super::machine_file::{InUse, MOST_LANES, Quantile, distribution, not_negative};
use crate::files::Provenance;

/// Of a workload on the machine that it was measured on, in whole streams of queries: no policy has a part in it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contention {
    /// By busy CPU lanes, ascending from 1: their work over work alone.
    pub cpu: Vec<CpuContention>,
    /// The same with all CPU lanes busy while GPU lanes answer batches, over the last of `cpu`.
    #[serde(default = "one")]
    pub cpu_beside_gpu: f64,
    /// Of queries by themselves on a GPU lane, by how much that is used, ascending; empty where there is none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_in_use: Vec<InUse>,
    /// By busy CPU lanes, ascending from 0: batches of a GPU lane one after another; empty where there is none.
    #[serde(default)]
    pub gpu_batches: Vec<BatchContention>,
    /// By queries of a batch, ascending, no CPU lane busy: batches of that size one after another on a GPU lane that holds several.
    /// Where it is known, `gpu_batches` says only how much longer they take beside CPU lanes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub gpu_streams: Vec<BatchStream>,
}

/// What work takes while so many CPU lanes are busy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpuContention {
    /// Lanes, itself counted.
    pub busy: u32,
    /// How many times as long as alone.
    pub times: f64,
}

/// What batches take while so many CPU lanes are busy.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchContention {
    /// CPU lanes.
    pub busy_cpus: u32,
    /// How many times as long as by the batches' own formula the lane's thread is at them, ...
    pub host: f64,
    /// ... and the device.
    pub device: f64,
}

/// What batches of a size take that follow each other on a lane without a pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BatchStream {
    /// Queries of each.
    pub queries: u32,
    /// How many times as long as by the batches' own formula the lane's thread is at one.
    pub host: f64,
    /// Of that, the share before the launch: while it prepares one batch the thread sees no other end.
    #[serde(default)]
    pub prepared: f64,
    /// How many times as long the device is at one.
    pub device: f64,
    /// From the end of one to the end of the next, over what the longer of the two is at one: 1 where batches wait for each other,
    /// below where they overlap on the device.
    pub spacing: f64,
    /// Quantiles of the device's time over what is expected of it at that moment, shares ascending.
    pub noise: Vec<Quantile>,
    /// The same of the thread's, whatever holds it up counted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub host_noise: Vec<Quantile>,
    /// How long the thread stays slow, or quick: the correlation of where two of its batches lie in `host_noise`, told by normal
    /// scores, falls to 1/e in so many microseconds. 0 where each batch varies by itself.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub host_lasts_us: f64,
}

fn is_zero(us: &f64) -> bool {
    *us == 0.0
}

fn one() -> f64 {
    1.0
}

/// The comment line of a workload file that holds it.
const KEY: &str = "contention";

impl Contention {
    /// Takes it out of the comment lines of a file: `contention: {...}`.
    ///
    /// # Errors
    /// If the line does not hold one: what is wrong.
    pub(super) fn take_from(provenance: &mut Provenance) -> Result<Option<Self>, String> {
        comment_line::take(provenance, KEY, Self::check)
    }

    /// The comment lines with one that says what this is, in the place of what one said before.
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
        // Where slow batches don't follow each other, nothing is said of it: files are as they were.
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
