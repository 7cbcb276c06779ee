//! Waits for a GPU, which end in an error if it does not answer.
//!
//! A kernel that never ends would otherwise block its caller without end. All waits share one limit. A GPU that exceeds it counts as
//! hung until the process ends. Waits for its unfinished work then fail at once. Memory that its kernels may still access is
//! not freed before they end, and its modules are never unloaded, because both calls wait in the driver.

use std::ffi::OsStr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, sys};

use super::error::GpuError;

/// The environment variable that replaces [`LIMIT`], in seconds.
const VARIABLE: &str = "TANDEM_GPU_WAIT_S";
/// The longest wait for one batch, query, copy or run of an indexer: many times what any of them takes.
const LIMIT: Duration = Duration::from_secs(120);
/// The time after which a wait sleeps between polls.
const SPINNING: Duration = Duration::from_millis(2);
const SLEEP: Duration = Duration::from_micros(50);

static CHOSEN_LIMIT: OnceLock<Duration> = OnceLock::new();
static HUNG: Hung = Hung(AtomicU64::new(0));

/// GPUs that exceeded the limit, one bit per ordinal modulo 64.
struct Hung(AtomicU64);

impl Hung {
    fn has(&self, gpu: usize) -> bool {
        self.0.load(Ordering::Relaxed) >> (gpu % 64) & 1 != 0
    }

    /// Fails if the GPU has hung, or does so now: its work is unfinished after this time.
    fn check(&self, gpu: usize, waited: Duration, limit: Duration) -> Result<(), DriverError> {
        if waited >= limit {
            self.0.fetch_or(1 << (gpu % 64), Ordering::Relaxed);
        }
        if self.has(gpu) { Err(DriverError(sys::CUresult::CUDA_ERROR_TIMEOUT)) } else { Ok(()) }
    }

    fn wait(
        &self,
        gpu: usize,
        limit: Duration,
        mut has_ended: impl FnMut() -> Result<bool, DriverError>,
    ) -> Result<(), DriverError> {
        let (began, mut waited) = (Instant::now(), Duration::ZERO);
        while !has_ended()? {
            // The time before the question counts: a process that was stopped since then asks again.
            self.check(gpu, waited, limit)?;
            if waited < SPINNING {
                std::hint::spin_loop()
            } else {
                std::thread::sleep(SLEEP)
            }
            waited = began.elapsed();
        }
        Ok(())
    }
}

/// Reads the limit of waits from the environment, once per process. Fails if the variable is not a number of seconds
/// above 0.
pub(super) fn read_limit() -> Result<(), GpuError> {
    let Some(text) = std::env::var_os(VARIABLE) else { return Ok(()) };
    let Some(limit) = seconds(&text) else {
        let message = format!("{VARIABLE} is `{}`, expected a number of seconds above 0", text.display());
        return Err(GpuError::Failed { doing: "opening a GPU".to_owned(), message });
    };
    CHOSEN_LIMIT.get_or_init(|| limit);
    Ok(())
}

fn seconds(text: &OsStr) -> Option<Duration> {
    let seconds = text.to_str()?.parse().ok()?;
    Duration::try_from_secs_f64(seconds).ok().filter(|limit| !limit.is_zero())
}

fn limit() -> Duration {
    *CHOSEN_LIMIT.get().unwrap_or(&LIMIT)
}

/// Whether a wait for this context's GPU exceeded the limit.
pub fn has_hung(context: &CudaContext) -> bool {
    has_gpu_hung(context.ordinal())
}

/// Whether a wait for the GPU with this ordinal exceeded the limit.
pub(super) fn has_gpu_hung(ordinal: usize) -> bool {
    HUNG.has(ordinal)
}

/// Whether a stream has ended all its work. Fails if the driver reports a fault.
fn is_idle(stream: &CudaStream) -> Result<bool, DriverError> {
    // SAFETY: the stream lives as long as the borrow.
    match unsafe { sys::cuStreamQuery(stream.cu_stream()) } {
        sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
        sys::CUresult::CUDA_SUCCESS => Ok(true),
        error => Err(DriverError(error)),
    }
}

/// Like [`is_idle`], for work that has been waited for since `began`, or from now on. Fails with `CUDA_ERROR_TIMEOUT`
/// if that exceeds the limit or the GPU has hung before, or what the driver reports.
pub(crate) fn is_idle_in_time(stream: &CudaStream, began: &mut Option<Instant>) -> Result<bool, DriverError> {
    let waited = began.get_or_insert_with(Instant::now).elapsed();
    let is_idle = is_idle(stream)?;
    if !is_idle {
        HUNG.check(stream.context().ordinal(), waited, limit())?;
    }
    Ok(is_idle)
}

/// Waits until a stream has ended all its work. Fails with `CUDA_ERROR_TIMEOUT` if that exceeds the limit, or what the
/// driver reports.
pub fn wait(stream: &CudaStream) -> Result<(), DriverError> {
    let context = stream.context();
    context.bind_to_thread()?;
    HUNG.wait(context.ordinal(), limit(), || is_idle(stream))
}

/// Like [`wait`], for all work up to an event.
pub fn wait_for(event: &CudaEvent) -> Result<(), DriverError> {
    let context = event.context();
    context.bind_to_thread()?;
    HUNG.wait(context.ordinal(), limit(), || event.try_is_complete())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_work_fails_its_gpu_alone_and_at_once_later() {
        let hung = Hung(AtomicU64::new(0));
        let limit = Duration::from_millis(20);
        let began = Instant::now();
        let timeout = Err(DriverError(sys::CUresult::CUDA_ERROR_TIMEOUT));
        assert_eq!(hung.wait(1, limit, || Ok(false)), timeout);
        assert!(began.elapsed() >= limit);
        assert!(hung.has(1) && !hung.has(0));
        let mut polls = 0;
        let never = || {
            polls += 1;
            Ok(false)
        };
        assert_eq!(hung.wait(1, Duration::MAX, never), timeout);
        assert_eq!(polls, 1);
        // Work that has ended, and work of other GPUs, is not affected.
        assert_eq!(hung.wait(1, limit, || Ok(true)), Ok(()));
        let mut left = 3;
        let ends = || {
            left -= 1;
            Ok(left == 0)
        };
        assert_eq!(hung.wait(0, Duration::MAX, ends), Ok(()));
        // A process that was stopped for longer than the limit asks again.
        let mut asked = 0;
        let stopped_once = || {
            asked += 1;
            std::thread::sleep(if asked == 1 { 2 * limit } else { Duration::ZERO });
            Ok(asked == 2)
        };
        assert_eq!(hung.wait(0, limit, stopped_once), Ok(()));
        let fault = DriverError(sys::CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_eq!(hung.wait(0, limit, || Err(fault)), Err(fault));
    }

    #[test]
    fn a_limit_is_a_number_of_seconds() {
        assert_eq!(seconds(OsStr::new("0.25")), Some(Duration::from_millis(250)));
        for text in ["", "0", "-1", "nan", "inf", "1e30", "5s"] {
            assert_eq!(seconds(OsStr::new(text)), None, "{text}");
        }
    }
}
