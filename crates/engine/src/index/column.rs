//! Columns of the index file that are collected before they are written, in memory up to a limit, then in temporary
//! files.
//!
//! The files have no names, so the system removes them however the process ends.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use bytemuck::Pod;

use tandem_base::files::{File, read_exact_at};

const READ_BYTES: usize = 1 << 20;

/// A column that grows at its end and is read once from its beginning.
#[derive(Debug)]
pub(crate) struct SpillingColumn {
    folder: PathBuf,
    most_bytes: usize,
    memory: Vec<u8>,
    file: Option<File>,
    file_bytes: u64,
}

impl SpillingColumn {
    pub(crate) fn new(folder: &Path, most_bytes: usize) -> Self {
        Self { folder: folder.to_owned(), most_bytes, memory: Vec::new(), file: None, file_bytes: 0 }
    }

    pub(crate) fn len(&self) -> u64 {
        self.file_bytes + self.memory.len() as u64
    }

    pub(crate) fn most_bytes(&self) -> usize {
        self.most_bytes
    }

    pub(crate) fn limit(&mut self, most_bytes: usize) {
        self.most_bytes = most_bytes;
    }

    #[inline]
    pub(crate) fn extend<T: Pod>(&mut self, items: &[T]) -> io::Result<()> {
        let bytes: &[u8] = bytemuck::cast_slice(items);
        if self.memory.len() + bytes.len() > self.most_bytes && !self.memory.is_empty() {
            self.spill()?;
        }
        self.memory.extend_from_slice(bytes);
        Ok(())
    }

    /// Passes all bytes to `visit` in order, piece by piece.
    pub(crate) fn read(self, mut visit: impl FnMut(&[u8]) -> io::Result<()>) -> io::Result<()> {
        if let Some(file) = &self.file {
            let mut piece = vec![0; READ_BYTES];
            let mut at = 0;
            while at < self.file_bytes {
                let len = (self.file_bytes - at).min(READ_BYTES as u64) as usize;
                read_exact_at(file, &mut piece[..len], at)?;
                visit(&piece[..len])?;
                at += len as u64;
            }
        }
        visit(&self.memory)
    }

    #[cold]
    fn spill(&mut self) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(File::unnamed_in(&self.folder)?),
        };
        file.seek(SeekFrom::Start(self.file_bytes))?;
        file.write_all(&self.memory)?;
        self.file_bytes += self.memory.len() as u64;
        self.memory.clear();
        self.memory.shrink_to(self.most_bytes);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_in_memory_and_on_disk_are_equal() {
        let dir = tempfile::tempdir().unwrap();
        let items: Vec<u32> = (0..700_000).collect();
        for most_bytes in [0, 1, 4_000, 1 << 20, usize::MAX] {
            let mut column = SpillingColumn::new(dir.path(), most_bytes);
            for (number, items) in items.chunks(999).enumerate() {
                column.extend(items).unwrap();
                assert!(column.memory.len() <= most_bytes.max(4 * 999), "{most_bytes} bytes");
                if number == 500 {
                    column.limit(most_bytes / 2);
                }
            }
            assert_eq!(column.len(), 4 * items.len() as u64);
            assert_eq!(column.file.is_none(), most_bytes == usize::MAX);
            let mut found = Vec::new();
            column
                .read(|bytes| {
                    found.extend_from_slice(bytes);
                    Ok(())
                })
                .unwrap();
            assert!(found == bytemuck::cast_slice::<u32, u8>(&items), "{most_bytes} bytes");
            assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        }
    }

    #[test]
    fn a_folder_that_takes_no_file_is_told() {
        let mut column = SpillingColumn::new(Path::new("/proc"), 0);
        column.extend(&[1_u8]).unwrap();
        assert!(column.extend(&[1_u8]).is_err());
    }
}
