//! The stages of the paper's table 3.

use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaEvent, DriverError};
use tandem_engine::search::device::GpuError;
use tandem_model::base::named::named_enum;

use super::context::PublishedGpu;

named_enum! {
    /// A stage of a query.
    pub(crate) enum Stage {
        Initialization = "initialization",
        /// Decoding exceptions, documents and, for OR, frequencies.
        Decompression = "decompression",
        /// Looking up and compacting.
        Intersection = "intersection",
        /// Fetching frequencies and adding scores.
        Scoring = "scoring",
        /// Building the heap's levels above the scores.
        HeapBuilding = "heap",
        /// Extracting the best documents one after another.
        TakingOut = "taking out",
    }
}

/// Events between the stages of a query; while it is off, none are recorded.
#[derive(Debug, Default)]
pub(crate) struct StageClock {
    is_on: bool,
    events: Vec<CudaEvent>,
    /// The stage that ends at each event; the first event ends none.
    ended: Vec<Option<Stage>>,
}

impl StageClock {
    /// Forgets the last query; measures the next one if `is_on`.
    pub(crate) fn restart(&mut self, gpu: &PublishedGpu, is_on: bool) -> Result<(), GpuError> {
        self.is_on = is_on;
        self.ended.clear();
        self.mark(gpu, None)
    }

    /// Assigns the work since the last mark to `stage`.
    pub(crate) fn end(&mut self, gpu: &PublishedGpu, stage: Stage) -> Result<(), GpuError> {
        self.mark(gpu, Some(stage))
    }

    fn mark(&mut self, gpu: &PublishedGpu, stage: Option<Stage>) -> Result<(), GpuError> {
        if !self.is_on {
            return Ok(());
        }
        let mut mark = || -> Result<(), DriverError> {
            if self.events.len() == self.ended.len() {
                self.events.push(gpu.device.context.new_event(Some(CUevent_flags::CU_EVENT_DEFAULT))?);
            }
            self.events[self.ended.len()].record(&gpu.stream)
        };
        mark().map_err(|e| GpuError::of("recording an event", &e))?;
        self.ended.push(stage);
        Ok(())
    }

    /// Returns the microseconds of each stage in the order of [`Stage::ALL`]. The stream must be synchronised.
    pub(crate) fn times_us(&self) -> Result<[f64; Stage::ALL.len()], GpuError> {
        let mut times_us = [0.0; Stage::ALL.len()];
        for (pair, ended) in self.events.windows(2).zip(self.ended.iter().skip(1)) {
            let elapsed = pair[0].elapsed_ms(&pair[1]).map_err(|e| GpuError::of("timing", &e))?;
            if let Some(stage) = ended {
                times_us[*stage as usize] += f64::from(elapsed) * 1e3;
            }
        }
        Ok(times_us)
    }
}
