//! Writing a binary collection.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use super::sibling;
use crate::files::{File, PendingFile};

/// Writes the five files of a collection, which appear only at [`PisaWriter::finish`].
#[derive(Debug)]
pub struct PisaWriter {
    docs: Pending,
    freqs: Pending,
    sizes: Pending,
    terms: Pending,
    documents: Pending,
}

/// A file that is being written under a temporary name.
#[derive(Debug)]
struct Pending {
    file: PendingFile,
    out: BufWriter<File>,
}

impl PisaWriter {
    /// Starts the collection whose `.docs` file is `path`, of documents with these lengths.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn create(path: &Path, lengths: &[u32]) -> io::Result<Self> {
        let pending = |extension| Pending::create(&sibling(path, extension));
        let mut writer = Self {
            docs: pending("docs")?,
            freqs: pending("freqs")?,
            sizes: pending("sizes")?,
            terms: pending("terms")?,
            documents: pending("documents")?,
        };
        writer.docs.sequence(&[lengths.len() as u32])?;
        writer.sizes.sequence(lengths)?;
        Ok(writer)
    }

    /// Writes the next list, in byte order of the terms: ascending documents with their frequencies.
    ///
    /// # Errors
    /// If the term has a line break, or the file system refuses.
    pub fn list(&mut self, term: &str, docs: &[u32], freqs: &[u32]) -> io::Result<()> {
        self.terms.line(term, "term")?;
        self.docs.sequence(docs)?;
        self.freqs.sequence(freqs)
    }

    /// Writes the next document's name.
    ///
    /// # Errors
    /// If it has a line break, or the file system refuses.
    pub fn document(&mut self, external_id: &str) -> io::Result<()> {
        self.documents.line(external_id, "document name")
    }

    /// Puts all files in place.
    ///
    /// # Errors
    /// If the file system refuses.
    pub fn finish(self) -> io::Result<()> {
        let all = [self.docs, self.freqs, self.sizes, self.terms, self.documents];
        // All files are complete before the first one is renamed.
        let whole: Vec<PendingFile> = all.into_iter().map(Pending::flush).collect::<io::Result<_>>()?;
        whole.into_iter().try_for_each(PendingFile::commit)
    }
}

impl Pending {
    fn create(path: &Path) -> io::Result<Self> {
        let mut file = PendingFile::create(path)?;
        let out = BufWriter::with_capacity(1 << 18, file.file().try_clone()?);
        Ok(Self { file, out })
    }

    fn sequence(&mut self, numbers: &[u32]) -> io::Result<()> {
        self.out.write_all(&(numbers.len() as u32).to_le_bytes())?;
        numbers.iter().try_for_each(|number| self.out.write_all(&number.to_le_bytes()))
    }

    fn line(&mut self, text: &str, what: &str) -> io::Result<()> {
        if text.contains('\n') {
            let message = format!("the {what} {text:?} has a line break: PISA's files of lines can't hold it");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, message));
        }
        self.out.write_all(text.as_bytes())?;
        self.out.write_all(b"\n")
    }

    fn flush(self) -> io::Result<PendingFile> {
        self.out.into_inner().map_err(io::IntoInnerError::into_error)?;
        Ok(self.file)
    }
}
