//! Every operation on files, so that a test can make each of them fail once.
//!
//! Builds with debug assertions count the operations of the process by name and read two variables. `TANDEM_DISK_FAULT`
//! is `NAME:NUMBER:FAULT`: the operation of this name and number, from 1, fails once. Numbers are per name, since threads
//! may do their operations in any order. `TANDEM_DISK_LOG` names a file that gets a line for each operation. Release
//! builds contain neither.

use std::fs::{self, Metadata, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

/// An open file, as in [`std::fs::File`].
#[derive(Debug)]
pub struct File(fs::File);

impl File {
    /// Opens a file for reading. Fails if the file system refuses, as for all functions here.
    pub fn open(path: &Path) -> io::Result<Self> {
        operation("open", path, || fs::File::open(path)).map(Self)
    }

    /// Opens a file in any way. Fails if the file system refuses.
    pub fn open_with(path: &Path, options: &OpenOptions) -> io::Result<Self> {
        operation("create", path, || options.open(path)).map(Self)
    }

    /// Makes or truncates a file for writing and reading. Fails if the file system refuses.
    pub fn create(path: &Path) -> io::Result<Self> {
        Self::open_with(path, fs::File::options().read(true).write(true).create(true).truncate(true))
    }

    /// Makes a file without a name in a folder; it vanishes when closed. Fails if the file system refuses.
    pub fn unnamed_in(folder: &Path) -> io::Result<Self> {
        operation("create", folder, || tempfile::tempfile_in(folder)).map(Self)
    }

    /// The file for functions of the system that neither read nor write.
    pub fn system(&self) -> &fs::File {
        &self.0
    }

    /// The file's kind, length and owner. Fails if the file system refuses.
    pub fn metadata(&self) -> io::Result<Metadata> {
        operation("stat", Path::new(""), || self.0.metadata())
    }

    /// A second handle of the same open file. Fails if the process has too many open files.
    pub fn try_clone(&self) -> io::Result<Self> {
        operation("clone", Path::new(""), || self.0.try_clone()).map(Self)
    }

    /// Waits until content and metadata are on the disk. Fails if the disk fails.
    pub fn sync_all(&self) -> io::Result<()> {
        operation("sync", Path::new(""), || self.0.sync_all())
    }

    /// Waits until the content is on the disk. Fails if the disk fails.
    pub fn sync_data(&self) -> io::Result<()> {
        operation("sync", Path::new(""), || self.0.sync_data())
    }

    /// Locks the file until it is closed. Fails if another process holds the lock, or the file system has none.
    pub fn try_lock(&self) -> Result<(), TryLockError> {
        self.0.try_lock()
    }
}

impl Read for File {
    #[inline]
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        transfer("read", buffer.len(), |len| self.0.read(&mut buffer[..len]))
    }
}

impl Write for File {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        transfer("write", bytes.len(), |len| self.0.write(&bytes[..len]))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

impl Seek for File {
    fn seek(&mut self, place: SeekFrom) -> io::Result<u64> {
        self.0.seek(place)
    }
}

#[cfg(unix)]
use std::os::unix::fs::FileExt;
#[cfg(windows)]
use std::os::windows::fs::FileExt;

/// Fills `buffer` from byte `offset` on; several threads may share the file. Fails if the file ends too early, or can't
/// be read.
pub fn read_exact_at(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        let read = transfer("read", buffer.len(), |len| {
            #[cfg(unix)]
            return file.0.read_at(&mut buffer[..len], offset);
            #[cfg(windows)]
            return file.0.seek_read(&mut buffer[..len], offset);
        });
        match read {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => (buffer, offset) = (&mut buffer[read..], offset + read as u64),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Writes all of `bytes` from byte `offset` on; several threads may share the file. Fails if the file system refuses.
pub fn write_all_at(file: &File, mut bytes: &[u8], mut offset: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        let written = transfer("write", bytes.len(), |len| {
            #[cfg(unix)]
            return file.0.write_at(&bytes[..len], offset);
            #[cfg(windows)]
            return file.0.seek_write(&bytes[..len], offset);
        });
        match written {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => (bytes, offset) = (&bytes[written..], offset + written as u64),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
    Ok(())
}

/// Makes a folder and its parents. Fails if the file system refuses.
pub fn create_dir_all(path: &Path) -> io::Result<()> {
    operation("mkdir", path, || fs::create_dir_all(path))
}

/// The entries of a folder. Fails if the file system refuses.
pub fn read_dir(path: &Path) -> io::Result<fs::ReadDir> {
    operation("list", path, || fs::read_dir(path))
}

/// Removes a file. Fails if the file system refuses.
pub fn remove_file(path: &Path) -> io::Result<()> {
    operation("remove", path, || fs::remove_file(path))
}

/// Removes a folder with all of its files. Fails if the file system refuses.
pub fn remove_dir_all(path: &Path) -> io::Result<()> {
    operation("remove", path, || fs::remove_dir_all(path))
}

/// Renames `from` to `to` through `work`.
pub(super) fn rename_by<T>(to: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    operation("rename", to, work)
}

/// Renames a file, over an older one of the new name. Fails if the file system refuses.
pub fn rename(from: &Path, to: &Path) -> io::Result<()> {
    rename_by(to, || fs::rename(from, to))
}

/// Does `work`, unless this operation is to fail.
#[inline(always)]
fn operation<T>(name: &'static str, path: &Path, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    #[cfg(debug_assertions)]
    match faults::next(name, path) {
        Some(faults::Fault::Error(code)) => return Err(io::Error::from_raw_os_error(code)),
        Some(faults::Fault::KillAfter) => {
            let _ = work();
            std::process::abort();
        }
        Some(faults::Fault::Short) | None => {}
    }
    #[cfg(not(debug_assertions))]
    let _ = (name, path);
    work()
}

/// Reads or writes up to `len` bytes by `work`, unless this operation is to fail. A write onto a full disk leaves half of
/// its bytes.
#[inline(always)]
fn transfer(name: &'static str, len: usize, work: impl FnOnce(usize) -> io::Result<usize>) -> io::Result<usize> {
    #[cfg(debug_assertions)]
    match faults::next(name, Path::new("")) {
        Some(faults::Fault::Short) => return work(len.div_ceil(2)),
        Some(faults::Fault::Error(code)) => {
            if code == faults::FULL {
                work(len.div_ceil(2))?;
            }
            return Err(io::Error::from_raw_os_error(code));
        }
        Some(faults::Fault::KillAfter) => {
            let _ = work(len.div_ceil(2));
            std::process::abort();
        }
        None => {}
    }
    #[cfg(not(debug_assertions))]
    let _ = name;
    work(len)
}

#[cfg(debug_assertions)]
mod faults {
    use std::env;
    use std::fs::File;
    use std::io::Write;
    use std::path::Path;
    use std::sync::OnceLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// The codes of POSIX systems for an interrupted call, a failing disk and a full one.
    const INTERRUPTED: i32 = 4;
    const BROKEN: i32 = 5;
    pub(super) const FULL: i32 = 28;

    #[derive(Clone, Copy, Debug)]
    pub(super) enum Fault {
        /// Half of the bytes are transferred.
        Short,
        Error(i32),
        /// The process dies after the operation; for a transfer, after half of it.
        KillAfter,
    }

    struct Plan {
        operation: String,
        number: u64,
        fault: String,
    }

    impl Plan {
        /// The plan of `TANDEM_DISK_FAULT`.
        fn read() -> Option<Self> {
            let plan = env::var("TANDEM_DISK_FAULT").ok()?;
            let [operation, number, fault] = plan.split(':').collect::<Vec<_>>()[..] else {
                panic!("TANDEM_DISK_FAULT is NAME:NUMBER:FAULT");
            };
            let number = number.parse().expect("TANDEM_DISK_FAULT names the number of an operation");
            Some(Self { operation: operation.to_owned(), number, fault: fault.to_owned() })
        }
    }

    /// The operations so far that have the plan's name.
    static COUNT: AtomicU64 = AtomicU64::new(0);

    /// Counts an operation, and returns its fault if it has one.
    pub(super) fn next(name: &str, path: &Path) -> Option<Fault> {
        static PLAN: OnceLock<Option<Plan>> = OnceLock::new();
        static LOG: OnceLock<Option<File>> = OnceLock::new();
        let log = LOG.get_or_init(|| {
            let path = env::var_os("TANDEM_DISK_LOG")?;
            File::options().append(true).create(true).open(path).ok()
        });
        if let Some(mut log) = log.as_ref() {
            let _ = log.write_all(format!("{name} {}\n", path.display()).as_bytes());
        }
        let plan = PLAN.get_or_init(Plan::read).as_ref().filter(|plan| plan.operation == name)?;
        if COUNT.fetch_add(1, Ordering::Relaxed) + 1 != plan.number {
            return None;
        }
        let fault = plan.fault.as_str();
        Some(match fault {
            "short" => Fault::Short,
            "interrupted" => Fault::Error(INTERRUPTED),
            "broken" => Fault::Error(BROKEN),
            "full" => Fault::Error(FULL),
            "kill-after" => Fault::KillAfter,
            "kill-before" => std::process::abort(),
            other => panic!("TANDEM_DISK_FAULT: no fault {other}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_ends_within_what_was_asked_is_an_error() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("ten");
        std::fs::write(&path, b"0123456789").unwrap();
        let file = File::open(&path).unwrap();
        let mut all = [0; 10];
        read_exact_at(&file, &mut all, 0).unwrap();
        assert_eq!(&all, b"0123456789");
        let error = read_exact_at(&file, &mut [0; 20], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
