//! Coverage of the 95 % intervals of simulated capacities, on queues whose capacity has a closed form.

use tandem_model::study::{ClosedForm, Coverage, RunLength};

use super::Measurement;
use crate::Failure;
use tandem_report::number::text;
use tandem_report::table::Table;

/// Number of seeds of each search, as by default.
const SEEDS: u64 = 10;

/// Searches the capacity of each queue `cases` times.
pub(super) fn measure(cases: u16) -> Result<(String, Vec<Measurement>), Failure> {
    let mut table =
        Table::new(["queue and deadline", "capacity q/s", "contained", "ends below", "mean error", "mean width"]);
    let (mut rows, mut covered) = (Vec::new(), 0);
    for form in ClosedForm::ALL {
        let found = form.coverage(usize::from(cases), SEEDS, RunLength::default())?;
        let Coverage { cases, covered: of_form, below, mean_error, mean_width } = found;
        covered += of_form;
        table.row([
            form.name(),
            text(form.capacity_qps(), 4),
            format!("{of_form} of {cases}"),
            below.to_string(),
            format!("{:+.2} %", 100.0 * mean_error),
            format!("{:.2} %", 100.0 * mean_width),
        ]);
        let row = |metric, value| Measurement { part: "intervals", name: form.name(), metric, value };
        rows.push(row("contained_share", of_form as f64 / cases as f64));
        rows.push(row("mean_error", mean_error));
        rows.push(row("mean_width", mean_width));
    }
    let all = usize::from(cases) * ClosedForm::ALL.len();
    let note =
        format!("95 % intervals of capacities, {SEEDS} seeds each: {covered} of {all} contain the truth\n{table}");
    Ok((note, rows))
}
