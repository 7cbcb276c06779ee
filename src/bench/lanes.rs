//! What the lanes of this machine can do alone: each always has as many batches as it holds, without dispatcher and policy.

use std::time::Duration;

use tandem_model::base::machine::{Class, PerClass};
use tandem_model::traffic::Mode;

use super::{Arguments, Measurement, input};
use crate::defaults::Bars;
use crate::failure::Failure;
use crate::profile::machine::start_node;
use tandem_report::number::rate;
use tandem_report::table::Table;

/// Queries of a batch on a CPU worker: as many as `combined` hands over at once.
const OF_A_WORKER: u32 = 8;
/// Length of a round, and of the warm-up.
const TIME: Duration = Duration::from_secs(2);

pub(super) fn measure(arguments: &Arguments) -> Result<(String, Vec<Measurement>), Failure> {
    let (index, queries) = input(arguments)?;
    let (count, mode) = (queries.len(), Mode::Or);
    let (mut node, gpu) = start_node(&index, queries, &[mode], &Bars::default())?;
    let most = node.model().most_queries(Class::GPU).min(count as u32);
    let batches = PerClass::from_fn(|class| if class.is_gpu() { most } else { OF_A_WORKER });
    node.warm_up(TIME)?;
    let mut best = PerClass::<f64>::default();
    for _ in 0..arguments.rounds {
        let found = node.flood(&batches, TIME)?;
        best = PerClass::from_fn(|class| best[class].max(found[class]));
    }
    let mut table = Table::new(["class", "lanes", "queries at once", "queries/s"]);
    let mut rows = Vec::new();
    for class in node.machine().classes() {
        let lanes = node.machine().count(class);
        table.row([class.to_string(), lanes.to_string(), batches[class].to_string(), rate(best[class], 0.0)]);
        let name = format!("{class}, {lanes} lanes, {} at once", batches[class]);
        rows.push(Measurement { part: "lanes", name, metric: "queries_per_s", value: best[class] });
    }
    let named =
        |path: Option<&std::path::PathBuf>| path.map_or(String::from("synthetic"), |path| path.display().to_string());
    let title = format!(
        "lanes alone, all at once: {count} queries of {}, index {}, mode {mode}, k {}{}",
        named(arguments.log.queries.as_ref()),
        named(arguments.log.index.as_ref()),
        tandem_drive::profile::ProfileOptions::default().k,
        gpu.map_or(String::new(), |gpu| format!(", {gpu}"))
    );
    Ok((format!("{title}\n{table}"), rows))
}
