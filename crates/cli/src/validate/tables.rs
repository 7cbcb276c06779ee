//! What a person reads of a validation: predicted beside measured.

use tandem_core::base::machine::Class;
use tandem_core::base::time::Nanos;
use tandem_core::cost::{ModelFile, Workload};
use tandem_core::lab::{Compared, Criterion, ValidationCapacityRow, ValidationRow};
use tandem_report::compared::validity_table;
use tandem_report::number::text;
use tandem_report::table::{Table, fitted};

/// Cost models, one line a class and mode: how wrong they are on queries that they have not seen.
pub(super) fn models(fitted: &ModelFile, workload: &Workload, folds: usize) -> String {
    let mut table = Table::grouped([
        ("", &["kind", "mode", "queries", "mean us"][..]),
        ("error", &["mean", "median", "p95"]),
        ("mean error of", &["always the mean cost"]),
    ]);
    let percent = |share: f64| format!("{:.1} %", 100.0 * share);
    for model in fitted.models() {
        let Some(e) = &model.evaluation else { continue };
        let times = workload.rows.iter().filter_map(|row| row.measured[model.kind].map(|m| m.median_us));
        let mean_us = times.sum::<f64>() / e.samples as f64;
        table.row([
            model.kind.to_string(),
            model.mode.to_string(),
            e.samples.to_string(),
            format!("{mean_us:.1}"),
            percent(e.mean_relative_error),
            percent(e.median),
            percent(e.p95),
            percent(e.baseline_mean_relative_error),
        ]);
    }
    format!(
        "Cost models: boosted trees on what the index knows of a query; {folds}-fold cross-validation, so each query is\n\
         estimated by a model that has not seen it:\n{table}"
    )
}

/// Delays, one line a policy and rate.
pub(super) fn delays(rows: &[ValidationRow]) -> String {
    let both = &["sim", "live"][..];
    let groups = [
        ("", &["policy", "rate q/s"][..]),
        ("mean ms", both),
        ("p99 ms", both),
        ("late", both),
        ("", &["allowed", "live", "gpu"]),
        ("p50 ms", both),
        ("p95 ms", both),
    ];
    let mut table = Table::grouped(groups).with_keys(2);
    for row in rows {
        table.row([
            row.policy.to_owned(),
            format!("{:.0}", row.rate_qps),
            text(row.predicted.mean_ms, 3),
            text(row.measured.mean_ms, 3),
            text(row.predicted.p99_ms, 3),
            text(row.measured.p99_ms, 3),
            row.predicted_verdict.late.to_string(),
            row.verdict.late.to_string(),
            row.verdict.allowed.to_string(),
            if row.passed() { String::from("held") } else { String::from("missed") },
            row.gpu.to_owned(),
            text(row.predicted.p50_ms, 3),
            text(row.measured.p50_ms, 3),
            text(row.predicted.p95_ms, 3),
            text(row.measured.p95_ms, 3),
        ]);
    }
    format!("Delays, simulated and live, with the same arrivals and queries; and how many were late:\n{table}")
}

/// Where to trust predictions, and by what rule runs count.
pub(super) fn validity(compared: &[Compared], runs: u32) -> String {
    let rule = format!(
        "Delays at shares of the predicted capacity, beside the median of {runs} live runs of the same arrivals. A run does \
         not count, and is made again, if the hypervisor had the cores for more than 1 % of their time, other processes \
         for more than 5 %, 1 % of the queries were released late by more than 1 % of the deadline, or backlogs right before \
         and after took times more than 10 % apart. Spread: greatest less least, over the median; cpu busy: points."
    );
    format!("{}\n{}", fitted(&rule), validity_table(compared))
}

/// Capacities, one line a policy, and what the columns mean.
pub(super) fn capacities(rows: &[ValidationCapacityRow], criterion: &Criterion, seconds: f64) -> String {
    let mut table = Table::grouped([
        ("", &["policy"][..]),
        ("capacity, q/s", &["predicted", "measured", "error", "fails at"]),
        ("", &["gpu"]),
        ("cost while serving", &["cpu", "gpu"]),
        ("predicted from costs", &["alone", "backlogs", "in hindsight"]),
    ]);
    // Rates are so high that some runs have to end earlier.
    let is_cut = |row: &ValidationCapacityRow| (row.queries as f64) < 0.9 * seconds * row.predicted_qps;
    let length = if rows.iter().any(is_cut) {
        format!("{seconds} s, or {} queries,", rows.iter().map(|row| row.queries).max().unwrap_or(0))
    } else {
        format!("{seconds} s ({:.0} x {} ms)", seconds / criterion.limit.as_secs(), criterion.limit.as_ms())
    };
    let rate = |rate_qps: f64| format!("{rate_qps:.0}");
    let rate_if_any = |rate_qps: Option<f64>| rate_qps.map_or_else(|| "-".to_owned(), rate);
    for row in rows {
        table.row([
            row.policy.to_owned(),
            rate(row.predicted_qps),
            rate(row.measured_qps),
            if row.measured_qps > 0.0 { format!("{:+.1} %", 100.0 * row.error()) } else { "-".to_owned() },
            rate_if_any(row.measured_high_qps),
            row.gpu.to_owned(),
            cost_while_serving(row, Class::CPU),
            cost_while_serving(row, Class::GPU),
            rate_if_any(row.profiled_qps),
            rate_if_any(row.backlog_qps),
            rate_if_any(row.hindsight_qps),
        ]);
    }
    let mut meanings = Table::new(["column", "means"]);
    for (column, meaning) in MEANINGS {
        meanings.row([column, meaning]);
    }
    let title = format!("Capacity: the highest rate up to which runs of {length} keep {criterion}, and don't grow.");
    format!("{}\n{table}\n{meanings}", fitted(&title))
}

/// What the columns of capacities mean.
const MEANINGS: [(&str, &str); 5] = [
    ("fails at", "the lowest rate at which a live run did not"),
    (
        "cost while serving",
        "so many times what a query takes alone, and so much for its way to the worker and back: found by serving backlogs of \
         other queries, right before runs near the capacity",
    ),
    ("backlogs", "the prediction with that: a check of the machine file, or without one what predictions reckon with"),
    ("alone", "the prediction if queries cost what they take alone"),
    (
        "in hindsight",
        "the prediction if they cost what they took in the live run at the measured capacity: an error that is left then is \
         the simulator's own",
    ),
];

/// What a policy's queries take while others are served, from what they take alone; `-` where it uses no such processor.
fn cost_while_serving(row: &ValidationCapacityRow, kind: Class) -> String {
    if row.handoff[kind] == Nanos::ZERO {
        return "-".to_owned();
    }
    format!("{:.2} x + {:.1} us", row.slowdown[kind], row.handoff[kind].as_us())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_core::base::machine::PerClass;
    use tandem_core::lab::Objective;

    #[test]
    fn the_capacities_fit_a_terminal_of_80_columns() {
        let criterion = Objective::default().within(Nanos::from_ms(50.0));
        let row = ValidationCapacityRow {
            policy: "stealing".to_owned(),
            criterion,
            predicted_qps: 1_123_456.0,
            measured_qps: 1_123_456.0,
            measured_high_qps: Some(1_123_456.0),
            queries: 1_000_000,
            gpu: "replay",
            slowdown: PerClass::two(12.345, 1.0),
            handoff: PerClass::two(Nanos(1_234_567), Nanos(12_345)),
            profiled_qps: Some(1_123_456.0),
            backlog_qps: Some(1_123_456.0),
            hindsight_qps: None,
        };
        let printed = capacities(&[row], &criterion, 1.5);
        let widest = printed.lines().map(|line| line.chars().count()).max();
        assert!(widest <= Some(80), "{widest:?}:\n{printed}");
    }
}
