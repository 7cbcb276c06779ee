//! The samples of a machine file, as CSV rows.

use tandem_core::base::ids::ProcessorId;
use tandem_core::files::{Digits, Record, Us};
use tandem_core::lab::MachineSample;

use crate::row::{Text, row};

row! {
    /// A sample of a batch that contributed to a machine file.
    pub struct MachineSampleRow of (sample: &MachineSample) {
        round: u64 = sample.round,
        stage: Text = sample.stage.name().into(),
        offered: Digits<3> = Digits(sample.offered),
        lanes: usize = sample.lanes,
        processor: ProcessorId = sample.processor,
        class: Text = sample.class.name().into(),
        queries: u32 = sample.queries,
        alone_us: Us = Us(sample.profiled.total()),
        idle_us: Us = Us(sample.idle),
        busy: u32 = sample.busy,
        out_us: Us = Us(sample.out),
        worked_us: Us = Us(sample.worked),
        host_us: Us = Us(sample.host),
        prepared_us: Us = Us(sample.prepared),
        device_us: Us = Us(sample.device),
        back_us: Us = Us(sample.back),
    }
}

impl Record for MachineSampleRow {}
