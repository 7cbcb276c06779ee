//! Whole files or none.

use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::Path;

/// Writes a file through `write`: beside its place, synced, then renamed over it.
///
/// If anything fails (a full disk, say) the file that was there stays as it was, and what was
/// written beside it is removed. Missing parent folders are made.
///
/// # Errors
/// Whatever `write` or the file system reports; the message names `path`.
pub fn write_atomically<T>(path: &Path, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<T>) -> io::Result<T> {
    let attempt = || -> io::Result<T> {
        let folder = match path.parent() {
            Some(folder) if !folder.as_os_str().is_empty() => folder,
            _ => Path::new("."),
        };
        fs::create_dir_all(folder)?;
        let beside = tempfile::Builder::new().prefix(".tandem-").suffix(".part").tempfile_in(folder)?;
        let (file, beside_path) = beside.into_parts();
        let mut out = BufWriter::with_capacity(1 << 20, file);
        let value = write(&mut out)?;
        let file = out.into_inner().map_err(io::IntoInnerError::into_error)?;
        make_readable(&file)?;
        file.sync_all()?;
        beside_path.persist(path).map_err(|e| e.error)?;
        // The rename itself must survive a crash: sync the folder where the system allows it.
        if let Ok(folder) = File::open(folder) {
            let _ = folder.sync_all();
        }
        Ok(value)
    };
    attempt().map_err(|e| io::Error::new(e.kind(), format!("cannot write {}: {e}", path.display())))
}

/// Temporary files are private; a result is as readable as any file that the user makes.
fn make_readable(file: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        file.set_permissions(fs::Permissions::from_mode(0o644))?;
    }
    let _ = file;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

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
}
