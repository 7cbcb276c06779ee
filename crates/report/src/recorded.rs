//! Tables of a record: errors of recorded and of today's predictions, and of a rehearsal and linear scaling.

use std::collections::BTreeMap;

use tandem_drive::lab::record::{Ablated, Compared, Quantity, STEADY, median};
use tandem_model::base::stats::significant;
use tandem_model::files::Digits;

use crate::number::counted;
use crate::table::Table;

type Error = fn(&Compared) -> Option<Digits<4>>;

/// The errors of each machine, then of all machines and of those that were steady, by what is predicted.
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
        "Errors as medians of their sizes. `speed`: by how much all service times would have to differ; `run before`: the same if \
         the speed of the run before is assumed; `covered`: the share of 90 % intervals that contain the measurement.\n\n{}\n\
         whether a run holds was predicted rightly for {right} of {}\n",
        blocks.join("\n"),
        counted(held.len(), "run", "runs")
    )
}

fn errors(rows: &[&Compared]) -> Table {
    let columns =
        ["of", "limit", "cells", "now", "worst", "speed", "run before", "rehearsal", "linear", "covered", "half-width"];
    let mut table = Table::new(columns);
    let kinds = [Quantity::Capacity, Quantity::Mean, Quantity::P99];
    for (what, limit) in kinds.into_iter().flat_map(|what| [(what, "load"), (what, "pauses")]) {
        let of_kind: Vec<&&Compared> = rows.iter().filter(|one| one.what == what && one.limit == limit).collect();
        if of_kind.is_empty() {
            continue;
        }
        let percent = |share: Option<f64>| share.map_or(String::from("-"), |share| format!("{:.1} %", 100.0 * share));
        let typical = |of: Error| percent(median(of_kind.iter().filter_map(|one| of(one)).map(|error| error.0.abs())));
        let worst = of_kind.iter().map(|one| one.error.0).max_by(|a, b| a.abs().total_cmp(&b.abs()));
        let inside = of_kind.iter().filter(|one| one.inside).count() as f64;
        table.row([
            what.name().to_owned(),
            limit.to_owned(),
            of_kind.len().to_string(),
            typical(|one| Some(one.error)),
            error_text(worst),
            typical(|one| one.speed_error),
            typical(|one| one.before_error),
            typical(|one| one.rehearsal_error),
            typical(|one| one.linear_error),
            format!("{:.0} %", 100.0 * inside / of_kind.len() as f64),
            percent(median(of_kind.iter().map(|one| one.half_width.0))),
        ]);
    }
    table
}

/// An error, in per cent up to 100 %, else the prediction as a multiple of the measurement.
fn error_text(error: Option<f64>) -> String {
    match error {
        None => String::from("-"),
        Some(error) if error > 1.0 => format!("{} times", significant(1.0 + error, 3)),
        Some(error) => format!("{:+.1} %", 100.0 * error),
    }
}

/// What predictions lose without each number of the machine profile.
#[must_use]
pub fn ablation_table(rows: &[Ablated]) -> String {
    let columns = ["without", "of", "cells", "with it", "without it", "worse", "better", "by chance"];
    let mut table = Table::new(columns).with_keys(2);
    let percent = |share: Digits<4>| format!("{:.1} %", 100.0 * share.0);
    for one in rows {
        table.row([
            one.without.clone(),
            one.what.name().to_owned(),
            one.cells.to_string(),
            percent(one.error_with),
            percent(one.error_without),
            one.worse.to_string(),
            one.better.to_string(),
            format!("{:.3}", one.chance.0),
        ]);
    }
    format!("Median errors, and cells that get worse and better:\n\n{table}")
}

/// The cells one by one: predictions with their intervals next to the measurement, and all errors.
pub fn cell_table(compared: &[Compared]) -> String {
    let columns = ["cell", "policy", "of", "measured", "now", "+-", "error", "recorded", "rehearsal", "linear"];
    let mut table = Table::new(columns).with_keys(3);
    for one in compared.iter().filter(|one| one.what != Quantity::Held) {
        let signed = |error: Option<Digits<4>>| error_text(error.map(|error| error.0));
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
