//! The file's sections, written in order.

use std::io::{self, Write};

use tandem_base::files::{PendingFile, write_all_at};
use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use super::layout::{FileHeader, HEADER_BYTES, PIECE_BYTES, SECTION_ALIGNMENT, Section, SectionEntry};
use super::pieces::PieceWriters;

/// Writes sections in order, and hashes each piece.
pub(crate) struct SectionWriter {
    file: PendingFile,
    /// Started with the first whole piece.
    writers: Option<PieceWriters>,
    piece: Vec<u8>,
    piece_offset: u64,
    /// Hash of the hashes of the current section's pieces.
    hash: Xxh3,
    len: u64,
    offset: u64,
    done: Vec<SectionEntry>,
}

impl SectionWriter {
    pub(crate) fn start(mut file: PendingFile) -> io::Result<Self> {
        file.file().write_all(&[0; HEADER_BYTES])?;
        let offset = HEADER_BYTES as u64;
        Ok(Self {
            file,
            writers: None,
            piece: Vec::with_capacity(PIECE_BYTES),
            piece_offset: offset,
            hash: Xxh3::new(),
            len: 0,
            offset,
            done: Vec::new(),
        })
    }

    pub(crate) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        self.len += bytes.len() as u64;
        while self.piece.len() + bytes.len() >= PIECE_BYTES {
            let (now, later) = bytes.split_at(PIECE_BYTES - self.piece.len());
            self.piece.extend_from_slice(now);
            self.write_whole_piece()?;
            bytes = later;
        }
        self.piece.extend_from_slice(bytes);
        Ok(())
    }

    fn write_whole_piece(&mut self) -> io::Result<()> {
        self.hash.update(&xxh3_64(&self.piece).to_le_bytes());
        let writers = match &mut self.writers {
            Some(writers) => writers,
            None => self.writers.insert(PieceWriters::start(self.file.file())?),
        };
        match writers.write(self.piece_offset, std::mem::take(&mut self.piece)) {
            Ok(memory) => self.piece = memory,
            // The error of a writer thread says more.
            Err(ended) => return Err(self.writers.take().and_then(|writers| writers.finish().err()).unwrap_or(ended)),
        }
        self.piece.reserve_exact(PIECE_BYTES);
        self.piece_offset += PIECE_BYTES as u64;
        Ok(())
    }

    /// Writes section `section`, which must be the next, by `write`.
    pub(crate) fn section(
        &mut self,
        section: Section,
        write: impl FnOnce(&mut Self) -> io::Result<()>,
    ) -> io::Result<()> {
        assert_eq!(Section::ALL[self.done.len()], section, "sections come in their order");
        write(self)?;
        self.end()
    }

    /// Ends the current section and pads the file.
    fn end(&mut self) -> io::Result<()> {
        if !self.piece.is_empty() {
            self.hash.update(&xxh3_64(&self.piece).to_le_bytes());
        }
        let kind = Section::ALL[self.done.len()].kind();
        self.done.push(SectionEntry { kind, offset: self.offset, len: self.len, checksum: self.hash.digest() });
        let end = self.offset + self.len;
        self.offset = end.next_multiple_of(SECTION_ALIGNMENT);
        self.piece.resize(self.piece.len() + (self.offset - end) as usize, 0);
        write_all_at(self.file.file(), &self.piece, self.piece_offset)?;
        self.piece.clear();
        self.piece_offset = self.offset;
        self.len = 0;
        self.hash.reset();
        Ok(())
    }

    pub(crate) fn commit(mut self, mut header: FileHeader) -> io::Result<()> {
        if let Some(writers) = self.writers.take() {
            writers.finish()?;
        }
        header.file_len = self.offset;
        header.sections.copy_from_slice(&self.done);
        header.checksum = header.compute_checksum();
        write_all_at(self.file.file(), bytemuck::bytes_of(&header), 0)?;
        self.file.commit()
    }
}
