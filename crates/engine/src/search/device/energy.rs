//! The energy that GPUs use, by the counters of the NVIDIA management library (NVML).
//!
//! A counter holds the energy of the whole card since the driver was loaded, in millijoules, and advances some times per
//! second. GPUs since Volta have one. The library is loaded when a counter is first read. Without library or counter there is
//! no number: estimates from power limits or utilisation would not be measurements.
//! Source: `nvmlDeviceGetTotalEnergyConsumption` in the NVML API reference.

use std::time::{Duration, Instant};

use tandem_base::base::ids::DeviceId;

/// Counters advance too coarsely for shorter measurements.
const SHORTEST: Duration = Duration::from_secs(1);

/// Measures the energy of GPUs from its construction on.
#[derive(Debug)]
pub struct EnergyProbe {
    began: Instant,
    /// UUID and counter of each GPU; `None` if one of them has no counter.
    counters: Option<Vec<(String, u64)>>,
}

impl EnergyProbe {
    /// Reads the counters of these GPUs.
    pub fn start(devices: impl IntoIterator<Item = DeviceId>) -> Self {
        let counters = devices.into_iter().map(|device| {
            let uuid = uuid(device)?;
            let counter = millijoules(&uuid)?;
            Some((uuid, counter))
        });
        let counters: Option<Vec<(String, u64)>> = counters.collect();
        Self { began: Instant::now(), counters: counters.filter(|counters| !counters.is_empty()) }
    }

    /// The energy of all GPUs since the start, in joules; `None` without a counter for each, or after less than a second.
    pub fn joules(&self) -> Option<f64> {
        let counters = self.counters.as_ref().filter(|_| self.began.elapsed() >= SHORTEST)?;
        let used = counters.iter().map(|(uuid, before)| Some(millijoules(uuid)?.saturating_sub(*before)));
        Some(used.sum::<Option<u64>>()? as f64 / 1e3)
    }

    /// The mean power of all GPUs since the start, in watts; `None` if [`joules`](Self::joules) is.
    pub fn watts(&self) -> Option<f64> {
        Some(self.joules()? / self.began.elapsed().as_secs_f64())
    }
}

/// The GPU's UUID, by which both libraries name it. Their ordinals differ.
#[cfg(feature = "gpu")]
fn uuid(device: DeviceId) -> Option<String> {
    let bytes = cudarc::driver::CudaContext::new(device.index()).ok()?.uuid().ok()?.bytes;
    let hex: String = bytes.iter().map(|&byte| format!("{:02x}", byte as u8)).collect();
    let [a, b, c, d, e] = [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]];
    Some(format!("GPU-{a}-{b}-{c}-{d}-{e}"))
}

/// The GPU's counter, in millijoules.
#[cfg(feature = "gpu")]
fn millijoules(uuid: &str) -> Option<u64> {
    static NVML: std::sync::OnceLock<Option<nvml_wrapper::Nvml>> = std::sync::OnceLock::new();
    let nvml = NVML.get_or_init(|| nvml_wrapper::Nvml::init().ok()).as_ref()?;
    nvml.device_by_uuid(uuid).ok()?.total_energy_consumption().ok()
}

#[cfg(not(feature = "gpu"))]
fn uuid(_: DeviceId) -> Option<String> {
    None
}

#[cfg(not(feature = "gpu"))]
fn millijoules(_: &str) -> Option<u64> {
    None
}
