//! Export of an index to exchange files.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::base::ids::{DocId, TermId};
use crate::corpus::ciff::{CiffHeader, CiffWriter};
use crate::corpus::pisa::PisaWriter;
use crate::files::write_atomically;
use crate::index::Index;

/// Lists between two reports of progress.
const REPORT_LISTS: u64 = 4096;

/// Writes the index as a CIFF file, compressed by gzip if the name ends in `.gz`. `progress` receives the number of
/// lists written.
///
/// # Errors
/// If the file system refuses.
pub fn export_ciff(index: &Index, path: &Path, progress: &dyn Fn(u64)) -> io::Result<()> {
    write_atomically(path, |out| {
        if path.extension().is_some_and(|extension| extension == "gz") {
            let packed = write_ciff(index, GzEncoder::new(out, Compression::default()), progress)?;
            packed.finish()?;
        } else {
            write_ciff(index, out, progress)?;
        }
        Ok(())
    })
}

fn write_ciff<W: Write>(index: &Index, out: W, progress: &dyn Fn(u64)) -> io::Result<W> {
    let header = CiffHeader {
        version: 1,
        num_lists: index.num_terms(),
        num_docs: index.num_docs(),
        total_lists: index.num_terms(),
        total_docs: index.num_docs(),
        total_tokens: index.num_tokens(),
        average_length: index.average_length(),
        description: CiffHeader::describe(index.tokenizer_name()),
    };
    let mut writer = CiffWriter::new(out, &header)?;
    for_each_list(index, progress, |term, docs, freqs| writer.list(term, docs, freqs))?;
    for (doc, &length) in (0..).map(DocId).zip(index.doc_lengths()) {
        writer.document(&index.external_id(doc), length)?;
    }
    Ok(writer.into_inner())
}

/// Writes the index as the binary collection whose `.docs` file is `path`. `progress` receives the number of lists
/// written.
///
/// # Errors
/// If a term or a document's name contains a line break, or the file system fails. Previous files stay then.
pub fn export_pisa(index: &Index, path: &Path, progress: &dyn Fn(u64)) -> io::Result<()> {
    let write = || -> io::Result<()> {
        let mut writer = PisaWriter::create(path, index.doc_lengths())?;
        for_each_list(index, progress, |term, docs, freqs| writer.list(term, docs, freqs))?;
        (0..index.num_docs()).try_for_each(|doc| writer.document(&index.external_id(DocId(doc))))?;
        writer.finish()
    };
    write().map_err(|e| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display())))
}

/// Passes every term with its documents and frequencies to `write`, in byte order of the terms.
fn for_each_list(
    index: &Index,
    progress: &dyn Fn(u64),
    mut write: impl FnMut(&str, &[u32], &[u32]) -> io::Result<()>,
) -> io::Result<()> {
    for term in (0..index.num_terms()).map(TermId) {
        let (docs, freqs): (Vec<u32>, Vec<u32>) = index.list(term).postings().unzip();
        write(&index.term_text(term), &docs, &freqs)?;
        let written = u64::from(term.0) + 1;
        if written.is_multiple_of(REPORT_LISTS) {
            progress(written);
        }
    }
    Ok(())
}
