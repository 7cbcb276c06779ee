//! Results of a search, and their times.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;

use serde_json::json;
use tandem_engine::index::{Bm25, Index};
use tandem_engine::search::Hit;
use tandem_model::base::quantile::Times;
use tandem_model::files::{Provenance, write_atomically};

use super::answers::Answers;
use super::{Arguments, Format};
use crate::failure::Failure;
use crate::output::{SCREEN_LINES, is_verbose, result};
use tandem_report::number::counted;
use tandem_report::trec::{Ranking, printable, write_run_csv, write_run_trec};

/// Writes the results in the form that was asked for, to a file or to the terminal.
pub(super) fn write(
    arguments: &Arguments,
    index: &Index,
    index_dir: &Path,
    bm25: Bm25,
    rankings: &[Ranking],
) -> Result<(), Failure> {
    if arguments.format == Format::Json {
        give(index, rankings);
        return Ok(());
    }
    let write_to = |out: &mut dyn Write| match arguments.format {
        Format::Table | Format::Json => {
            let is_whole = arguments.out.is_some() || is_verbose();
            write_table(out, index, rankings, if is_whole { usize::MAX } else { SCREEN_LINES })
        }
        Format::Trec => write_run_trec(out, index, rankings, &arguments.tag),
        Format::Csv => {
            let Bm25 { k1, b, idf } = bm25;
            let provenance = Provenance::new()
                .with_command_and_machine()
                .with("index", format!("{}, fingerprint {:016x}", index_dir.display(), index.fingerprint()))
                .with("bm25", if bm25.is_impacts() { idf.to_string() } else { format!("k1 {k1}, b {b}, idf {idf}") })
                .with("mode", arguments.mode);
            write_run_csv(out, index, rankings, &provenance)
        }
    };
    if let Some(path) = &arguments.out {
        return Ok(write_atomically(path, |out| write_to(out))?);
    }
    let mut out = io::BufWriter::new(io::stdout().lock());
    match write_to(&mut out).and_then(|()| out.flush()) {
        // The reader, such as `head`, has closed its end.
        Err(e) if e.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result.map_err(|e| Failure::failed(format!("standard output: {e}"))),
    }
}

/// The documents of all queries, for programs.
fn give(index: &Index, rankings: &[Ranking]) {
    let documents = |ranking: &Ranking| -> Vec<_> {
        let hit =
            |(rank, hit): (u32, &Hit)| json!({"rank": rank, "doc_id": index.external_id(hit.doc), "score": hit.score});
        (1..).zip(&ranking.hits).map(hit).collect()
    };
    let query = |ranking: &Ranking| json!({"query_id": ranking.label, "documents": documents(ranking)});
    result("queries", rankings.iter().map(query).collect::<Vec<_>>());
}

fn write_table(out: &mut dyn Write, index: &Index, rankings: &[Ranking], lines: usize) -> io::Result<()> {
    let mut written = 0;
    for (position, ranking) in rankings.iter().enumerate() {
        // A title, a heading and an empty line surround the documents of a query.
        let needed = 3 + ranking.hits.len();
        if written > 0 && written + needed > lines {
            return writeln!(out, "\n({} more queries: --verbose, or --out FILE)", rankings.len() - position);
        }
        written += needed;
        let left_out = (needed > lines).then(|| needed - lines);
        let ranking = &Ranking {
            label: ranking.label.clone(),
            hits: ranking.hits[..ranking.hits.len() - left_out.unwrap_or(0)].to_vec(),
        };
        if rankings.len() > 1 {
            let gap = if position > 0 { "\n" } else { "" };
            writeln!(out, "{gap}query {}", printable(Cow::Borrowed(&ranking.label)))?;
        }
        if ranking.hits.is_empty() {
            writeln!(out, "no document matches")?;
            continue;
        }
        writeln!(out, "rank      score  document")?;
        for (rank, hit) in (1..).zip(&ranking.hits) {
            writeln!(out, "{rank:>4} {:>10.4}  {}", hit.score, printable(index.external_id(hit.doc)))?;
        }
        if let Some(left_out) = left_out {
            writeln!(out, "({left_out} more documents: --verbose, or --out FILE)")?;
        }
    }
    Ok(())
}

/// Prints the times of queries to standard error, because standard output is for results only.
pub(super) fn summarise(arguments: &Arguments, answers: &Answers, wall_s: f64) {
    let Answers { rankings, us, device } = answers;
    let times = Times::of(us.clone());
    let quantile_ms = |q: f64| times.quantile_us(q) / 1e3;
    let documents: usize = rankings.iter().map(|ranking| ranking.hits.len()).sum();
    let workers = if arguments.cpus > 1 { format!(", {} workers", arguments.cpus) } else { String::new() };
    errln!(
        "{}, {}, on {} ({device}{workers}), mode {}",
        counted(rankings.len(), "query", "queries"),
        counted(documents, "result", "results"),
        arguments.on.kind(),
        arguments.mode,
    );
    let submission = match arguments.batch {
        1 => "query".to_owned(),
        batch => format!("batch of {batch}"),
    };
    let throughput_qps = rankings.len() as f64 / wall_s.max(1e-9);
    // One query gives no rate.
    let rate = if rankings.len() > 1 { format!("; {throughput_qps:.0} queries/s") } else { String::new() };
    if rankings.len() == 1 {
        errln!("time: {:.3} ms", times.mean_us() / 1e3);
    } else {
        errln!(
            "time per {submission}: mean {:.3} ms, median {:.3}, p95 {:.3}, p99 {:.3}, max {:.3}{rate}",
            times.mean_us() / 1e3,
            quantile_ms(0.5),
            quantile_ms(0.95),
            quantile_ms(0.99),
            quantile_ms(1.0),
        );
    }
    result(
        "times",
        json!({
            "device": device,
            "queries_a_submission": arguments.batch,
            "mean_us": times.mean_us(),
            "p50_us": times.quantile_us(0.5),
            "p95_us": times.quantile_us(0.95),
            "p99_us": times.quantile_us(0.99),
            "max_us": times.quantile_us(1.0),
            "throughput_qps": (rankings.len() > 1).then_some(throughput_qps),
        }),
    );
}
