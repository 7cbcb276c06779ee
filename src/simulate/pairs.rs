//! `tandem simulate --compare A,B`: two policies on the same arrivals and queries.

use serde::{Deserialize, Serialize};
use tandem_model::files::{Digits, Record, write_csv};
use tandem_model::study::{Comparison, Difference, in_pieces, paired};

use super::simulation::Simulation;
use crate::defaults::Bars;
use crate::failure::Failure;
use crate::output::{say, say_screen};
use crate::result_writer::ResultWriter;
use tandem_report::number::{counted, text};
use tandem_report::table::Table;

/// A row of `pairs.csv`.
#[derive(Debug, Serialize, Deserialize)]
struct PairRow {
    what: String,
    first: String,
    second: String,
    rate_qps: Option<Digits<6>>,
    first_value: Digits<6>,
    second_value: Digits<6>,
    difference: Digits<4>,
    low: Option<Digits<4>>,
    high: Option<Digits<4>>,
    seeds: usize,
}

impl Record for PairRow {}

/// Plays the pair, and prints and writes its differences.
pub(super) fn run(simulation: &Simulation<'_>) -> Result<(), Failure> {
    let Comparison { experiment, policies, objective, length, rates_qps, .. } = &simulation.comparison;
    let [first, second] = policies.as_slice() else {
        return Err(Failure::input("--compare: expected two different policies, as in cpu-only,stealing-adaptive"));
    };
    let rate_qps = match rates_qps.as_deref() {
        None => None,
        Some([rate_qps]) => Some(*rate_qps),
        Some(_) => return Err(Failure::input("--compare: expected at most one --rate")),
    };
    let headed = simulation.say_title();
    let pair = [first.as_ref(), second.as_ref()];
    let pieces = 3 * experiment.arrivals.len();
    let found = in_pieces(&Bars::quiet(), "pairs", pieces, |done| {
        paired(experiment, (*objective, *length), pair, rate_qps, done)
    })?;
    let names = pair.map(|policy| policy.name().to_owned());
    let row = |of: &Difference| PairRow {
        what: of.what.to_owned(),
        first: names[0].clone(),
        second: names[1].clone(),
        rate_qps: of.rate_qps.map(Digits),
        first_value: Digits(of.means[0]),
        second_value: Digits(of.means[1]),
        difference: Digits(of.share),
        low: of.interval.map(|(low, _)| Digits(low)),
        high: of.interval.map(|(_, high)| Digits(high)),
        seeds: of.seeds,
    };
    let path = simulation.arguments.out.join("pairs.csv");
    let mut kept = ResultWriter::new();
    kept.rows("pairs", &path, write_csv(&path, &simulation.provenance(), found.iter().map(row)));
    let printed = say_screen(&table(&names, &found), "the folder of results");
    let named = say(&format!("\n{}\n", kept.in_words()));
    kept.finish().and(headed).and(printed).and(named)
}

fn table([first, second]: &[String; 2], found: &[Difference]) -> String {
    let rate = found.iter().find_map(|of| of.rate_qps).map_or(String::new(), |qps| format!(" at {} q/s", text(qps, 4)));
    let seeds = found.first().map_or(0, |of| of.seeds);
    let mut table = Table::new(["", first.as_str(), second.as_str(), "difference", "95 % interval", ""]);
    let percent = |share: f64| format!("{:+.1} %", 100.0 * share);
    for of in found {
        let interval = of
            .interval
            .map_or(String::from("one seed"), |(low, high)| format!("{} to {}", percent(low), percent(high)));
        let verdict = if of.is_decided() { "decided" } else { "not decided" };
        let [one, other] = of.means.map(|value| text(value, 4));
        table.row([of.what.to_owned(), one, other, percent(of.share), interval, verdict.to_owned()]);
    }
    format!(
        "{second} against {first} on the same arrivals and queries, {}; delays{rate}:\n{table}",
        counted(seeds, "seed", "seeds")
    )
}
