//! Files that people edit: query logs, arrivals, traces, workloads, cost models, run logs.

#![no_main]

use libfuzzer_sys::fuzz_target;
use tandem::cost::{ModelFile, Workload};
use tandem::query::{LogOptions, Recording, Replay, Trace, parse_log};
use tandem::sched::RunLog;

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 6 {
        0 => drop(parse_log("fuzz", bytes, &LogOptions::default())),
        1 => drop(Trace::parse("fuzz", bytes)),
        2 => drop(Workload::parse("fuzz", bytes)),
        3 => drop(ModelFile::parse("fuzz", bytes)),
        other => {
            let file = tempfile::NamedTempFile::new().expect("a temporary file");
            std::fs::write(file.path(), bytes).expect("a temporary file");
            if other == 4 {
                drop(Recording::read(file.path(), Replay::Compress));
            } else {
                drop(RunLog::read(file.path()));
            }
        }
    }
});
