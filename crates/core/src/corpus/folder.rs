//! A folder of text files, each a document whose id is its path inside the folder.
//!
//! Hidden files and those that `.gitignore` or `.ignore` name are left out, and binary files (a zero byte in their
//! first 8 KiB) are skipped and counted. Files that are not UTF-8 are read in the encoding that they look most like.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use xxhash_rust::xxh3::Xxh3;

use super::document::{BATCH_BYTES, Document};
use super::encoding;
use crate::files::InputError;

/// A zero byte among this many says that a file is no text; about as many as git looks at.
const SNIFFED_BYTES: usize = 8 << 10;

/// The files of a folder, in order of their names.
#[derive(Debug)]
pub(super) struct Folder {
    files: std::vec::IntoIter<TextFile>,
}

#[derive(Debug)]
struct TextFile {
    path: PathBuf,
    id: String,
    bytes: u64,
    written_ns: u128,
}

/// Consecutive files.
#[derive(Debug)]
pub(super) struct FileBatch {
    files: Vec<TextFile>,
}

impl Folder {
    pub(super) fn open(root: &Path) -> Result<Self, InputError> {
        let mut files = Vec::new();
        for entry in ignore::WalkBuilder::new(root).build() {
            let entry = entry.map_err(|e| InputError::file(root, format!("cannot list: {e}")))?;
            if !entry.file_type().is_some_and(|kind| kind.is_file()) {
                continue;
            }
            let path = entry.path().to_owned();
            let about = entry.metadata().map_err(|e| InputError::file(&path, format!("cannot read: {e}")))?;
            let written = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
            let (bytes, written_ns) = (about.len(), written.unwrap_or_default().as_nanos());
            let inside = path.strip_prefix(root).unwrap_or(&path);
            let id = inside.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
            files.push(TextFile { path, id, bytes, written_ns });
        }
        files.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Self { files: files.into_iter() })
    }

    /// Bytes of all files that are left.
    pub(super) fn bytes(&self) -> u64 {
        self.files.as_slice().iter().map(|file| file.bytes).sum()
    }

    pub(super) fn next_batch(&mut self) -> Option<FileBatch> {
        let mut bytes = 0;
        let mut files = Vec::new();
        while bytes < BATCH_BYTES as u64 {
            let Some(file) = self.files.next() else { break };
            // A file costs at least its opening: many empty ones are work too.
            bytes += file.bytes + 256;
            files.push(file);
        }
        (!files.is_empty()).then_some(FileBatch { files })
    }
}

impl FileBatch {
    pub(super) fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    pub(super) fn digest(&self) -> u64 {
        let mut all = Xxh3::new();
        for file in &self.files {
            all.update(file.id.as_bytes());
            all.update(&file.bytes.to_le_bytes());
            all.update(&file.written_ns.to_le_bytes());
        }
        all.digest()
    }

    /// Visits the text files and returns how many binary ones were skipped.
    pub(super) fn for_each(&self, mut visit: impl FnMut(Document<'_>)) -> Result<usize, InputError> {
        let mut skipped = 0;
        for file in &self.files {
            let bytes =
                std::fs::read(&file.path).map_err(|e| InputError::file(&file.path, format!("cannot read: {e}")))?;
            if bytes[..bytes.len().min(SNIFFED_BYTES)].contains(&0) && !encoding::is_utf16(&bytes) {
                skipped += 1;
                continue;
            }
            let text = encoding::decode(&bytes, None);
            visit(Document { id: Cow::Borrowed(&file.id), title: Cow::Borrowed(""), text, line: None });
        }
        Ok(skipped)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_in_order_and_binary_ones_are_counted() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        for (name, bytes) in [("b/two.txt", &b"two"[..]), ("a.txt", b"one"), ("c.bin", b"x\0y"), ("d", b"caf\xe9 four")]
        {
            std::fs::write(dir.path().join(name), bytes).unwrap();
        }
        let mut folder = Folder::open(dir.path()).unwrap();
        let batch = folder.next_batch().unwrap();
        let mut seen = Vec::new();
        let skipped = batch.for_each(|d| seen.push((d.id.into_owned(), d.text.into_owned()))).unwrap();
        assert_eq!(skipped, 1);
        let expected = [("a.txt", "one"), ("b/two.txt", "two"), ("d", "caf\u{e9} four")];
        assert_eq!(seen, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        assert!(folder.next_batch().is_none());
    }
}
