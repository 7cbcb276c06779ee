//! Arrival traces inside the program, which `tandem trace` wrote by the command in their first lines.

use std::io::Cursor;

use crate::files::InputError;

/// A path in the repository, and the file.
type Shipped = (&'static str, &'static [u8]);

static TRACES: [Shipped; 2] = [
    (
        "traces/smooth-100qps.trace.csv.zst",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/smooth-100qps.trace.csv.zst")),
    ),
    (
        "traces/bursty-100qps.trace.csv.zst",
        include_bytes!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../traces/bursty-100qps.trace.csv.zst")),
    ),
];

/// The names of the shipped traces, without folder and extensions.
pub fn trace_names() -> impl Iterator<Item = &'static str> {
    TRACES.iter().map(|&(path, _)| stem(path))
}

/// The shipped trace of this name; the folder and extensions may be left out. `None` if there is no such trace.
pub(super) fn trace(name: &str) -> Option<Result<Cursor<Vec<u8>>, InputError>> {
    let &(path, bytes) = TRACES.iter().find(|&&(path, _)| path == name || stem(path) == name)?;
    let unpacked = zstd::decode_all(bytes).map_err(|e| InputError::file(path.as_ref(), format!("damaged: {e}")));
    Some(unpacked.map(Cursor::new))
}

fn stem(path: &'static str) -> &'static str {
    let file = path.rsplit('/').next().unwrap_or(path);
    file.split('.').next().unwrap_or(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::traffic::{ArrivalProcess, Replay};

    #[test]
    fn one_trace_is_smooth_and_one_has_bursts() {
        let variance = |name: &str| {
            let process = ArrivalProcess::named(name, Replay::Intensify).unwrap();
            let recording = process.recording().unwrap();
            assert!((recording.rate_qps() / 100.0 - 1.0).abs() < 0.05, "{name}: {}", recording.rate_qps());
            recording.varies_in_time()
        };
        assert_eq!(trace_names().map(variance).collect::<Vec<_>>(), [false, true]);
        assert!(ArrivalProcess::named("traces/bursty-100qps.trace.csv.zst", Replay::Repeat).is_ok());
        let message = ArrivalProcess::named("calm", Replay::Repeat).unwrap_err().to_string();
        assert!(message.contains("smooth-100qps, bursty-100qps"), "{message}");
    }
}
