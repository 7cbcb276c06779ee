//! How fast lists are decoded, by the width of their gaps.

use super::{REPEATS, Row, share_of_copy_rate};
use crate::cli::Failure;
use crate::exec::gpu::{Consumer, DeviceLimits, ListDecoder};
use crate::quantile::median;
use crate::random::Random;
use crate::report::table::Table;

/// The width that the targets are for.
const TARGET_BITS: u32 = 8;
/// Postings of the list that is decoded, and how often it lies in device memory: 537 M in all.
const LEN: usize = 1 << 20;
const COPIES: usize = 512;

/// A list whose gaps are uniform below 2^bits, its documents modulo 2^32.
fn list(bits: u32) -> Vec<u32> {
    let mut random = Random::new(u64::from(bits), 0);
    let mut doc = u32::MAX;
    let next = |_| {
        let gap = random.bits() as u32 & u32::MAX >> (32 - bits);
        doc = doc.wrapping_add(gap.max(1));
        doc
    };
    (0..LEN).map(next).collect()
}

/// Adds the rows for the width of the targets, and returns a table for all widths.
pub(super) fn measure(limits: &DeviceLimits, rows: &mut Vec<Row>) -> Result<Table, Failure> {
    let mut table = Table::new([
        "bits a gap",
        "bits a posting",
        "stored, G ints/s",
        "of the copy rate",
        "added up, G ints/s",
        "of it",
    ]);
    for bits in 1..=32 {
        let docs = list(bits);
        let mut decoder = ListDecoder::upload(std::slice::from_ref(&docs), COPIES)?;
        let postings = decoder.num_postings();
        let mut cells =
            vec![bits.to_string(), format!("{:.1}", 8.0 * decoder.bytes(Consumer::Sum) as f64 / postings as f64)];
        for consumer in [Consumer::Store, Consumer::Sum] {
            let us = median(decoder.time_us(consumer, REPEATS)?);
            check(&decoder, consumer, &docs)?;
            let rate = postings as f64 / us / 1e3;
            let share = share_of_copy_rate(limits, decoder.bytes(consumer), us);
            cells.extend([format!("{rate:.0}"), format!("{:.0} %", 100.0 * share)]);
            let (what, target) = match consumer {
                Consumer::Store => ("decode and prefix sum, stored", (700.0, 774.0)),
                Consumer::Sum => ("decode and prefix sum, added up", (1700.0, 3000.0)),
            };
            let row = Row::new(format!("{what}, b = {bits}"), "G ints/s", rate).of(share, "copy rate");
            if bits == TARGET_BITS {
                rows.push(row.with_target(target.0, target.1));
            } else if bits.is_power_of_two() {
                rows.push(row);
            }
        }
        table.row(cells);
    }
    Ok(table)
}

/// Checks that the GPU decoded what was packed.
fn check(decoder: &ListDecoder, consumer: Consumer, docs: &[u32]) -> Result<(), Failure> {
    let is_right = match consumer {
        Consumer::Store => decoder.docs(0)? == docs,
        Consumer::Sum => {
            let sum = docs.iter().fold(0, |sum: u32, &doc| sum.wrapping_add(doc));
            decoder.sum()? == sum.wrapping_mul(COPIES as u32)
        }
    };
    if is_right { Ok(()) } else { Err(Failure::failed("the GPU decoded a list wrongly; this is a bug".to_owned())) }
}
