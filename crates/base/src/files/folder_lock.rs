//! The lock of a result folder, so that the files of two processes are never mixed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::disk::create_dir_all;

/// A folder that no other process locks until this value is dropped or the process ends. The lock is the folder's own, so that no file
/// is left. File systems without locks grant every lock.
#[derive(Debug)]
pub struct FolderLock {
    /// The folders that were made, the innermost first.
    made: Vec<PathBuf>,
    _lock: fs::File,
}

impl FolderLock {
    /// Locks a folder, which is made if it is missing. A folder that can't be made is not locked: who writes there says why.
    ///
    /// Fails if the folder can't be opened, or another process has locked it; the message names that process.
    pub fn take(folder: &Path) -> io::Result<Option<Self>> {
        let made =
            folder.ancestors().filter(|folder| !folder.as_os_str().is_empty()).take_while(|folder| !folder.exists());
        let made = made.map(Path::to_owned).collect();
        if create_dir_all(folder).is_err() || !folder.is_dir() {
            return Ok(None);
        }
        let lock = fs::File::open(folder)?;
        match lock.try_lock() {
            Err(fs::TryLockError::WouldBlock) => Err(io::Error::other(format!(
                "{} writes into this folder (wait for it, or choose another)",
                holder(&lock).unwrap_or_else(|| String::from("another process"))
            ))),
            Ok(()) | Err(fs::TryLockError::Error(_)) => Ok(Some(Self { made, _lock: lock })),
        }
    }
}

/// Removes the folders that were made if nothing was written.
impl Drop for FolderLock {
    fn drop(&mut self) {
        // The system refuses to remove a folder that is not empty.
        for folder in &self.made {
            let _ = fs::remove_dir(folder);
        }
    }
}

/// The process that has locked a file, with its command, as Linux lists it:
///
/// ```text
/// 1: FLOCK  ADVISORY  WRITE 1234 fd:01:5678 0 EOF        number, kind, process, device and inode, range
/// ```
#[cfg(target_os = "linux")]
fn holder(file: &fs::File) -> Option<String> {
    use std::os::unix::fs::MetadataExt;
    let inode = format!(":{}", file.metadata().ok()?.ino());
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let process = locks.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        [_, "FLOCK", _, "WRITE", process, place, ..] if place.ends_with(&inode) => Some(process.to_owned()),
        _ => None,
    })?;
    let command = fs::read_to_string(format!("/proc/{process}/cmdline")).unwrap_or_default();
    let words: Vec<String> = command.split('\0').skip(1).map(|word| word.escape_default().to_string()).collect();
    Some(format!("process {process} (tandem {})", words.join(" ").trim_end()))
}

#[cfg(not(target_os = "linux"))]
fn holder(_: &fs::File) -> Option<String> {
    None
}

#[cfg(test)]
mod tests {
    use super::FolderLock;

    #[test]
    fn a_folder_has_one_owner_and_goes_if_it_is_empty() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("a/b");
        let first = FolderLock::take(&folder).unwrap().unwrap();
        let message = FolderLock::take(&folder).unwrap_err().to_string();
        assert!(message.contains("writes into this folder"), "{message}");
        drop(first);
        assert!(!folder.exists() && !dir.path().join("a").exists() && dir.path().exists());
        let again = FolderLock::take(&folder).unwrap();
        std::fs::write(folder.join("kept"), "").unwrap();
        drop(again);
        assert!(folder.join("kept").exists());
    }
}
