//! AND: the shortest list proposes, the others confirm or propose a later document.

use super::cursor::END;
use super::search::Scan;
use crate::codec::CodecError;

/// Offers every document of the range that all lists have.
pub(crate) fn scan(scan: &mut Scan<'_>) -> Result<(), CodecError> {
    'proposals: loop {
        let doc = scan.cursors[0].doc();
        if doc == END {
            return Ok(());
        }
        for place in 1..scan.cursors.len() {
            scan.cursors[place].next_geq(doc)?;
            let found = scan.cursors[place].doc();
            if found == END {
                return Ok(());
            }
            if found > doc {
                scan.cursors[0].next_geq(found)?;
                continue 'proposals;
            }
        }
        scan.take(doc)?;
    }
}
