//! Tables of a record: errors of recorded and of today's predictions, and of a rehearsal and linear scaling.

use std::collections::BTreeMap;

use tandem_drive::lab::record::{Compared, Quantity, STEADY, median};
use tandem_model::files::Digits;

use crate::number::counted;
use crate::table::Table;

type Error = fn(&Compared) -> Option<Digits<4>>;

/// The errors of each machine, then of all machines and of those that were steady, by what is predicted.
#[must_use]
pub fn record_table(compared: &[Compared]) -> String {
    let mut machines: BTreeMap<String, Vec<&Compared>> = BTreeMap::new();
    for one in compared {
        let gpu = if one.gpu == "none" { String::new() } else { format!(", GPU: {}", one.gpu) };
        machines.entry(format!("{}{gpu}", one.machine)).or_default().push(one);
    }
    let block = |(name, rows): (&String, &Vec<&Compared>)| format!("{name}:\n{}", errors(rows));
    let mut blocks: Vec<String> = machines.iter().map(block).collect();
    if machines.len() > 1 {
        let all: Vec<&Compared> = compared.iter().collect();
        blocks.push(format!("All machines:\n{}", errors(&all)));
    }
    let steady: Vec<&Compared> = compared.iter().filter(|one| one.steady == "yes").collect();
    if !steady.is_empty() && steady.len() < compared.len() {
        let name = format!("Steady machines, whose fixed loop changed by less than {:.0} %", 100.0 * STEADY);
        blocks.push(format!("{name}:\n{}", errors(&steady)));
    }
    let held: Vec<&Compared> = compared.iter().filter(|one| one.what == Quantity::Held).collect();
    let right = held.iter().filter(|one| one.inside).count();
    format!(
        "Errors as medians of their sizes; `covered` is the share of 90 % intervals that contain the measurement.\n\n{}\n\
         whether a run holds was predicted rightly for {right} of {}\n",
        blocks.join("\n"),
        counted(held.len(), "run", "runs")
    )
}

fn errors(rows: &[&Compared]) -> Table {
    let columns = ["of", "cells", "recorded", "now", "worst", "rehearsal", "linear", "covered", "half-width"];
    let mut table = Table::new(columns);
    for what in [Quantity::Capacity, Quantity::Mean, Quantity::P99] {
        let of_kind: Vec<&&Compared> = rows.iter().filter(|one| one.what == what).collect();
        if of_kind.is_empty() {
            continue;
        }
        let percent = |share: Option<f64>| share.map_or(String::from("-"), |share| format!("{:.1} %", 100.0 * share));
        let typical = |of: Error| percent(median(of_kind.iter().filter_map(|one| of(one)).map(|error| error.0.abs())));
        let worst = of_kind.iter().map(|one| one.error.0).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let inside = of_kind.iter().filter(|one| one.inside).count() as f64;
        table.row([
            what.name().to_owned(),
            of_kind.len().to_string(),
            typical(|one| one.recorded_error),
            typical(|one| Some(one.error)),
            worst.map_or(String::from("-"), |error| format!("{:+.1} %", 100.0 * error)),
            typical(|one| one.rehearsal_error),
            typical(|one| one.linear_error),
            format!("{:.0} %", 100.0 * inside / of_kind.len() as f64),
            percent(median(of_kind.iter().map(|one| one.half_width.0))),
        ]);
    }
    table
}

/// The cells one by one: predictions with their intervals next to the measurement, and all errors.
#[must_use]
pub fn cell_table(compared: &[Compared]) -> String {
    let columns = ["cell", "policy", "of", "measured", "now", "+-", "error", "recorded", "rehearsal", "linear"];
    let mut table = Table::new(columns).with_keys(3);
    for one in compared.iter().filter(|one| one.what != Quantity::Held) {
        let signed =
            |error: Option<Digits<4>>| error.map_or(String::from("-"), |error| format!("{:+.1} %", 100.0 * error.0));
        let outside = if one.inside { "" } else { " *" };
        table.row([
            one.cell.clone(),
            one.policy.clone(),
            one.what.name().to_owned(),
            Digits::<4>(one.measured.0).to_string(),
            Digits::<4>(one.predicted.0).to_string(),
            format!("{:.0} %", 100.0 * one.half_width.0),
            format!("{}{outside}", signed(Some(one.error))),
            signed(one.recorded_error),
            signed(one.rehearsal_error),
            signed(one.linear_error),
        ]);
    }
    format!("{table}* the measurement is outside of the 90 % interval\n")
}
