//! Common options of commands that make an index.

use std::path::Path;

use tandem_engine::index::{Bm25, Idf};

use crate::failure::Failure;
use crate::options::names::choice;

/// The parameters of BM25, for the score bounds that the index stores.
#[derive(Debug, clap::Args)]
pub(super) struct Bm25Arguments {
    /// BM25: saturation of the term frequency, 0 to 1000
    #[arg(long, default_value_t = Bm25::default().k1)]
    k1: f32,
    /// BM25: share of the length normalisation, 0 to 1
    #[arg(long, default_value_t = Bm25::default().b)]
    b: f32,
    /// BM25: form of the inverse document frequency
    #[arg(long, value_parser = choice::<Idf>(), default_value = Idf::Plus.name())]
    idf: Idf,
}

impl Bm25Arguments {
    pub(super) fn checked(&self) -> Result<Bm25, Failure> {
        let bm25 = Bm25 { k1: self.k1, b: self.b, idf: self.idf };
        bm25.check().map_err(|what| Failure::input(format!("--{what}")))?;
        Ok(bm25)
    }
}

/// Reads a number of bytes: `2GiB`, `500MB`, `1073741824`.
pub(crate) fn bytes(text: &str) -> Result<u64, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "kb" => 1_000,
        "mb" => 1_000_000,
        "gb" => 1_000_000_000,
        "tb" => 1_000_000_000_000,
        "k" | "kib" => 1 << 10,
        "m" | "mib" => 1 << 20,
        "g" | "gib" => 1 << 30,
        "t" | "tib" => 1 << 40,
        other => return Err(format!("unit {other:?}, expected one of B, kB, MB, GB, TB, KiB, MiB, GiB, TiB")),
    };
    let number: f64 =
        digits.trim_end().parse().map_err(|_| String::from("expected a number of bytes, such as 2GiB"))?;
    let bytes = number * unit as f64;
    if (0.0..1e18).contains(&bytes) { Ok(bytes as u64) } else { Err(String::from("expected 0 to 1e18 bytes")) }
}

/// Whether the name is that of a file in the Common Index File Format.
pub(super) fn is_ciff(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    name.ends_with(".ciff") || name.ends_with(".ciff.gz")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_read_as_people_write_them() {
        let read = ["2GiB", "1.5mb", "7", "0", "3k"].map(|text| bytes(text).unwrap());
        assert_eq!(read, [2 << 30, 1_500_000, 7, 0, 3 << 10]);
        for text in ["", "GiB", "-1", "1e30", "5 parsecs", "nan"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
