//! Folders of text files, each a document whose id is its path inside the folder, or of files that are collections.
//!
//! Hidden files and folders are left out; binary files (a zero byte in their first 8 KiB) are skipped. Both are counted.
//! Files that `.gitignore` names are read like all others. Links to files are followed, links to folders are not. Files
//! that are not UTF-8 are decoded in their most likely encoding.

use std::borrow::Cow;
use std::collections::HashSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::UNIX_EPOCH;

use tandem_base::files::{InputError, open_bytes};
use walkdir::{DirEntry, WalkDir};
use xxhash_rust::xxh3::Xxh3;

use super::document::{BATCH_BYTES, Document};
use super::{Reason, Skipped, encoding};

/// A zero byte among this many marks a binary file; git examines about as many.
const SNIFFED_BYTES: usize = 8 << 10;

/// The files of a folder, in order of their names.
#[derive(Debug)]
pub(super) struct Folder {
    files: std::vec::IntoIter<TextFile>,
    pub(super) notes: Vec<String>,
}

#[derive(Debug)]
struct TextFile {
    path: PathBuf,
    id: String,
    bytes: u64,
    written_ns: u128,
}

#[derive(Debug)]
pub(super) struct FileBatch {
    files: Vec<TextFile>,
}

impl Folder {
    pub(super) fn open(root: &Path) -> Result<Self, InputError> {
        let (mut files, mut links) = (Vec::new(), Vec::new());
        let (mut linked, mut other, mut hidden) = (0_usize, 0_usize, 0_usize);
        let is_hidden = |entry: &DirEntry| entry.depth() > 0 && entry.file_name().as_encoded_bytes().starts_with(b".");
        let entries = WalkDir::new(root).into_iter().filter_entry(|entry| {
            hidden += usize::from(is_hidden(entry));
            !is_hidden(entry)
        });
        for entry in entries {
            let entry = entry.map_err(|e| InputError::file(root, format!("cannot list: {e}")))?;
            let kind = entry.file_type();
            if kind.is_file() {
                files.push(TextFile::of(root, entry.path())?);
            } else if kind.is_symlink() && entry.path().is_file() {
                links.push(entry.path().to_owned());
            } else {
                other += usize::from(kind.is_symlink());
            }
        }
        if !links.is_empty() {
            let mut seen: HashSet<PathBuf> = files.iter().filter_map(|file| file.path.canonicalize().ok()).collect();
            for link in &links {
                if link.canonicalize().is_ok_and(|target| seen.insert(target)) {
                    files.push(TextFile::of(root, link)?);
                    linked += 1;
                } else {
                    other += 1;
                }
            }
        }
        let told = [
            (linked, "link followed", "links followed"),
            (
                other,
                "link left out (to a folder, to nothing, or to a file of the folder)",
                "links left out (to folders, to nothing, or to files of the folder)",
            ),
            (hidden, "hidden file or folder left out", "hidden files and folders left out"),
        ];
        let told = told.into_iter().filter(|(count, ..)| *count > 0);
        let mut notes: Vec<String> =
            told.map(|(count, one, many)| format!("{count} {}", if count == 1 { one } else { many })).collect();
        // Other programs leave such files out without a word.
        notes.push(String::from("files that .gitignore names are read, too"));
        files.sort_by(|a, b| a.id.cmp(&b.id));
        Ok(Self { files: files.into_iter(), notes })
    }

    pub(super) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.files.as_slice().iter().map(|file| file.path.as_path())
    }

    /// Bytes of all remaining files.
    pub(super) fn bytes(&self) -> u64 {
        self.files.as_slice().iter().map(|file| file.bytes).sum()
    }

    pub(super) fn next_batch(&mut self) -> Option<FileBatch> {
        let mut bytes = 0;
        let mut files = Vec::new();
        while bytes < BATCH_BYTES as u64 {
            let Some(file) = self.files.next() else { break };
            // Opening a file costs time too: many empty files are work.
            bytes += file.bytes + 256;
            files.push(file);
        }
        (!files.is_empty()).then_some(FileBatch { files })
    }
}

impl TextFile {
    fn of(root: &Path, path: &Path) -> Result<Self, InputError> {
        let about = path.metadata().map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
        let written = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
        let inside = path.strip_prefix(root).unwrap_or(path);
        let id = inside.components().map(|c| c.as_os_str().to_string_lossy()).collect::<Vec<_>>().join("/");
        Ok(Self { path: path.to_owned(), id, bytes: about.len(), written_ns: written.unwrap_or_default().as_nanos() })
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

    /// Visits the text files; binary files are counted and skipped.
    pub(super) fn for_each(&self, mut visit: impl FnMut(Document<'_>)) -> Result<Skipped, InputError> {
        let mut skipped = Skipped::default();
        for file in &self.files {
            let mut bytes = Vec::new();
            let read = open_bytes(&file.path)?.read_to_end(&mut bytes);
            read.map_err(|e| InputError::file(&file.path, format!("cannot read: {e}")))?;
            if bytes[..bytes.len().min(SNIFFED_BYTES)].contains(&0) && !encoding::is_utf16(&bytes) {
                skipped.add(Reason::Binary);
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

    #[cfg(unix)]
    #[test]
    fn links_and_hidden_files_are_told() {
        use std::os::unix::fs::symlink;
        let (dir, store) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let at = |name: &str| dir.path().join(name);
        for (path, text) in [(at("a.txt"), "one"), (at(".gitignore"), "*.txt"), (store.path().join("k"), "three")] {
            std::fs::write(path, text).unwrap();
        }
        symlink(store.path().join("k"), at("c.txt")).unwrap();
        symlink("a.txt", at("same.txt")).unwrap();
        symlink("nowhere", at("dangling")).unwrap();
        symlink(store.path(), at("folder")).unwrap();
        let mut folder = Folder::open(dir.path()).unwrap();
        let told = folder.notes.join("; ");
        for expected in ["1 link followed", "3 links left out", "1 hidden file or folder left out", ".gitignore"] {
            assert!(told.contains(expected), "{told}");
        }
        let mut ids = Vec::new();
        folder.next_batch().unwrap().for_each(|d| ids.push(d.id.into_owned())).unwrap();
        assert_eq!(ids, ["a.txt", "c.txt"]);
    }

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
        assert_eq!(skipped.to_string(), "1 binary file");
        let expected = [("a.txt", "one"), ("b/two.txt", "two"), ("d", "caf\u{e9} four")];
        assert_eq!(seen, expected.map(|(id, text)| (id.to_owned(), text.to_owned())));
        assert!(folder.next_batch().is_none());
    }
}
