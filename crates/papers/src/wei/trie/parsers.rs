//! Parsers: threads that read in turn, parse in parallel, and hand over in turn.
//!
//! ```text
//! parser 0   read│ parse ────────│ hand over        read│ parse ...
//! parser 1       │read│ parse ────────│ hand over       │read│ ...
//! parser 2            │read│ parse ────────│ hand over
//! ```
//!
//! A parser hands its buffer to the indexers and waits until they take it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use crossbeam_channel::{Receiver, Sender, bounded, unbounded};
use tandem_engine::corpus::{Cutter, Tokenizer};
use tandem_engine::indexing::{BuildError, Progress};

use super::buffer::Buffer;
use super::grants::{Grant, Grants};

/// A parsed buffer with its times.
#[derive(Debug, Default)]
pub(crate) struct Parsed {
    pub(crate) buffer: Buffer,
    pub(crate) unpacking_s: f64,
    pub(crate) parsing_s: f64,
}

/// Parses all grants on `parsers` threads, and calls `take` with every buffer in order on this thread. `take` returns
/// empty buffers. Returns the first error of reading or parsing in the collection's order, or an error of `take`.
pub(crate) fn parse_all(
    grants: &Grants,
    parsers: usize,
    tokenizer: &Tokenizer,
    progress: &(dyn Fn(Progress) + Sync),
    mut take: impl FnMut(Parsed) -> Result<Buffer, BuildError>,
) -> Result<(), BuildError> {
    let (documents, bytes) = (AtomicU64::new(0), AtomicU64::new(0));
    let (give_back, empty) = unbounded::<Buffer>();
    let advance = |docs: u32, text_bytes: u64| {
        let documents = documents.fetch_add(u64::from(docs), Ordering::Relaxed) + u64::from(docs);
        let bytes = bytes.fetch_add(text_bytes, Ordering::Relaxed) + text_bytes;
        progress(Progress::Reading { documents, bytes });
    };
    std::thread::scope(|scope| {
        let mut receivers: Vec<Receiver<Result<Parsed, BuildError>>> = Vec::new();
        for parser in 0..parsers {
            let (hand_over, receiver) = bounded(0);
            receivers.push(receiver);
            let (empty, advance) = (empty.clone(), &advance);
            std::thread::Builder::new()
                .name(format!("parse-{parser}"))
                .spawn_scoped(scope, move || {
                    work(grants, parser as u64, parsers as u64, tokenizer, advance, &empty, &hand_over);
                })
                .map_err(|e| {
                    grants.stop();
                    BuildError::Threads(e.to_string())
                })?;
        }
        for number in 0.. {
            // A parser without further grants closes its channel.
            let Ok(parsed) = receivers[number % parsers].recv() else { break };
            match parsed.and_then(&mut take) {
                Ok(mut buffer) => {
                    buffer.clear();
                    // Parsers do not wait for empty buffers and may have ended.
                    let _ = give_back.send(buffer);
                }
                Err(e) => {
                    grants.stop();
                    return Err(e);
                }
            }
        }
        Ok(())
    })
}

/// Parses grants `first`, `first + step` and so on, until there is none or the channel closes.
fn work(
    grants: &Grants,
    first: u64,
    step: u64,
    tokenizer: &Tokenizer,
    advance: &(dyn Fn(u32, u64) + Sync),
    empty: &Receiver<Buffer>,
    hand_over: &Sender<Result<Parsed, BuildError>>,
) {
    let mut cutter = Cutter::default();
    for number in (first..).step_by(step as usize) {
        let parsed = match grants.take(number) {
            Ok(None) => return,
            Ok(Some(grant)) => {
                let buffer = empty.try_recv().unwrap_or_default();
                parse(grant, Parsed { buffer, ..Parsed::default() }, tokenizer, &mut cutter, advance)
            }
            Err(e) => Err(e),
        };
        let is_last = parsed.is_err();
        if hand_over.send(parsed).is_err() || is_last {
            return;
        }
    }
}

fn parse(
    grant: Grant,
    mut parsed: Parsed,
    tokenizer: &Tokenizer,
    cutter: &mut Cutter,
    advance: &(dyn Fn(u32, u64) + Sync),
) -> Result<Parsed, BuildError> {
    let began = Instant::now();
    let Parsed { buffer, parsing_s, .. } = &mut parsed;
    grant.for_each(|batch| {
        let (began, docs_before) = (Instant::now(), buffer.num_docs);
        buffer.parse(batch, tokenizer, cutter)?;
        *parsing_s += began.elapsed().as_secs_f64();
        advance(buffer.num_docs - docs_before, batch.bytes());
        Ok(())
    })?;
    parsed.unpacking_s = (began.elapsed().as_secs_f64() - parsed.parsing_s).max(0.0);
    Ok(parsed)
}
