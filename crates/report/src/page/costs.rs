//! Costs of queries and errors of their estimates, from workloads and models.

use tandem_model::base::machine::Class;
use tandem_model::base::quantile::nearest_rank;
use tandem_model::cost::{ModelFile, TrainOptions, Workload, cross_validated_estimates};
use tandem_model::traffic::Mode;

use super::folder::Folder;
use super::html::{self, Cell, HtmlTable, number, percent};
use crate::figure::{LineChart, Look, Point, Series, Signs, look_of};

const MOST_POINTS: usize = 800;
/// Folds of the cross-validation, as in `simulate`.
const FOLDS: usize = 5;
/// Groups of a calibration curve, from the cheapest tenth by estimate to the most expensive.
const TENTHS: usize = 10;

/// A query's estimated and measured cost, in microseconds.
type Pair = (f64, f64);

pub(crate) fn section(id: &str, folder: &Folder) -> String {
    let mut html = String::new();
    for (number, (name, workload)) in folder.workloads.iter().enumerate() {
        html += &costs_table(name, workload).html();
        let id = format!("{id}-w{number}");
        let options = TrainOptions { folds: FOLDS, ..TrainOptions::default() };
        // Too few queries for a model give no figure.
        let Ok(estimates) = cross_validated_estimates(workload, &options) else { continue };
        for mode in Mode::ALL {
            let pairs = |class: Class| -> Vec<Pair> {
                let rows = workload.rows.iter().zip(&estimates).filter(|(row, _)| row.mode == mode);
                rows.filter_map(|(row, estimate)| Some((estimate[class]?, row.measured[class]?.median_us))).collect()
            };
            let by_class: Vec<(Class, Vec<Pair>)> = Class::ALL
                .map(|class| (class, pairs(class)))
                .into_iter()
                .filter(|(_, pairs)| !pairs.is_empty())
                .collect();
            if by_class.is_empty() {
                continue;
            }
            html += "<div class=\"pair\">";
            html += &cloud(mode, &by_class).html(&format!("{id}-{mode}"));
            html += &calibration(mode, &by_class).html(&format!("{id}-{mode}-calibration"));
            html += "</div>\n";
        }
    }
    for (name, model) in &folder.models {
        html += &models_table(name, model).html();
    }
    html::section(id, "costs", "Costs of queries", &html)
}

fn costs_table(name: &str, workload: &Workload) -> HtmlTable {
    let mut table = HtmlTable::new(
        &format!("Service times of single queries: {name}"),
        ["processor", "mode", "queries", "mean_us", "p50_us", "p95_us", "p99_us", "max_us"],
    );
    for (class, mode, us) in service_times(workload) {
        let cell = |value: f64| Cell::of(&crate::number::text(value, 6));
        let at = |share| cell(nearest_rank(&us, share).unwrap_or(f64::NAN));
        let mean = us.iter().sum::<f64>() / us.len() as f64;
        table.row([
            Cell::text(class.name()),
            Cell::text(mode.name()),
            Cell::of(&us.len().to_string()),
            cell(mean),
            at(0.5),
            at(0.95),
            at(0.99),
            at(1.0),
        ]);
    }
    table
}

pub(crate) fn service_times(workload: &Workload) -> Vec<(Class, Mode, Vec<f64>)> {
    let mut all = Vec::new();
    for class in Class::ALL {
        for mode in Mode::ALL {
            let rows = workload.rows.iter().filter(|row| row.mode == mode);
            let mut us: Vec<f64> = rows.filter_map(|row| row.measured[class].map(|m| m.median_us)).collect();
            us.sort_by(f64::total_cmp);
            if !us.is_empty() {
                all.push((class, mode, us));
            }
        }
    }
    all
}

fn look(class: Class) -> Look {
    look_of(if class.is_gpu() { "gpu-only" } else { "cpu-only" })
}

fn cloud(mode: Mode, by_class: &[(Class, Vec<Pair>)]) -> LineChart {
    let series = by_class.iter().map(|(class, pairs)| {
        let step = pairs.len().div_ceil(MOST_POINTS);
        Series {
            name: class.to_string(),
            points: pairs.iter().step_by(step).map(|&(x, y)| Point { x, y, ..Point::default() }).collect(),
            look: Some(look(*class)),
            signs: Signs::Markers,
            ..Series::default()
        }
    });
    let errors = by_class.iter().map(|(class, pairs)| {
        let mean = pairs.iter().map(|(x, y)| (x - y).abs() / y).sum::<f64>() / pairs.len() as f64;
        format!("{class}: mean error {}", percent(mean, false))
    });
    let errors = errors.collect::<Vec<_>>().join("; ");
    LineChart {
        title: format!("Estimated and measured cost, mode {mode}"),
        note: format!("A model estimates each query without having seen it. {errors}."),
        x_label: String::from("estimated (µs)"),
        y_label: String::from("measured (µs)"),
        is_x_log: true,
        is_y_log: true,
        series: series.collect(),
        has_diagonal: true,
        ..LineChart::default()
    }
}

/// The mean measured cost over the mean estimate, by tenths of the estimates. It is 1 if estimates are right on
/// average.
fn calibration(mode: Mode, by_class: &[(Class, Vec<Pair>)]) -> LineChart {
    let series = by_class.iter().map(|(class, pairs)| {
        let mut sorted = pairs.clone();
        sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
        let point = |tenth: &[Pair]| {
            let sum = tenth.iter().fold((0.0, 0.0), |sum, pair| (sum.0 + pair.0, sum.1 + pair.1));
            Point { x: sum.0 / tenth.len() as f64, y: sum.1 / sum.0, ..Point::default() }
        };
        let points = sorted.chunks(sorted.len().div_ceil(TENTHS)).map(point).collect();
        Series { name: class.to_string(), look: Some(look(*class)), points, ..Series::default() }
    });
    let series: Vec<Series> = series.collect();
    let ratios = series.iter().flat_map(|series| &series.points).map(|point| point.y);
    let worst = ratios.max_by(|a, b| (a - 1.0).abs().total_cmp(&(b - 1.0).abs())).unwrap_or(1.0);
    LineChart {
        title: format!("Are estimates right on average? Mode {mode}"),
        note: format!(
            "Queries are grouped in tenths by their estimate. The tenth with the largest error took {} times its estimate.",
            number(worst)
        ),
        x_label: String::from("mean estimate of a tenth of the queries (µs)"),
        y_label: String::from("measured ÷ estimated"),
        is_x_log: true,
        series,
        horizontal: Some((1.0, String::from("right"))),
        ..LineChart::default()
    }
}

fn models_table(name: &str, model: &ModelFile) -> HtmlTable {
    let mut table = HtmlTable::new(
        &format!("Cost models, relative error on unseen queries: {name}"),
        ["processor", "mode", "queries", "mean", "median", "p95", "baseline: mean cost", "rank correlation", "model"],
    );
    for model in model.models() {
        let Some(e) = &model.evaluation else { continue };
        let share = |value: f64| Cell::share(Some(value), false);
        table.row([
            Cell::text(model.kind.name()),
            Cell::text(model.mode.name()),
            Cell::of(&e.samples.to_string()),
            share(e.mean_relative_error),
            share(e.median),
            share(e.p95),
            share(e.baseline_mean_relative_error),
            Cell::of(&e.rank_correlation.to_string()),
            Cell::text(&{
                let (size, of) = model.size();
                format!("{}, {size} {of}", model.model())
            }),
        ]);
    }
    table
}
