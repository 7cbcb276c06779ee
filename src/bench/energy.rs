//! Energy per query on the GPU, by the device's counter: single queries and batches, at several loads.

use tandem_drive::lab::{HostInfo, LabError, POWER_BATCHES, gpu_watts, idle_watts};
use tandem_model::traffic::Mode;

use super::{Arguments, Measurement, input};
use crate::Failure;
use crate::defaults::Bars;
use crate::profile::machine::start_node;
use tandem_report::table::Table;

/// Loads, as multiples of the predicted capacity with batches of a size. The last load leaves no pause.
const LOADS: [f64; 5] = [0.2, 0.4, 0.6, 0.8, 2.5];
/// Number of measurements of each size and load.
const REPEATS: usize = 2;

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, queries) = input(arguments)?;
    if HostInfo::detect().gpus == 0 {
        return Ok((String::from("energy: skipped, because this machine has no GPU\n"), Vec::new()));
    }
    let (mut node, name) = start_node(&index, queries, &[Mode::Or], &Bars::default())?;
    let Some(idle) = idle_watts(&node) else { return Ok((without_counter(), Vec::new())) };
    let title = format!("energy: {}, {idle:.0} W idle", name.unwrap_or_default());
    all(&title, |batch, load| gpu_watts(&mut node, 1, batch, load))
}

fn without_counter() -> String {
    String::from("energy: skipped, because the GPU has no energy counter\n")
}

/// Measures every size at every load. `watts` gives mean power and joules per query, or `None` without a counter.
fn all(
    title: &str,
    mut watts: impl FnMut(usize, f64) -> Result<Option<(f64, f64)>, LabError>,
) -> Result<(String, Vec<Measurement>), Failure> {
    let mut table = Table::new(["queries at once", "load", "mJ/query", "repeats differ by", "watts"]);
    let mut rows = Vec::new();
    for batch in POWER_BATCHES {
        for load in LOADS {
            let found: Vec<Option<(f64, f64)>> = (0..REPEATS).map(|_| watts(batch, load)).collect::<Result<_, _>>()?;
            let Some(found) = found.into_iter().collect::<Option<Vec<(f64, f64)>>>() else {
                return Ok((without_counter(), Vec::new()));
            };
            let mean = |of: fn(&(f64, f64)) -> f64| found.iter().map(of).sum::<f64>() / REPEATS as f64;
            let mj_per_query = 1e3 * mean(|one| one.1);
            let (low, high) =
                found.iter().fold((f64::MAX, 0.0_f64), |(low, high), one| (low.min(one.1), high.max(one.1)));
            let differ = 1e3 * (high - low) / mj_per_query;
            let shown = if load > 1.0 { String::from("no pause") } else { format!("{load}") };
            let name = format!("batches of {batch}, load {shown}");
            let cells =
                [format!("{mj_per_query:.4}"), format!("{:.1} %", 100.0 * differ), format!("{:.0}", mean(|one| one.0))];
            table.row([batch.to_string(), shown].into_iter().chain(cells));
            let row = |metric, value| Measurement { part: "energy", name: name.clone(), metric, value };
            rows.extend([
                row("mj_per_query", mj_per_query),
                row("repeats_differ", differ),
                row("watts", mean(|one| one.0)),
            ]);
        }
    }
    Ok((format!("{title}\n{table}"), rows))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_energy_counters_leave_cells_empty() {
        let mut run = 0;
        let (text, rows) = all("energy: a GPU", |batch, load| {
            run += 1;
            Ok(Some((100.0 * load, if run % 2 == 0 { 0.9 } else { 1.1 } / batch as f64)))
        })
        .unwrap();
        assert_eq!(
            (run, rows.len()),
            (POWER_BATCHES.len() * LOADS.len() * REPEATS, 3 * POWER_BATCHES.len() * LOADS.len())
        );
        let of =
            |metric: &str| rows.iter().filter(|row| row.metric == metric).map(|row| row.value).collect::<Vec<f64>>();
        assert!((of("mj_per_query")[0] - 1000.0).abs() < 1e-9 && (of("mj_per_query")[5] - 62.5).abs() < 1e-9, "{text}");
        assert!(of("repeats_differ").iter().all(|share| (share - 0.2).abs() < 1e-9), "{text}");
        let (text, rows) = all("", |batch, _| Ok((batch < 256).then_some((1.0, 1.0)))).unwrap();
        assert!(rows.is_empty() && text.contains("no energy counter"), "{text}");
    }
}
