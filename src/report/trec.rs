//! Rankings as text: TREC's run form, which evaluation tools read, and CSV.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::exec::Hit;
use crate::files::Provenance;
use crate::index::Index;

/// What a query found.
#[derive(Clone, Debug)]
pub struct Ranking {
    /// The query's name in its log.
    pub label: String,
    /// Its documents, best first.
    pub hits: Vec<Hit>,
}

impl Ranking {
    /// The external ids of its documents, best first.
    #[must_use]
    pub fn external_ids(&self, index: &Index) -> Vec<String> {
        self.hits.iter().map(|hit| index.external_id(hit.doc).into_owned()).collect()
    }
}

/// Writes `query Q0 doc rank score tag` lines, rank from 1; scores read back as the same floats.
///
/// White space would shift the columns: in labels and ids it becomes `_`.
///
/// # Errors
/// Those of `out`.
pub fn write_run_trec(out: &mut dyn Write, index: &Index, rankings: &[Ranking], tag: &str) -> io::Result<()> {
    for ranking in rankings {
        let label = one_word(Cow::Borrowed(&ranking.label));
        for (rank, hit) in (1..).zip(&ranking.hits) {
            let doc = one_word(index.external_id(hit.doc));
            writeln!(out, "{label} Q0 {doc} {rank} {} {tag}", hit.score)?;
        }
    }
    Ok(())
}

/// Writes `query_id,rank,doc_id,score` lines below `provenance`.
///
/// # Errors
/// Those of `out`.
pub fn write_run_csv(
    out: &mut dyn Write,
    index: &Index,
    rankings: &[Ranking],
    provenance: &Provenance,
) -> io::Result<()> {
    let mut head = Vec::new();
    provenance.write_to(&mut head)?;
    out.write_all(&head)?;
    let mut rows = csv::Writer::from_writer(out);
    rows.write_record(["query_id", "rank", "doc_id", "score"])?;
    for ranking in rankings {
        for (rank, hit) in (1..).zip(&ranking.hits) {
            let (rank, score): (u32, f32) = (rank, hit.score);
            rows.write_record([&ranking.label, &rank.to_string(), &*index.external_id(hit.doc), &score.to_string()])?;
        }
    }
    rows.flush()
}

fn one_word(text: Cow<'_, str>) -> Cow<'_, str> {
    if text.contains(char::is_whitespace) { text.replace(char::is_whitespace, "_").into() } else { text }
}
