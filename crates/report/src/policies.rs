//! Comparisons of policies: tables, files and a figure of a [`Comparison`].
//!
//! `tandem simulate` uses them. [`compare`] does the same for other policies in one call.

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use super::capacity::{CapacityRow, write_capacities};
use super::faults::{FaultRow, write_faults};
use super::number;
use tandem_model::base::machine::Class;
use tandem_model::base::stats::Interval;

use super::figure::{LineChart, Point, Series, look_of};
use super::priorities::{PriorityRow, priority_table, write_priorities};
use super::row::row;
use super::summary::{Source, Summary, SummaryRow, write_summaries};
use super::table::{Table, fitted};
use tandem_model::base::stats::mean_interval;
use tandem_model::base::time::Nanos;
use tandem_model::cost::BatchLoad;
use tandem_model::files::{Digits, Provenance, write_csv};
use tandem_model::sched::PolicyFactory;
use tandem_model::sched::PolicyKind;
use tandem_model::sim::{Arrivals, Experiment};
use tandem_model::study::{
    Capacity, Comparison, Played, PolicyForecast, PolicyResults, Progress, QueryError, StudyError, Verdict,
};

const CONFIDENCE: f64 = 0.95;

row! {
    struct ForecastLine of (row: &PolicyForecast) with {
        forecast = &row.forecast;
    } {
        policy: String = row.policy.clone(),
        rate_qps: Digits<6> = Digits(row.rate_qps),
        predicted_mean_ms: Digits<6> = Digits(forecast.summary.mean_ms),
        predicted_mean_half_width: Digits<3> = Digits(forecast.mean_half_width),
        predicted_p99_ms: Digits<6> = Digits(forecast.summary.p99_ms),
        predicted_p99_half_width: Digits<3> = Digits(forecast.p99_half_width),
    }
}

/// Plays `comparison`, writes its files into `folder` and returns its tables, like `tandem simulate`. `subject`
/// describes the comparison.
///
/// If a policy does not suit this machine or breaks its contract, or a file can't be written.
pub fn compare(
    comparison: &Comparison,
    subject: &str,
    folder: &Path,
    progress: &dyn Progress,
) -> Result<String, StudyError> {
    let mut results = PolicyResults::default();
    comparison.play(&mut results, progress)?;
    let provenance = Provenance::new().with_command_and_machine().with("subject", subject);
    let mut files = Vec::new();
    for (_, written) in write(comparison, &results, folder, &provenance, Some(subject)) {
        files.extend(written?.into_iter().map(|file| file.display().to_string()));
    }
    let tables = tables(comparison, &results, true);
    Ok(fitted(&format!("{subject}\n\n{tables}\nwritten: {}\n", files.join(", "))))
}

/// Writes summary.csv, priorities.csv, forecast.csv, capacity.csv, faults.csv and the figure delay.svg into `folder`, if there are such
/// results. The figure needs an `origin`. Returns each result's name with its files. A failed
/// file does not prevent the others.
pub fn write(
    comparison: &Comparison,
    results: &PolicyResults,
    folder: &Path,
    provenance: &Provenance,
    origin: Option<&str>,
) -> Vec<(&'static str, io::Result<Vec<PathBuf>>)> {
    let summaries = summaries(results);
    let warnings = comparison.warnings(results).into_iter();
    let provenance = &warnings.fold(provenance.clone(), |all, warning| all.with("warning", warning));
    let mut written = Vec::new();
    let mut table = |name, write: &dyn Fn(&Path) -> io::Result<()>| {
        let path = folder.join(format!("{name}.csv"));
        written.push((name, write(&path).map(|()| vec![path])));
    };
    if !summaries.is_empty() {
        table("summary", &|path| write_summaries(path, provenance, &summaries));
    }
    let priorities = priorities(results);
    if !priorities.is_empty() {
        table("priorities", &|path| write_priorities(path, provenance, &priorities));
    }
    if !results.forecasts.is_empty() {
        table("forecast", &|path| write_csv(path, provenance, results.forecasts.iter().map(ForecastLine::of)));
    }
    if !results.capacities.is_empty() {
        let rows = results.capacities.iter().cloned().map(CapacityRow::simulated);
        let rows: Vec<CapacityRow> = rows.collect();
        table("capacity", &|path| write_capacities(path, provenance, &rows));
    }
    if !comparison.experiment.model.faults.faults.is_empty() && !summaries.is_empty() {
        let rows = results.played.iter().flat_map(|run| {
            run.faults.iter().map(|fault| FaultRow::of((run.policy.as_str(), run.rate_qps, run.seed), fault))
        });
        let rows: Vec<FaultRow> = rows.collect();
        table("faults", &|path| write_faults(path, provenance, &rows));
    }
    if let Some(origin) = origin.filter(|_| !summaries.is_empty()) {
        let stem = folder.join("delay");
        let chart = delay_chart(comparison, &summaries, results, origin)
            .with_best("those without a miss up to the highest rates", Series::highest_kept);
        written.push(("delay", chart.write(&stem).map(|path| vec![path])));
    }
    written
}

/// The tables, with notes on missing results. Without `all`, they are short: capacities, and delays at one rate per policy.
pub fn tables(comparison: &Comparison, results: &PolicyResults, all: bool) -> String {
    let summaries = summaries(results);
    let mut text: String =
        comparison.warnings(results).iter().map(|warning| format!("warning: {warning}\n\n")).collect();
    if !results.capacities.is_empty() {
        text.push_str(&capacity_table(&results.capacities, comparison.experiment.priorities().is_some(), all));
        text.extend(batch_line(comparison));
    }
    text.push_str(&gains(comparison, results));
    text.extend(results.notes.iter().map(|note| format!("{note}\n")));
    if !summaries.is_empty() {
        text.push_str(&delay_tables(&summaries, comparison, results, all));
        text.push_str(&priority_table(&priorities(results)));
        text.push_str(&energy_line(&summaries, comparison, results));
        text.push_str(&loss_table(&summaries, !comparison.experiment.model.faults.faults.is_empty()));
    }
    text
}

fn summaries(results: &PolicyResults) -> Vec<SummaryRow> {
    results.played.iter().map(|run| SummaryRow::of(Source::Simulated, run.clone())).collect()
}

fn priorities(results: &PolicyResults) -> Vec<PriorityRow> {
    let of_run = |run: &Played| {
        PriorityRow::of_run(Source::Simulated, (run.policy.as_str(), run.rate_qps, run.seed), &run.priorities)
    };
    results.played.iter().flat_map(of_run).collect()
}

/// Mean delay over the seeds and whether any query missed, for a policy at a rate, or `None` if it was not played.
fn delay_at(summaries: &[SummaryRow], policy: &str, rate_qps: f64) -> Option<(f64, bool)> {
    let rows = summaries.iter().filter(|row| row.policy == policy && row.rate_qps == rate_qps);
    let (sum, count, missed) = rows.fold((0.0, 0, 0), |(sum, count, missed), row| {
        (sum + row.summary.mean_ms, count + 1, missed + row.summary.missed)
    });
    (count > 0).then(|| (sum / f64::from(count), missed > 0))
}

/// The paper's Figure 7: average delay by arrival rate, one line per policy.
fn delay_chart(comparison: &Comparison, summaries: &[SummaryRow], results: &PolicyResults, origin: &str) -> LineChart {
    let deadline_ms = comparison.experiment.deadline.as_ms();
    let line = |policy: &dyn PolicyFactory| {
        let stable_qps = comparison.stable_qps(results, policy.name());
        let point = |&rate_qps: &f64| {
            let (y, is_missed) = delay_at(summaries, policy.name(), rate_qps)?;
            let is_hollow = is_missed || rate_qps > stable_qps;
            let rows = summaries.iter().filter(|row| row.policy == policy.name() && row.rate_qps == rate_qps);
            let is_covered = rows.clone().all(|row| row.covered_share.is_none_or(|share| share >= 1.0));
            let means: Vec<f64> = rows.map(|row| row.summary.mean_ms).collect();
            let interval =
                mean_interval(&means, CONFIDENCE).filter(|_| is_covered).map(|interval| (interval.low, interval.high));
            Some(Point { x: rate_qps, y, is_hollow, interval })
        };
        let mut points: Vec<Point> = results.rates_qps.iter().filter_map(point).collect();
        points.sort_by(|a, b| a.x.total_cmp(&b.x));
        Series { name: policy.name().to_owned(), points, look: Some(look_of(policy.name())), ..Series::default() }
    };
    let seeds = summaries.iter().map(|row| row.seed).collect::<std::collections::BTreeSet<_>>().len();
    let bars = if seeds > 1 { format!("; bars: 95 % intervals over {seeds} seeds") } else { String::new() };
    LineChart {
        title: String::from("Average delay by arrival rate"),
        x_label: String::from("arrival rate (queries/s)"),
        y_label: String::from("average delay (ms)"),
        is_x_log: true,
        is_y_log: true,
        series: comparison.policies.iter().map(|policy| line(policy.as_ref())).collect(),
        vertical: Some(comparison.region_qps)
            .filter(|bound| bound.is_finite())
            .map(|bound| (bound, String::from("no scheduler beyond"))),
        note: format!("{origin}; hollow: not stable, or a query missed its deadline of {deadline_ms} ms{bars}"),
        ..LineChart::default()
    }
}

/// A capacity's interval, over seeds and over samples of queries, with the digits that are known.
pub fn interval_in_words(capacity: &Capacity) -> String {
    capacity
        .known_interval()
        .map_or_else(|| String::from("not known"), |interval| number::known_interval(interval.low, interval.high))
}

/// A capacity and the next higher rate, which failed, with the digits that are known and those that tell them apart.
fn rates_in_words(capacity: &Capacity) -> (String, String) {
    let half_width = capacity.known_interval().map_or(f64::NAN, |Interval { low, high, .. }| 0.5 * (high - low));
    match capacity.failing_qps {
        Some(failing_qps) => number::known_apart(capacity.qps, failing_qps, half_width),
        None => (number::known(capacity.qps, half_width), String::from("none")),
    }
}

/// `+-0.4 %`.
pub fn error_in_words(share: Option<f64>) -> String {
    share.map_or(String::from("-"), |share| format!("+-{} %", number::text(100.0 * share, 2)))
}

/// `70.9 %`, and its error from the sample of queries: `70.9+-1.2 %`.
fn busy(utilisation: Option<f64>, error: Option<QueryError>) -> String {
    let Some(utilisation) = utilisation.map(|share| 100.0 * share) else { return String::new() };
    match error {
        Some(QueryError { of_limit, .. }) => {
            format!("{}+-{} %", number::text(utilisation, 3), number::text(utilisation * of_limit, 2))
        }
        None => format!("{} %", number::text(utilisation, 3)),
    }
}

/// Capacities, one line per policy, and the meaning of the columns.
fn capacity_table(capacities: &[Capacity], has_priorities: bool, all: bool) -> String {
    let Some(first) = capacities.first() else { return String::new() };
    let kept = match has_priorities {
        true => format!("{} within the deadline of each priority", first.criterion.objective),
        false => first.criterion.to_string(),
    };
    let mut text = format!("Capacity: the highest rate that keeps {kept}, in queries per second:\n");
    let mut table = Table::new([
        "policy", "q/s", "interval", "fails at", "of limit", "busy", "p99", "p99.9", "longest", "late", "seeds",
        "queries",
    ]);
    for found in capacities {
        let at_least = if found.is_cut_off { ">= " } else { "" };
        let if_all = |cell: String| if all { cell } else { String::new() };
        let (rate, failing) = rates_in_words(found);
        let at_rate = |of: &dyn Fn(&Verdict) -> String| found.verdict.as_ref().map_or(String::new(), of);
        let percent = |share: f64| format!("{} %", number::text(100.0 * share, 3));
        let ms = |time: Nanos| number::text(time.as_ms(), 3);
        table.row([
            found.policy.clone(),
            format!("{at_least}{rate}"),
            interval_in_words(found),
            failing,
            format!("{:.1} %", 100.0 * found.share_of_bound()),
            at_rate(&|verdict| busy(verdict.utilisation, found.query_error)),
            at_rate(&|verdict| ms(verdict.p99)),
            at_rate(&|verdict| {
                format!("{}{}", ms(verdict.p999), if found.criterion.tail_is_of_idle() { "*" } else { "" })
            }),
            at_rate(&|verdict| ms(verdict.longest)),
            at_rate(&|verdict| percent(verdict.late_share())),
            if_all(error_in_words(found.seeds_error())),
            if_all(error_in_words(found.query_error.map(|error| error.share))),
        ]);
    }
    let _ = write!(text, "{}", table.without_empty_columns());
    text.push_str(&meanings(capacities, all));
    if all {
        text.push_str(&own_limits(capacities));
        text.push_str(&lengths(capacities));
    }
    text
}

/// Why policies with batches sustain more: the time of a batch and that of a query alone.
fn batch_line(comparison: &Comparison) -> Option<String> {
    let batching = |name: &&str| PolicyKind::from_name(name).is_some_and(PolicyKind::batches);
    let names: Vec<&str> = comparison.policies.iter().map(|policy| policy.name()).filter(batching).collect();
    let Experiment { model, queries, .. } = &comparison.experiment;
    let cost = model.batches[Class::GPU].as_ref().filter(|_| !names.is_empty() && !queries.is_empty())?;
    let of_gpu = || queries.iter().map(|query| query.service[Class::GPU]);
    let size = cost.most_queries;
    let batch = of_gpu().cycle().take(size as usize).fold(BatchLoad::default(), BatchLoad::with);
    let alone_us = of_gpu().map(|cost| cost.alone.as_us()).sum::<f64>() / queries.len() as f64;
    Some(format!(
        "batches ({}): one of {} queries takes the GPU {} us, and a query alone takes {} us\n",
        names.join(", "),
        number::grouped(f64::from(size)),
        number::text(cost.time(&batch).total().as_us(), 3),
        number::text(alone_us, 3),
    ))
}

/// The meaning of the columns, and notes on some rows.
fn meanings(capacities: &[Capacity], all: bool) -> String {
    let found = || capacities.iter();
    let Some(first) = found().next() else { return String::new() };
    // A policy of which no rate held has an interval without a confidence.
    let confidence = found().map(|found| found.interval.confidence).fold(0.0, f64::max);
    let mut text = match first.seeds {
        _ if found().all(|found| found.qps == 0.0) => String::from("interval: no tested rate held\n"),
        1 => String::from("interval: to the next rate of the search, because there is one seed (--seeds 1:10)\n"),
        _ => format!(
            "interval: {} %, from the seeds of arrivals and the sample of queries{}\n",
            number::text(100.0 * confidence, 3),
            of_sample(capacities)
        ),
    };
    if let Some(error) = found().find_map(|found| found.query_error).filter(|_| all) {
        let measured = number::counted(error.queries, "measured query", "measured queries");
        let _ = writeln!(text, "seeds, queries: half the width of the 95 % interval from each of them; {measured}");
    }
    let _ = writeln!(
        text,
        "of limit: share of {} q/s; above it, no scheduler is stable with these costs",
        number::text(first.region_qps, 4)
    );
    text.push_str("fails at: the next higher rate that was tested");
    text.push_str(match found().any(|found| found.failing_qps.is_none()) {
        true => "; none: rates held up to 99.6 % of the policy's stability limit, where no rate holds\n",
        false => "\n",
    });
    if found().any(|found| found.verdict.is_some()) {
        text.push_str("busy: work over the work that all lanes can do at most, and its error from the sample; p99, p99.9, longest, late: delays in ms at the rate\n");
    }
    if found().any(|found| found.criterion.tail_is_of_idle()) {
        text.push_str("*: p99.9 is within twice its value at a tenth of the rate, which is more than ten deadlines\n");
    }
    if found().any(|found| found.is_cut_off) {
        text.push_str(">=: there are too few arrivals for higher rates\n");
    }
    let flipped: Vec<&str> = found().filter(|found| found.flips > 0).map(|found| found.policy.as_str()).collect();
    if !flipped.is_empty() {
        let _ = writeln!(text, "not sharp, because a rate held although a lower one failed: {}", flipped.join(", "));
    }
    text
}

/// The part of the intervals that more seeds do not lower.
fn of_sample(capacities: &[Capacity]) -> String {
    let errors = || capacities.iter().filter_map(|found| found.query_error);
    let Some(first) = errors().next() else { return String::new() };
    let share = |most: fn(f64, f64) -> f64| errors().map(|error| error.share).reduce(most).unwrap_or(first.share);
    let (least, most) = (error_in_words(Some(share(f64::min))), error_in_words(Some(share(f64::max))));
    let range = if least == most { most } else { format!("{least} to {most}") };
    format!("; {range} from {}", number::counted(first.queries, "measured query", "measured queries"))
}

/// Limits of policies that can't use all of the machine, for example its batches.
fn own_limits(capacities: &[Capacity]) -> String {
    let mut limits: Vec<(f64, Vec<&str>)> = Vec::new();
    for found in capacities.iter().filter(|found| found.stable_qps < found.region_qps) {
        match limits.iter_mut().find(|(limit, _)| *limit == found.stable_qps) {
            Some((_, policies)) => policies.push(&found.policy),
            None => limits.push((found.stable_qps, vec![&found.policy])),
        }
    }
    let limit =
        |(limit, policies): &(f64, Vec<&str>)| format!("{} above {}", policies.join(", "), number::text(*limit, 4));
    match &limits[..] {
        [] => String::new(),
        limits => format!(
            "policies with a lower limit of stability: {}\n",
            limits.iter().map(limit).collect::<Vec<_>>().join("; ")
        ),
    }
}

fn lengths(capacities: &[Capacity]) -> String {
    let found: Vec<&Capacity> = capacities.iter().filter(|found| found.qps > 0.0).collect();
    let Some(first) = found.first() else { return String::new() };
    let limit_ms = first.criterion.limit.as_ms();
    let (least, most) = (found.iter().map(|found| found.seeds).min(), found.iter().map(|found| found.seeds).max());
    let seeds = match (least, most) {
        (Some(least), Some(most)) if least < most => format!("{least} to {most} seeds"),
        (_, most) => number::counted(most.unwrap_or(1), "seed", "seeds"),
    };
    let mut text = format!(
        "rates near the limit were played with {seeds}, each in a run of {}\n",
        from_to(found.iter().map(|found| found.confirmed_queries))
    );
    let short: Vec<&str> = found.iter().filter(|found| found.is_short()).map(|found| found.policy.as_str()).collect();
    if !short.is_empty() {
        let _ = writeln!(
            text,
            "together shorter than 100 times {limit_ms} ms, so that overload shows as delays that grow, not as late queries: {}",
            short.join(", ")
        );
    }
    text
}

/// Text such as `2000000 queries`, or a range.
fn from_to(queries: impl Iterator<Item = usize> + Clone) -> String {
    let (least, most) = (queries.clone().min().unwrap_or(0), queries.max().unwrap_or(0));
    if least == most { format!("{least} queries") } else { format!("{least} to {most} queries") }
}

/// Each policy's delays with 90 % intervals, at its highest rate that is stable and has no miss; percentiles are means
/// over the seeds.
fn percentiles(summaries: &[SummaryRow], results: &PolicyResults) -> Table {
    let mut table = Table::new(["policy", "q/s", "mean", "+-", "p50", "p95", "p99", "+-", "max"]);
    for PolicyForecast { policy, rate_qps, forecast } in &results.forecasts {
        let rows = || summaries.iter().filter(|row| row.policy == *policy && row.rate_qps == *rate_qps);
        let mean = |of: fn(&Summary) -> f64, half_width: f64| {
            let mean = rows().map(|row| of(&row.summary)).sum::<f64>() / rows().count() as f64;
            number::known(mean, 0.1 * half_width * mean)
        };
        let percent = |half_width: f64| match half_width {
            // An interval that is wider than its value predicts nothing.
            1.0.. => String::from("not predictable: within 10 % of the limit"),
            _ => format!("{:.0} %", (100.0 * half_width).ceil()),
        };
        let (mean_width, p99_width) = (forecast.mean_half_width, forecast.p99_half_width);
        table.row([
            policy.clone(),
            number::text(*rate_qps, 6),
            mean(|s| s.mean_ms, mean_width),
            percent(mean_width),
            mean(|s| s.p50_ms, mean_width),
            mean(|s| s.p95_ms, p99_width),
            mean(|s| s.p99_ms, p99_width),
            percent(p99_width),
            mean(|s| s.max_ms, p99_width),
        ]);
    }
    table
}

/// Delays of each policy at one rate and, if `all`, p99 by rate.
fn delay_tables(summaries: &[SummaryRow], comparison: &Comparison, results: &PolicyResults, all: bool) -> String {
    let mut text = String::new();
    let table = percentiles(summaries, results);
    if !table.is_empty() {
        let _ = write!(
            text,
            "\nDelays in ms at the highest simulated rate that is stable and has no miss, with 90 % intervals:\n{table}"
        );
    }
    if all || table.is_empty() {
        text.push_str(&delays_by_rate(summaries, comparison, results));
    }
    text
}

/// p99 and the share of late queries, one line per rate, one column per policy.
fn delays_by_rate(summaries: &[SummaryRow], comparison: &Comparison, results: &PolicyResults) -> String {
    let Comparison { experiment, policies, .. } = comparison;
    let queries = experiment.arrivals.first().map_or(0, Arrivals::len);
    let runs = number::counted(experiment.arrivals.len(), "run", "runs");
    let mut text = format!(
        "\np99 in ms, and the share of queries that missed the deadline; {runs} of {queries} queries (!: the rate is not stable, so \
         that delays grow with the run):\n"
    );
    let mut table = Table::new(std::iter::once("q/s").chain(policies.iter().map(|policy| policy.name())));
    for &rate_qps in &results.rates_qps {
        let delays = policies.iter().map(|policy| {
            let rows = || summaries.iter().filter(|row| row.policy == policy.name() && row.rate_qps == rate_qps);
            let count = rows().count() as f64;
            if count == 0.0 {
                return String::from("- ");
            }
            let p99_ms = rows().map(|row| row.summary.p99_ms).sum::<f64>() / count;
            let missed = rows().map(|row| (row.summary.missed + row.summary.shed) as f64).sum::<f64>();
            let sent = rows().map(|row| (row.summary.queries + row.summary.shed) as f64).sum::<f64>();
            let mark = if rate_qps > comparison.stable_qps(results, policy.name()) { '!' } else { ' ' };
            let missed = if missed > 0.0 {
                format!("{} %", number::text(100.0 * missed / sent, 2))
            } else {
                String::from("0 %")
            };
            format!("{} {missed}{mark}", number::text(p99_ms, 3))
        });
        table.row(std::iter::once(number::text(rate_qps, 6)).chain(delays));
    }
    let _ = write!(text, "{table}");
    text
}

/// What policies gain in capacity over the first, on a machine without GPUs that serves queries first come, first served.
fn gains(comparison: &Comparison, results: &PolicyResults) -> String {
    let Some((first, others)) = results.capacities.split_first() else { return String::new() };
    let has_gpus = comparison.experiment.model.machine.classes().any(|class| class.is_gpu());
    if has_gpus || others.is_empty() || first.qps <= 0.0 || first.policy != PolicyKind::CpuOnly.name() {
        return String::new();
    }
    let gain = |found: &Capacity| {
        let share = found.qps / first.qps - 1.0;
        let way = if share < 0.0 { "less" } else { "more" };
        format!("{} would sustain {} % {way}", found.policy, number::text(100.0 * share.abs(), 2))
    };
    let gains: Vec<String> = others.iter().map(gain).collect();
    format!("first come, first served is {}; {} (--compare decides)\n", first.policy, gains.join(", "))
}

/// Predicted energy of the GPUs per query, by policy, at the rate of its forecast or else its highest one. It is empty if no
/// machine profile describes GPUs.
fn energy_line(summaries: &[SummaryRow], comparison: &Comparison, results: &PolicyResults) -> String {
    let model = &comparison.experiment.model;
    if !model.machine.classes().any(|class| class.is_gpu() && model.lanes[class].is_some()) {
        return String::new();
    }
    let of = |policy: &str| {
        let forecast = results.forecasts.iter().find(|one| one.policy == policy).map(|one| one.rate_qps);
        let rows = summaries.iter().filter(|row| row.policy == policy);
        let highest = rows.clone().map(|row| row.rate_qps).fold(0.0, f64::max);
        let rate_qps = forecast.unwrap_or(highest);
        let each: Vec<f64> =
            rows.filter(|row| row.rate_qps == rate_qps).filter_map(|row| row.summary.gpu_mj_per_query()).collect();
        let mean = each.iter().sum::<f64>() / each.len() as f64;
        let (mean, rate) = (number::text(mean, 3), number::text(rate_qps, 3));
        (!each.is_empty()).then(|| format!("{policy} {mean} mJ at {rate} q/s"))
    };
    let known: Vec<String> = comparison.policies.iter().filter_map(|policy| of(policy.name())).collect();
    if known.is_empty() {
        let why = match comparison.experiment.cluster {
            Some(_) => "it is predicted for one machine only",
            None => {
                "the machine profile has no energy per query; `profile --machine` measures it on GPUs that count their energy"
            }
        };
        return format!("\nEnergy of the GPUs is not known: {why}.\n");
    }
    format!("\nPredicted energy of the GPUs per query, by the machine profile: {}.\n", known.join(", "))
}

/// Losses summed over the seeds, one row per policy and rate with any. Without losses the result is empty, unless lanes
/// were `to_fail`.
fn loss_table(summaries: &[SummaryRow], to_fail: bool) -> String {
    let mut sums: Vec<(&str, f64, [usize; 3])> = Vec::new();
    for SummaryRow { policy, rate_qps, summary: s, .. } in summaries {
        let counts = [s.lane_faults, s.again, s.shed];
        match sums.iter_mut().find(|(name, rate, _)| name == policy && rate == rate_qps) {
            Some((.., sum)) => sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count),
            None => sums.push((policy, *rate_qps, counts)),
        }
    }
    sums.retain(|(.., counts)| counts.iter().any(|&count| count > 0));
    if sums.is_empty() {
        return String::from(if to_fail { "\nNo lane failed during a query.\n" } else { "" });
    }
    let mut table = Table::new(["policy", "q/s", "lanes failed", "queries ran again", "queries dropped"]);
    for (policy, rate_qps, counts) in sums {
        let [failed, again, shed] = counts.map(|count| count.to_string());
        table.row([policy.to_owned(), number::text(rate_qps, 6), failed, again, shed]);
    }
    format!("\nLosses over all runs:\n{table}")
}
