//! Input files of a command, which no output may replace.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

/// Protected inputs, by the paths that the user gave.
static INPUTS: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Equal for two paths to one file: through links, and through hard links where the system numbers files.
#[cfg(unix)]
type Identity = (u64, u64);
#[cfg(not(unix))]
type Identity = PathBuf;

#[cfg(unix)]
fn identity(path: &Path) -> Option<Identity> {
    use std::os::unix::fs::MetadataExt;
    let there = fs::metadata(path).ok().filter(fs::Metadata::is_file)?;
    Some((there.dev(), there.ino()))
}

#[cfg(not(unix))]
fn identity(path: &Path) -> Option<Identity> {
    path.is_file().then(|| path.canonicalize().ok()).flatten()
}

/// Protects the file at `path`, or all files below that folder, until the process ends.
/// [`check_writable`](super::check_writable) and all functions that write files then refuse to replace it. A program
/// calls this for each input before it starts to work.
pub fn protect_input(path: &Path) {
    if path.is_dir() || identity(path).is_some() {
        INPUTS.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
    }
}

/// Refuses to write at `path` if that is a protected input.
pub(super) fn check_no_input(path: &Path) -> io::Result<()> {
    let Some(output) = identity(path) else { return Ok(()) };
    let inputs = INPUTS.lock().unwrap_or_else(PoisonError::into_inner);
    let below = path.canonicalize().ok();
    // An input's identity is read anew: once its file is removed, the system gives the number to another file.
    let is_replaced = |input: &PathBuf| match input.canonicalize() {
        Ok(folder) if folder.is_dir() => below.as_ref().is_some_and(|path| path.starts_with(folder)),
        _ => identity(input).as_ref() == Some(&output),
    };
    match inputs.iter().find(|input| is_replaced(input)) {
        Some(named) => {
            let message = format!("it is an input of this command ({}), name another output", named.display());
            Err(io::Error::new(io::ErrorKind::AlreadyExists, message))
        }
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::{check_writable, write_atomically};
    use super::*;

    #[test]
    fn an_input_is_not_replaced_under_any_of_its_names() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::create_dir_all(at("texts/sub")).unwrap();
        for name in ["log.tsv", "other.tsv", "texts/sub/a.txt"] {
            fs::write(at(name), "old").unwrap();
        }
        let mut names = vec![at("log.tsv"), at("texts/../log.tsv"), at("texts/sub/a.txt")];
        #[cfg(unix)]
        {
            fs::hard_link(at("log.tsv"), at("hard.tsv")).unwrap();
            std::os::unix::fs::symlink(at("log.tsv"), at("soft.tsv")).unwrap();
            names.extend([at("hard.tsv"), at("soft.tsv")]);
        }
        protect_input(&at("log.tsv"));
        protect_input(&at("texts"));
        protect_input(&at("missing"));
        for path in names {
            let message = check_writable(&path).unwrap_err().to_string();
            assert!(message.contains("is an input of this command"), "{message}");
            assert!(write_atomically(&path, |_| Ok(())).is_err());
            assert_eq!(fs::read(&path).unwrap(), b"old");
        }
        check_writable(&at("other.tsv")).unwrap();
        check_writable(&at("texts/new.txt")).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn the_number_of_a_removed_input_protects_no_other_file() {
        let dir = tempfile::tempdir().unwrap();
        let (input, output) = (dir.path().join("input"), dir.path().join("output"));
        fs::write(&input, "old").unwrap();
        // Another name of the same file stands for a new file that got the removed one's number.
        fs::hard_link(&input, &output).unwrap();
        protect_input(&input);
        assert!(check_writable(&output).is_err());
        fs::remove_file(&input).unwrap();
        check_writable(&output).unwrap();
    }
}
