//! Files of an interrupted build, from which the next build continues.
//!
//! Runs that do not fit into memory are stored in a folder next to the index. The journal names those that are
//! complete:
//!
//! ```text
//! OUT/.tandem-build/journal     each line with its checksum: what is built, then a line a run
//!                   run-0, ...  checksummed themselves
//! ```
//!
//! A run is named once it is on disk. Unnamed, torn and foreign files are removed.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use xxhash_rust::xxh3::xxh3_64;

use tandem_base::files::{File, create_dir_all, read_dir, remove_dir_all, remove_file, rename};

/// The folder next to the index.
const FOLDER: &str = ".tandem-build";
const JOURNAL: &str = "journal";

/// The folder of a build's runs.
#[derive(Debug)]
pub struct Journal {
    folder: PathBuf,
    /// Identifies the build: its options and its text.
    key: String,
    file: Option<File>,
    next_run: u64,
}

impl Journal {
    /// Finds what an interrupted build of `key` left in `dir`. Runs that the journal names and `take` accepts stay, in
    /// order; all other files are removed. No other process may build into `dir` meanwhile. Fails if the folder can't
    /// be read or cleaned.
    pub fn open(dir: &Path, key: &str, mut take: impl FnMut(&Path) -> bool) -> io::Result<Self> {
        let key = format!("key {:016x}", xxh3_64(key.as_bytes()));
        let mut journal = Self { folder: dir.join(FOLDER), key, file: None, next_run: 0 };
        let mut text = String::new();
        let read = File::open(&journal.folder.join(JOURNAL)).and_then(|mut file| file.read_to_string(&mut text));
        match read {
            // A torn or foreign journal has no runs to keep, but a disk that fails once may have all of them.
            Err(e) if !matches!(e.kind(), io::ErrorKind::NotFound | io::ErrorKind::InvalidData) => return Err(e),
            Err(_) => text.clear(),
            Ok(_) => {}
        }
        let mut lines = text.split_inclusive('\n').map_while(checked);
        if lines.next() != Some(&journal.key) {
            journal.remove()?;
            return Ok(journal);
        }
        let mut names = vec![JOURNAL.to_owned()];
        for name in lines {
            let number = name.strip_prefix("run-").and_then(|number| number.parse::<u64>().ok());
            let Some(number) = number else { break };
            journal.next_run = journal.next_run.max(number + 1);
            // A damaged run is made again.
            if take(&journal.folder.join(name)) {
                names.push(name.to_owned());
            }
        }
        for entry in read_dir(&journal.folder)? {
            let entry = entry?;
            if !names.iter().any(|name| entry.file_name() == name.as_str()) {
                remove_file(&entry.path())?;
            }
        }
        // The journal is rewritten, because its end may be torn, and then renamed, because the rewrite may be interrupted as well.
        journal.start(&names[1..])?;
        Ok(journal)
    }

    /// Path of the next run. Call `add` once the run is there. Fails if the folder can't be made.
    pub fn next_path(&mut self) -> io::Result<PathBuf> {
        if self.file.is_none() {
            create_dir_all(&self.folder)?;
            self.start(&[])?;
        }
        let path = self.folder.join(format!("run-{}", self.next_run));
        self.next_run += 1;
        Ok(path)
    }

    /// Notes that the run at `path` is complete.
    pub(crate) fn add(&mut self, path: &Path) -> io::Result<()> {
        self.line(&path.file_name().unwrap_or_default().to_string_lossy())
    }

    /// The folder of the runs, if there are any.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    fn remove(&mut self) -> io::Result<()> {
        self.file = None;
        remove_folder(&self.folder)
    }

    fn start(&mut self, names: &[String]) -> io::Result<()> {
        let new = self.folder.join("journal-new");
        self.file = Some(File::create(&new)?);
        let key = self.key.clone();
        self.line(&key)?;
        names.iter().try_for_each(|name| self.line(name))?;
        rename(&new, &self.folder.join(JOURNAL))
    }

    fn line(&mut self, text: &str) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.write_all(format!("{:016x} {text}\n", xxh3_64(text.as_bytes())).as_bytes())?;
            file.sync_all()?;
        }
        Ok(())
    }
}

/// Removes what a build left in `dir`, when the index is built or can't be built. No process may build into `dir`
/// meanwhile.
pub(crate) fn remove(dir: &Path) -> io::Result<()> {
    remove_folder(&dir.join(FOLDER))
}

fn remove_folder(folder: &Path) -> io::Result<()> {
    match remove_dir_all(folder) {
        Err(e) if e.kind() != io::ErrorKind::NotFound => Err(e),
        _ => Ok(()),
    }
}

/// The text of a line whose checksum is right.
fn checked(line: &str) -> Option<&str> {
    let (sum, text) = line.strip_suffix('\n')?.split_once(' ')?;
    (u64::from_str_radix(sum, 16) == Ok(xxh3_64(text.as_bytes()))).then_some(text)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn leave_runs(dir: &Path, runs: usize) {
        let (mut journal, found) = open(dir, "a");
        assert_eq!(found, 0);
        for _ in 0..runs {
            let path = journal.next_path().unwrap();
            fs::write(&path, "whole").unwrap();
            journal.add(&path).unwrap();
        }
    }

    /// The journal, and the number of complete runs that it names.
    fn open(dir: &Path, key: &str) -> (Journal, usize) {
        let mut found = 0;
        let journal = Journal::open(dir, key, |path| {
            let is_whole = fs::read(path).is_ok_and(|bytes| bytes == b"whole");
            found += usize::from(is_whole);
            is_whole
        });
        (journal.unwrap(), found)
    }

    #[test]
    fn only_whole_runs_of_the_same_build_stay() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join(FOLDER);
        leave_runs(dir.path(), 3);
        fs::write(folder.join("run-3"), "torn").unwrap();
        fs::write(folder.join("run-1"), "whale").unwrap();
        let (mut journal, runs) = open(dir.path(), "a");
        assert_eq!((runs, fs::read_dir(&folder).unwrap().count()), (2, 3));
        assert!(journal.next_path().unwrap().ends_with("run-3"));
        assert_eq!(open(dir.path(), "a").1, 2);
        assert_eq!(open(dir.path(), "b").1, 0);
        assert!(!folder.exists());
    }

    #[test]
    fn a_journal_that_is_cut_anywhere_gives_the_runs_before_the_cut() {
        let dir = tempfile::tempdir().unwrap();
        leave_runs(dir.path(), 2);
        let path = dir.path().join(FOLDER).join(JOURNAL);
        let whole = fs::read(&path).unwrap();
        let mut found = Vec::new();
        for len in (0..=whole.len()).rev() {
            if dir.path().join(FOLDER).exists() {
                fs::write(&path, &whole[..len]).unwrap();
            }
            found.push(open(dir.path(), "a").1);
        }
        assert!(found.is_sorted_by(|a, b| a >= b) && found[0] == 2 && found[found.len() - 1] == 0, "{found:?}");
    }
}
