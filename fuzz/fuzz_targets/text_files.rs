//! Files that people edit: arrivals, traces, workloads, cost models, run logs, machines, catalogues, fault plans, orders of
//! documents, judgements.

#![no_main]

use std::path::Path;

use libfuzzer_sys::fuzz_target;
use tandem::cost::{MachineProfile, ModelFile, Workload};
use tandem::files::InputError;
use tandem::indexing::reorder::{Permutation, read_scores};
use tandem::query::Text;
use tandem::report::effectiveness::Qrels;
use tandem::sched::RunLog;
use tandem::study::plan::read_catalogue;
use tandem::study::read_faults;
use tandem::traffic::{Recording, Replay, Trace};

/// A reader of files.
type Reader = fn(&Path) -> Result<(), InputError>;

/// Readers that take a path, each with the beginning of its files.
const READERS: [(Reader, &[u8]); 9] = [
    (|path| Recording::read(path, Replay::Compress).map(drop), b"arrival_s\n"),
    (|path| RunLog::read(path).map(drop), b""),
    (|path| MachineProfile::read(path).map(drop), b"{\"format\": "),
    (|path| read_catalogue(path).map(drop), b"name,cores,gpus,memory_gb,price_per_hour\n"),
    (|path| read_faults(path, 3).map(drop), b"at_ms,processor,fault,lasts_ms\n"),
    (|path| Permutation::read(path, 3).map(drop), b"0\n"),
    (|path| read_scores(path, 3).map(drop), b"0.5\n"),
    (|path| Qrels::read(path).map(drop), b"301 0 d1 1\n"),
    (|path| Text::read(path).map(drop), b""),
];

fuzz_target!(|bytes: &[u8]| {
    let Some((&kind, bytes)) = bytes.split_first() else {
        return;
    };
    match kind % 16 {
        0 => drop(Trace::parse("fuzz", bytes)),
        1 => drop(Workload::parse("fuzz", bytes)),
        2 => drop(Workload::parse("fuzz", &[&b"query_id,cpu_us\n"[..], bytes].concat()[..])),
        3 => drop(ModelFile::parse("fuzz", bytes)),
        other => {
            let (read, start) = READERS[usize::from(other - 4) % READERS.len()];
            let file = tempfile::NamedTempFile::new().expect("a temporary file");
            std::fs::write(file.path(), [start, bytes].concat()).expect("a temporary file");
            drop(read(file.path()));
        }
    }
});
