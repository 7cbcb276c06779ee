//! How many reads are far with a part of an index near, by what decides what lies there; and what batches share of their reads.
//! Counted on the host: no GPU is asked.

use super::{Arguments, Measurement, input, learned_from};
use crate::cache::OnlineOptions;
use crate::cli::Failure;
use crate::exec::{DeviceRows, learned_reads, read_rates};
use crate::measure::{Gathers, Residency, count_gathers, count_residency};
use crate::query::Mode;
use crate::report::table::Table;

/// Shares of all pages that are near.
const NEAR_SHARES: [f64; 5] = [0.05, 0.1, 0.2, 0.4, 0.6];
/// Shares of pages that are near where what batches share is counted.
const GATHER_SHARES: [f64; 2] = [0.0, 0.4];
const MODES: [Mode; 2] = [Mode::Or, Mode::And];
const SIZES: [usize; 3] = [256, 1024, 4096];
const K: usize = 10;

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, mut queries) = input(arguments)?;
    let log = learned_from(arguments, &index, &mut queries)?;
    let rows = DeviceRows::new(&index);
    let options = OnlineOptions::of_epochs(arguments.gpu_memory_epoch);
    let rates = read_rates(&index, &log);
    let residency = count_residency(&index, (&rows, &rates), &log, &queries, &NEAR_SHARES, options, 1);
    let order = learned_reads(&log, &rates).order(&rows.list_sizes(&index));
    let mut gathers = Vec::new();
    for mode in MODES {
        for share in GATHER_SHARES {
            let found = count_gathers(&index, &rows, (&order, share), &queries, mode, K, &SIZES)?;
            gathers.extend(found.into_iter().map(|row| (mode, share, row)));
        }
    }
    let text = format!(
        "{} queries counted, {} others learned from, epochs of {}\n{}\nwhat batches read far, each block or piece once if it is gathered\n{}",
        queries.len(),
        log.len(),
        arguments.gpu_memory_epoch,
        residency_table(&residency),
        gathers_table(&gathers),
    );
    let of_gathers = gathers.iter().flat_map(|(mode, share, row)| of_gathers(*mode, *share, row));
    Ok((text, residency.iter().flat_map(of_residency).chain(of_gathers).collect()))
}

fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// How many reads are far, by what is near.
fn residency_table(residency: &[Residency]) -> Table {
    let mut table = Table::new([
        "pages near",
        "far reads, learned",
        "online",
        "told",
        "last quarter, learned",
        "online",
        "pages moved",
        "epochs",
        "ms to decide",
    ])
    .with_keys(1);
    for row in residency {
        table.row([
            percent(row.near_share),
            percent(row.learned),
            percent(row.online),
            percent(row.told),
            percent(row.learned_last),
            percent(row.online_last),
            row.moved_pages.to_string(),
            row.epochs.to_string(),
            format!("{:.2}", row.decide_ms),
        ]);
    }
    table
}

/// What batches read far, by mode, share of pages near, and size.
fn gathers_table(gathers: &[(Mode, f64, Gathers)]) -> Table {
    let mut table = Table::new([
        "mode",
        "near",
        "batch",
        "reads",
        "MB of sectors",
        "blocks",
        "MB of blocks",
        "MB of pieces of 128",
        "blocks / sectors",
        "pieces / sectors",
    ])
    .with_keys(3);
    for (mode, share, row) in gathers {
        let mb = |bytes: f64| format!("{:.2}", bytes / 1e6);
        table.row([
            mode.to_string(),
            percent(*share),
            row.batch.to_string(),
            format!("{:.0}", row.reads),
            mb(row.read_bytes),
            format!("{:.0}", row.blocks),
            mb(row.block_bytes),
            mb(row.piece_bytes),
            format!("{:.2}", row.block_bytes / row.read_bytes),
            format!("{:.2}", row.piece_bytes / row.read_bytes),
        ]);
    }
    table
}

fn of_residency(row: &Residency) -> Vec<Measurement> {
    let shares = [
        ("learned", row.learned),
        ("online", row.online),
        ("told", row.told),
        ("learned, last quarter", row.learned_last),
        ("online, last quarter", row.online_last),
    ];
    let far = |(what, value): (&str, f64)| Measurement {
        part: "residency",
        name: format!("{:.0} % of pages near, {what}", 100.0 * row.near_share),
        metric: "far_share",
        value,
    };
    shares.map(far).into()
}

fn of_gathers(mode: Mode, share: f64, row: &Gathers) -> [Measurement; 3] {
    let bytes =
        [("sectors read", row.read_bytes), ("blocks once", row.block_bytes), ("pieces of 128 once", row.piece_bytes)];
    bytes.map(|(what, value)| Measurement {
        part: "residency",
        name: format!("{mode}, {:.0} % of pages near, batches of {}, {what}", 100.0 * share, row.batch),
        metric: "bytes",
        value,
    })
}
