//! Atomic writing of files: a file is written completely or not at all.

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

use super::disk::{File, create_dir_all, read_dir, remove_file, rename_by};
use super::inputs::check_no_input;

/// Writes a file through `write`: under a temporary name in its folder, synced, then renamed over the old file.
///
/// If anything fails (for example, on a full disk) the old file stays and the temporary one is removed. Missing parent
/// folders are made. A link stays, and its target is written. A device or a pipe (`/dev/null`, `/dev/stdout`) is written
/// directly, since it can't be replaced. The new file gets the mode and the owner of the old one. Fails with a
/// [protected](super::protect_input) input at `path`, and the errors of `write` and the file system; the message names
/// `path`.
pub fn write_atomically<T>(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
    let attempt = || -> io::Result<T> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if is_device(path) {
            let mut out = BufWriter::with_capacity(1 << 20, File::open_with(path, fs::File::options().write(true))?);
            let value = write(&mut out)?;
            out.into_inner().map_err(io::IntoInnerError::into_error)?;
            return Ok(value);
        }
        let mut pending = PendingFile::create(path)?;
        let mut out = BufWriter::with_capacity(1 << 20, pending.file().try_clone()?);
        let value = write(&mut out)?;
        out.into_inner().map_err(io::IntoInnerError::into_error)?;
        pending.commit()?;
        Ok(value)
    };
    attempt().map_err(|e| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display())))
}

/// Checks that a file can be written at `path`, for commands that work for long before they write. No file is left
/// behind. Fails if `path` is a folder or a [protected](super::protect_input) input, or if its folder, or the nearest
/// one that exists, takes no file. The message names `path`.
pub fn check_writable(path: &Path) -> io::Result<()> {
    let attempt = || -> io::Result<()> {
        if path.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        if is_device(path) {
            return Ok(());
        }
        check_no_input(path)?;
        let path = behind_links(path);
        let mut folder = folder_of(&path);
        while fs::metadata(folder).is_err_and(|e| e.kind() == io::ErrorKind::NotFound) && folder != folder_of(folder) {
            folder = folder_of(folder);
        }
        file_beside(folder, ".tandem-check-").map(|_| ())
    };
    attempt().map_err(|e| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display())))
}

/// A file being written under a temporary name; it is removed if dropped before [`commit`](Self::commit).
#[derive(Debug)]
pub struct PendingFile {
    beside: tempfile::NamedTempFile<File>,
    path: PathBuf,
    // This field follows the file, which must be removed first.
    _folder: MadeFolder,
}

/// A folder that was made for a file; it is removed again if it stays empty.
#[derive(Debug)]
struct MadeFolder(Option<PathBuf>);

impl Drop for MadeFolder {
    fn drop(&mut self) {
        // The system refuses to remove a folder that is not empty.
        let _ = self.0.take().map(fs::remove_dir);
    }
}

impl PendingFile {
    /// Starts a file for `path`; missing parent folders are made. Temporary files for this path that a killed process
    /// left are removed. Fails if the folder can't be made or written; `path` is a device, a pipe or a
    /// [protected](super::protect_input) input; its owner can't be kept; or another process writes this file.
    pub fn create(path: &Path) -> io::Result<Self> {
        if is_device(path) {
            return Err(io::Error::other("is a device or a pipe, expected a file"));
        }
        check_no_input(path)?;
        let path = behind_links(path);
        let folder = folder_of(&path);
        let made = MadeFolder((!folder.exists()).then(|| folder.to_owned()));
        create_dir_all(folder)?;
        let name = format!(".tandem-{}-", path.file_name().unwrap_or_default().to_string_lossy());
        // A second try is needed if another process took the new file for a dead one before it was locked.
        let mut beside = file_beside(folder, &name)?;
        while matches!(beside.as_file().try_lock(), Err(fs::TryLockError::WouldBlock)) || !beside.path().exists() {
            beside = file_beside(folder, &name)?;
        }
        remove_dead(folder, &name, beside.path())?;
        keep_access(&path, beside.as_file())?;
        Ok(Self { beside, path, _folder: made })
    }

    /// The temporary file, for writing.
    pub fn file(&mut self) -> &mut File {
        self.beside.as_file_mut()
    }

    /// Syncs the temporary file, then renames it over the old file. Fails if the file system refuses; the old file then
    /// stays.
    pub fn commit(self) -> io::Result<()> {
        self.beside.as_file().sync_all()?;
        let Self { beside, path, _folder } = self;
        rename_by(&path, || beside.persist(&path).map_err(|e| e.error))?;
        // The rename itself must survive a crash: the folder is synced where the system allows it.
        if let Ok(folder) = File::open(folder_of(&path)) {
            let _ = folder.sync_all();
        }
        Ok(())
    }
}

const PART: &str = ".part";

/// An empty file with a name of its own in `folder`, removed when dropped.
///
/// It is not opened by the `tempfile` crate, whose files are private, while the user's umask decides who may read a
/// result. The crate's errors would also name temporary files, which the user never asked for.
fn file_beside(folder: &Path, prefix: &str) -> io::Result<tempfile::NamedTempFile<File>> {
    let open = |path: &Path| File::open_with(path, fs::File::options().write(true).create_new(true));
    tempfile::Builder::new().prefix(prefix).suffix(PART).make_in(folder, open)
}

/// Removes files in `folder` that begin with `prefix` and were left by killed processes; `own` stays. A live writer holds
/// a lock on its file.
fn remove_dead(folder: &Path, prefix: &str, own: &Path) -> io::Result<()> {
    for entry in read_dir(folder)?.filter_map(Result::ok) {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if !name.starts_with(prefix) || !name.ends_with(PART) || Some(name.as_ref()) == name_of(own).as_deref() {
            continue;
        }
        let Ok(part) = File::open(&entry.path()) else { continue };
        match part.try_lock() {
            Ok(()) => drop(remove_file(&entry.path())),
            Err(fs::TryLockError::WouldBlock) => {
                return Err(io::Error::other("another process is writing it (wait for it, or choose another place)"));
            }
            // The file system has no locks: the writer may live.
            Err(fs::TryLockError::Error(_)) => {}
        }
    }
    Ok(())
}

/// Gives `new` the owner and the mode of the file at `old`, if there is one.
#[cfg(unix)]
fn keep_access(old: &Path, new: &File) -> io::Result<()> {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
    let Ok(old) = fs::metadata(old) else { return Ok(()) };
    let made = new.metadata()?;
    let new = new.system();
    let (owner, group) = (old.uid() != made.uid(), old.gid() != made.gid());
    if owner || group {
        let kept = fchown(new, owner.then(|| old.uid()), group.then(|| old.gid()));
        kept.map_err(|e| {
            io::Error::new(e.kind(), format!("its owner and group cannot be kept ({e}); remove it first"))
        })?;
    }
    // The mode is set after the owner, whose change clears some bits.
    new.set_permissions(PermissionsExt::from_mode(old.mode() & 0o7777))
}

#[cfg(not(unix))]
fn keep_access(_: &Path, _: &File) -> io::Result<()> {
    Ok(())
}

fn name_of(path: &Path) -> Option<String> {
    Some(path.file_name()?.to_string_lossy().into_owned())
}

/// Whether `path` is a device or a pipe, which no file may replace: other programs use it.
fn is_device(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir())
}

/// The target of a link at `path`, so that the link stays; `path` itself if it is no link or its target is missing.
fn behind_links(path: &Path) -> PathBuf {
    let target = if path.is_symlink() { path.canonicalize().ok() } else { None };
    target.unwrap_or_else(|| path.to_owned())
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    #[test]
    fn what_cannot_be_written_is_known_before() {
        let dir = tempfile::tempdir().unwrap();
        check_writable(&dir.path().join("a/b/c.csv")).unwrap();
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
        fs::write(dir.path().join("file"), "").unwrap();
        check_writable(&dir.path().join("file")).unwrap();
        for (name, expected) in
            [("", "is a directory"), ("file/b.csv", "ot a directory"), ("file/a/b", "ot a directory")]
        {
            let path = dir.path().join(name);
            let message = check_writable(&path).unwrap_err().to_string();
            let place = format!("cannot write {}: ", path.display());
            assert!(message.starts_with(&place) && message.contains(expected), "{message}");
        }
        check_writable(Path::new("not-there-and-not-made/x")).unwrap();
        let folder = write_atomically(dir.path(), |out| out.write_all(b"x")).unwrap_err().to_string();
        assert!(folder.ends_with(": is a directory"), "{folder}");
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.csv");
        write_atomically(&path, |out| out.write_all(b"old")).unwrap();
        let failed = write_atomically(&path, |out| {
            out.write_all(b"new")?;
            Err::<(), _>(io::Error::other("disk full"))
        });
        let message = failed.unwrap_err().to_string();
        assert!(message.contains("b.csv") && message.contains("disk full"), "{message}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn errors_name_the_file_that_was_asked_for_and_no_other() {
        // This folder takes no file, not even from root.
        let path = Path::new("/proc/result.csv");
        let written = write_atomically(path, |out| out.write_all(b"x"));
        for message in [written.unwrap_err(), check_writable(path).unwrap_err()].map(|e| e.to_string()) {
            let expected = message.starts_with("cannot write /proc/result.csv: ") && message.ends_with(')');
            assert!(expected && !message.contains(".part"), "{message}");
        }
        assert!(!PendingFile::create(path).unwrap_err().to_string().contains(".part"));
    }

    #[cfg(unix)]
    #[test]
    fn pipes_and_links_stay_what_they_are() {
        use std::os::unix::fs::{FileTypeExt, symlink};
        let dir = tempfile::tempdir().unwrap();
        let (pipe, link, file) = (dir.path().join("pipe"), dir.path().join("link"), dir.path().join("file"));
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        check_writable(&pipe).unwrap();
        assert!(PendingFile::create(&pipe).is_err());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write_atomically(&pipe, |out| out.write_all(b"through")).unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::symlink_metadata(&pipe).unwrap().file_type().is_fifo());

        fs::write(&file, b"old").unwrap();
        symlink("file", &link).unwrap();
        check_writable(&link).unwrap();
        write_atomically(&link, |out| out.write_all(b"new")).unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read(&file).unwrap(), b"new");
    }

    #[cfg(unix)]
    #[test]
    fn a_result_is_as_readable_as_any_file_that_the_user_makes() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let (result, other) = (dir.path().join("result"), dir.path().join("other"));
        write_atomically(&result, |out| out.write_all(b"x")).unwrap();
        fs::write(&other, b"x").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode();
        assert_eq!(mode(&result), mode(&other));
        for bits in [0o600, 0o640, 0o444] {
            fs::set_permissions(&result, PermissionsExt::from_mode(bits)).unwrap();
            write_atomically(&result, |out| out.write_all(b"y")).unwrap();
            assert_eq!(mode(&result) & 0o7777, bits);
        }
    }
}
