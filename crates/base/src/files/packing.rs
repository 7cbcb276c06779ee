//! Compressed files, recognised by their first bytes, whatever their names.

use std::io::{self, BufRead, Read};

/// The compression of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Frames of zstd.
    Zstd,
    /// Members of gzip.
    #[cfg(feature = "gzip")]
    Gzip,
}

impl Packing {
    /// The compression of a file whose first six bytes or more, or all of fewer, are `start`; `None` if it has none.
    /// Fails with the name of a compression that is not supported.
    pub fn of(start: &[u8]) -> Result<Option<Self>, &'static str> {
        match start {
            #[cfg(feature = "gzip")]
            [0x1f, 0x8b, 0x08, ..] => Ok(Some(Self::Gzip)),
            #[cfg(not(feature = "gzip"))]
            [0x1f, 0x8b, 0x08, ..] => Err("gzip"),
            // The second form is a frame without text, which some compressors put first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Some(Self::Zstd)),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Err("bzip2"),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Err("xz"),
            [b'P', b'K', 3, 4, ..] => Err("zip"),
            [0x04, 0x22, 0x4d, 0x18, ..] => Err("lz4"),
            [b'7', b'z', 0xbc, 0xaf, 0x27, 0x1c, ..] => Err("7z"),
            [0x1f, 0x9d, ..] => Err("compress"),
            _ => Ok(None),
        }
    }

    /// The first bytes of every frame or member with text.
    pub fn magic(self) -> &'static [u8] {
        match self {
            Self::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
            #[cfg(feature = "gzip")]
            Self::Gzip => &[0x1f, 0x8b, 0x08],
        }
    }
}

/// A frame or member that is being decompressed.
pub enum Frame<R: BufRead> {
    /// A zstd frame.
    Zstd(Box<zstd::stream::read::Decoder<'static, R>>),
    /// A gzip member.
    #[cfg(feature = "gzip")]
    Gzip(Box<flate2::bufread::GzDecoder<R>>),
}

impl<R: BufRead> Frame<R> {
    /// Begins a frame at the next byte of `input`. Fails if there is no memory to decompress with.
    pub fn begin(packing: Packing, input: R) -> io::Result<Self> {
        Ok(match packing {
            Packing::Zstd => Self::Zstd(Box::new(zstd::stream::read::Decoder::with_buffer(input)?.single_frame())),
            #[cfg(feature = "gzip")]
            Packing::Gzip => Self::Gzip(Box::new(flate2::bufread::GzDecoder::new(input))),
        })
    }

    /// The input after the frame.
    pub fn end(self) -> R {
        match self {
            Self::Zstd(decoder) => decoder.finish(),
            #[cfg(feature = "gzip")]
            Self::Gzip(decoder) => decoder.into_inner(),
        }
    }
}

impl<R: BufRead> Read for Frame<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Zstd(decoder) => decoder.read(buffer),
            #[cfg(feature = "gzip")]
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

impl<R: BufRead> std::fmt::Debug for Frame<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").finish_non_exhaustive()
    }
}

/// Skips the zeros with which tapes and block devices pad a file; returns whether more data follow. Fails as `input`
/// does.
pub fn skip_padding(input: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let bytes = input.fill_buf()?;
        let zeros = bytes.iter().take_while(|&&byte| byte == 0).count();
        let (is_end, has_more) = (bytes.is_empty(), zeros < bytes.len());
        input.consume(zeros);
        if is_end || has_more {
            return Ok(has_more);
        }
    }
}

/// All frames or members of a compressed stream, one after another.
pub(super) struct Frames<R: BufRead> {
    packing: Packing,
    frame: Option<Frame<R>>,
    /// The input between frames; `None` inside one.
    input: Option<R>,
}

impl<R: BufRead> Frames<R> {
    pub(super) fn new(packing: Packing, input: R) -> Self {
        Self { packing, frame: None, input: Some(input) }
    }
}

impl<R: BufRead> Read for Frames<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(mut frame) = self.frame.take() {
                let read = frame.read(buffer)?;
                if read > 0 || buffer.is_empty() {
                    self.frame = Some(frame);
                    return Ok(read);
                }
                self.input = Some(frame.end());
            }
            let Some(mut input) = self.input.take() else { return Ok(0) };
            if !skip_padding(&mut input)? {
                return Ok(0);
            }
            self.frame = Some(Frame::begin(self.packing, input)?);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compression_is_known_by_its_first_bytes() {
        for packing in [
            #[cfg(feature = "gzip")]
            Packing::Gzip,
            Packing::Zstd,
        ] {
            assert_eq!(Packing::of(&[packing.magic(), b"rest"].concat()), Ok(Some(packing)));
        }
        assert_eq!(Packing::of(b"\x50\x2a\x4d\x18\x04\0"), Ok(Some(Packing::Zstd)));
        for (start, name) in [
            (b"BZh91A", "bzip2"),
            (b"\xfd7zXZ\0", "xz"),
            (b"PK\x03\x04\x14\0", "zip"),
            (b"\x04\x22\x4d\x18\x64\x40", "lz4"),
            (b"7z\xbc\xaf\x27\x1c", "7z"),
            (b"\x1f\x9d\x90\x61\x0a\x00", "compress"),
        ] {
            assert_eq!(Packing::of(start), Err(name));
        }
        assert_eq!([&b"PK and"[..], b"BZh0", b"1\tword", b""].map(Packing::of), [Ok(None); 4]);
    }
}
