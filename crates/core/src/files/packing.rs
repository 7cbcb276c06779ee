//! Compressed files: known by their first bytes, whatever they are called.

use std::io::{self, BufRead, Read};

/// How a file is compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// Frames of zstd.
    Zstd,
    /// Members of gzip.
    Gzip,
}

/// Bytes that tell how a file is compressed.
pub(super) const MAGIC_BYTES: usize = 6;

impl Packing {
    /// The compression of a file that begins with `start`, six bytes or all that it has; `None` if it has none.
    ///
    /// # Errors
    /// The name of a compression that is not read here.
    pub fn of(start: &[u8]) -> Result<Option<Self>, &'static str> {
        match start {
            [0x1f, 0x8b, 0x08, ..] => Ok(Some(Self::Gzip)),
            // The second form is a frame without text, which some compressors put first.
            [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => Ok(Some(Self::Zstd)),
            [b'B', b'Z', b'h', b'1'..=b'9', ..] => Err("bzip2"),
            [0xfd, b'7', b'z', b'X', b'Z', 0, ..] => Err("xz"),
            [b'P', b'K', 3, 4, ..] => Err("zip"),
            _ => Ok(None),
        }
    }

    /// What every frame or member with text begins with.
    #[must_use]
    pub fn magic(self) -> &'static [u8] {
        match self {
            Self::Zstd => &[0x28, 0xb5, 0x2f, 0xfd],
            Self::Gzip => &[0x1f, 0x8b, 0x08],
        }
    }
}

/// One frame or member that is being decompressed.
pub enum Frame<R: BufRead> {
    /// Of zstd.
    Zstd(Box<zstd::stream::read::Decoder<'static, R>>),
    /// Of gzip.
    Gzip(Box<flate2::bufread::GzDecoder<R>>),
}

impl<R: BufRead> Frame<R> {
    /// Begins with the next byte of `input`.
    ///
    /// # Errors
    /// If there is no memory to decompress with.
    pub fn begin(packing: Packing, input: R) -> io::Result<Self> {
        Ok(match packing {
            Packing::Zstd => Self::Zstd(Box::new(zstd::stream::read::Decoder::with_buffer(input)?.single_frame())),
            Packing::Gzip => Self::Gzip(Box::new(flate2::bufread::GzDecoder::new(input))),
        })
    }

    /// The input after the frame.
    pub fn end(self) -> R {
        match self {
            Self::Zstd(decoder) => decoder.finish(),
            Self::Gzip(decoder) => decoder.into_inner(),
        }
    }
}

impl<R: BufRead> Read for Frame<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Zstd(decoder) => decoder.read(buffer),
            Self::Gzip(decoder) => decoder.read(buffer),
        }
    }
}

impl<R: BufRead> std::fmt::Debug for Frame<R> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Frame").finish_non_exhaustive()
    }
}

/// Passes over the zeros with which tapes and block devices fill up a file; whether anything follows them.
///
/// # Errors
/// Those of `input`.
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
    /// Between frames.
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
