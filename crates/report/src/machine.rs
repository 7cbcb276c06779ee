//! The samples behind a machine file, one line a batch.

use serde::{Deserialize, Serialize};

use tandem_core::base::ids::ProcessorId;
use tandem_core::files::{Digits, Record, Us};
use tandem_core::lab::MachineSample;

/// A line of the file.
#[derive(Debug, Serialize, Deserialize)]
pub struct MachineSampleRow {
    round: u64,
    stage: String,
    offered: Digits<3>,
    lanes: usize,
    processor: ProcessorId,
    class: String,
    queries: u32,
    alone_us: Us,
    idle_us: Us,
    busy: u32,
    out_us: Us,
    worked_us: Us,
    host_us: Us,
    prepared_us: Us,
    device_us: Us,
    back_us: Us,
}

impl Record for MachineSampleRow {}

impl From<&MachineSample> for MachineSampleRow {
    fn from(sample: &MachineSample) -> Self {
        Self {
            round: sample.round,
            offered: Digits(sample.offered),
            processor: sample.processor,
            stage: sample.stage.name().to_owned(),
            lanes: sample.lanes,
            class: sample.class.name().to_owned(),
            queries: sample.queries,
            alone_us: Us(sample.profiled.total()),
            idle_us: Us(sample.idle),
            busy: sample.busy,
            out_us: Us(sample.out),
            worked_us: Us(sample.worked),
            host_us: Us(sample.host),
            prepared_us: Us(sample.prepared),
            device_us: Us(sample.device),
            back_us: Us(sample.back),
        }
    }
}
