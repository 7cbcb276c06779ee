//! What `simulate` draws and prints.

use std::fmt::Write as _;

use crate::report::capacity::CapacityRow;
use crate::report::number;
use crate::report::plot::{LineChart, Point, Series};
use crate::report::summary::{Summary, SummaryRow};
use crate::report::table::Table;
use crate::sched::{BuiltIn, PolicyFactory, PolicyKind};
use crate::stats::mean_interval;

/// How sure the intervals of plots are.
const CONFIDENCE: f64 = 0.95;

/// Mean delay over the seeds and whether any query missed, for a policy at a rate.
fn delay_at(summaries: &[SummaryRow], policy: &str, rate_qps: f64) -> (f64, bool) {
    let rows = summaries.iter().filter(|row| row.policy == policy && row.rate_qps == rate_qps);
    let (sum, count, missed) = rows.fold((0.0, 0, 0), |(sum, count, missed), row| {
        (sum + row.summary.mean_ms, count + 1, missed + row.summary.missed)
    });
    (sum / f64::from(count), missed > 0)
}

/// The paper's Figure 7: average delay against arrival rate, one line a policy.
pub(super) fn delay_chart(
    summaries: &[SummaryRow],
    policies: &[BuiltIn],
    rates: &[f64],
    bound_qps: Option<f64>,
    deadline_ms: f64,
    what: String,
) -> LineChart {
    let line = |policy: &BuiltIn| {
        let point = |&rate_qps: &f64| {
            let (y, is_hollow) = delay_at(summaries, policy.name(), rate_qps);
            let rows = summaries.iter().filter(|row| row.policy == policy.name() && row.rate_qps == rate_qps);
            let means: Vec<f64> = rows.map(|row| row.summary.mean_ms).collect();
            let interval = mean_interval(&means, CONFIDENCE).map(|interval| (interval.low, interval.high));
            Point { x: rate_qps, y, is_hollow, interval }
        };
        let mut points: Vec<Point> = rates.iter().map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        // Each policy keeps its colour, whichever others are drawn.
        let colour = PolicyKind::ALL.iter().position(|&other| other == policy.kind);
        Series { name: policy.name().to_owned(), points, colour, ..Series::default() }
    };
    let seeds = summaries.iter().map(|row| row.seed).collect::<std::collections::BTreeSet<_>>().len();
    LineChart {
        title: String::from("Average delay against arrival rate"),
        subtitle: what,
        x_label: String::from("arrival rate (queries per second)"),
        y_label: String::from("average delay (ms)"),
        is_y_log: true,
        series: policies.iter().map(line).collect(),
        vertical: bound_qps.filter(|&bound| bound > 0.0).map(|bound| (bound, String::from("no scheduler beyond"))),
        note: Some(match seeds {
            0 | 1 => format!("hollow: a query missed its deadline of {deadline_ms} ms"),
            n => {
                format!("hollow: a query missed its deadline of {deadline_ms} ms; bars: 95 % intervals over {n} seeds")
            }
        }),
        ..LineChart::default()
    }
}

/// Percentiles of each policy's delays, at the highest of the rates below its first miss; means over the seeds.
fn percentiles(summaries: &[SummaryRow], policies: &[BuiltIn], rates: &[f64]) -> Table {
    let mut ascending = rates.to_vec();
    ascending.sort_by(f64::total_cmp);
    let mut table = Table::new(["policy", "qps", "mean", "p50", "p95", "p99", "max"]);
    for policy in policies {
        let good = ascending.iter().take_while(|&&rate_qps| !delay_at(summaries, policy.name(), rate_qps).1).last();
        let Some(&rate_qps) = good else { continue };
        let rows = || summaries.iter().filter(|row| row.policy == policy.name() && row.rate_qps == rate_qps);
        let mean = |of: fn(&Summary) -> f64| {
            let sum: f64 = rows().map(|row| of(&row.summary)).sum();
            number::text(sum / rows().count() as f64, 4)
        };
        table.row([
            policy.name().to_owned(),
            number::text(rate_qps, 6),
            mean(|s| s.mean_ms),
            mean(|s| s.p50_ms),
            mean(|s| s.p95_ms),
            mean(|s| s.p99_ms),
            mean(|s| s.max_ms),
        ]);
    }
    table
}

/// What a person reads: capacities, then delays.
pub(super) fn report(
    summaries: &[SummaryRow],
    capacities: &[CapacityRow],
    policies: &[BuiltIn],
    rates: &[f64],
) -> String {
    let mut text = String::from("Highest rate up to which no query misses its deadline:\n");
    let mut table = Table::new(["policy", "qps", "first miss at", "of any scheduler's", "flips"]);
    for row in capacities {
        let share = row.share_of_bound().map_or(String::from("-"), |share| format!("{:.1} %", share * 100.0));
        let high = row.high_qps.map_or(String::from("-"), |high| number::text(high, 5));
        table.row([row.policy.to_owned(), number::text(row.low_qps, 5), high, share, row.flips.to_string()]);
    }
    let _ = write!(text, "{table}");
    if capacities.iter().any(|row| row.high_qps.is_none()) {
        text.push_str(
            "first miss at -: at none of the rates tried; a run of more queries (--num-queries) would tell more\n",
        );
    }
    if capacities.iter().any(|row| row.flips > 1) {
        text.push_str("flips above 1: as rates rise misses come, go and come again, so the limit isn't sharp\n");
    }
    if let Some(row) = capacities.first() {
        let bound = row.bound_qps.map_or_else(
            || String::from("a run as short as this excludes no rate"),
            |qps| format!("no scheduler can exceed {} here", number::text(qps, 5)),
        );
        let region = number::optional(row.region_qps, 5);
        let _ = writeln!(text, "{bound}; none is stable in the long run above {region}");
    }
    text.push_str("\nAverage delay in ms (*: a query missed its deadline):\n");
    let mut table = Table::new(std::iter::once("qps").chain(policies.iter().map(|policy| policy.name())));
    for &rate_qps in rates {
        let delays = policies.iter().map(|&policy| {
            let (delay_ms, is_missed) = delay_at(summaries, policy.name(), rate_qps);
            format!("{}{}", number::text(delay_ms, 4), if is_missed { '*' } else { ' ' })
        });
        table.row(std::iter::once(number::text(rate_qps, 6)).chain(delays));
    }
    let _ = write!(text, "{table}");
    let table = percentiles(summaries, policies, rates);
    if !table.is_empty() {
        let _ = write!(text, "\nDelays in ms at the highest of these rates below a policy's first miss:\n{table}");
    }
    text
}
