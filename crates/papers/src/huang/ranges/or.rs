//! OR: every document of every list, the least first.

use super::cursor::{Cursor, END};
use super::search::Scan;
use crate::codec::CodecError;

/// Offers every document of the range that any list has.
pub(crate) fn scan(scan: &mut Scan<'_>) -> Result<(), CodecError> {
    loop {
        let doc = scan.cursors.iter().map(Cursor::doc).min().unwrap_or(END);
        if doc == END {
            return Ok(());
        }
        scan.take(doc)?;
    }
}
