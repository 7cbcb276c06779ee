//! What `train --report` writes: how models err, seen from several sides, each a file.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cli::Failure;
use crate::cli::defaults::Bars;
use crate::cli::output::result_file;
use crate::cost::study::{self, Of};
use crate::cost::{ModelKind, TrainError, TrainOptions, Workload};
use crate::files::{Digits, Provenance, Record, write_csv};
use crate::lab::Progress;
use crate::machine::Class;
use crate::query::Mode;
use crate::report::plot::{LineChart, Point, Series};

/// Errors by kind of model: the file that is written first.
pub(super) const ERRORS: &str = "model_errors.csv";

#[derive(Serialize, Deserialize)]
struct ErrorLine {
    model: Cow<'static, str>,
    kind: Class,
    mode: Mode,
    samples: usize,
    mean_relative_error: f64,
    median: f64,
    p95: f64,
    rank_correlation: f64,
    coverage_90: Option<f64>,
}

#[derive(Serialize, Deserialize)]
struct DecileLine {
    model: Cow<'static, str>,
    kind: Class,
    mode: Mode,
    decile: usize,
    estimated_over_true: f64,
}

#[derive(Serialize, Deserialize)]
struct CoverageLine {
    kind: Class,
    mode: Mode,
    level: f64,
    share_within: Digits<4>,
}

#[derive(Serialize, Deserialize)]
struct ImportanceLine {
    kind: Class,
    mode: Mode,
    feature: Cow<'static, str>,
    error_added: Digits<4>,
}

#[derive(Serialize, Deserialize)]
struct LearningLine {
    kind: Class,
    mode: Mode,
    samples: usize,
    mean_relative_error: Digits<4>,
}

#[derive(Serialize, Deserialize)]
struct ScatterLine {
    kind: Class,
    mode: Mode,
    query_id: u32,
    estimated_us: Digits<6>,
    measured_us: Digits<6>,
}

impl Record for ErrorLine {}
impl Record for DecileLine {}
impl Record for CoverageLine {}
impl Record for ImportanceLine {}
impl Record for LearningLine {}
impl Record for ScatterLine {}

/// Studies the models of this workload and writes what is found into `dir`.
pub(super) fn write(dir: &Path, names: &str, workload: &Workload, options: &TrainOptions) -> Result<(), Failure> {
    let fault = |e: TrainError| Failure::input(format!("{names}: {e}"));
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("workload", names)
        .with("model", options.model)
        .with("folds", options.folds);
    let file = |name: &str| dir.join(name);
    let bars = Bars::default();

    bars.doing("comparing kinds of model");
    let compared = study::compare(workload, &ModelKind::ALL, options).map_err(fault)?;
    let line = |(model, Of { kind, mode }, e): &(ModelKind, Of, crate::cost::Evaluation)| ErrorLine {
        model: model.name().into(),
        kind: *kind,
        mode: *mode,
        samples: e.samples,
        mean_relative_error: e.mean_relative_error,
        median: e.median,
        p95: e.p95,
        rank_correlation: e.rank_correlation,
        coverage_90: e.coverage_90,
    };
    write_csv(&file(ERRORS), &provenance, compared.iter().map(line))?;
    let deciles = compared.iter().flat_map(|(model, of, evaluation)| {
        evaluation.decile_bias.iter().zip(1..).map(|(&bias, decile)| DecileLine {
            model: model.name().into(),
            kind: of.kind,
            mode: of.mode,
            decile,
            estimated_over_true: bias,
        })
    });
    write_csv(&file("model_deciles.csv"), &provenance, deciles)?;
    bars.end();
    outln!("mean relative error by kind of model, in percent\n\nmodel     kind  mode      mean  median     p95");
    for (model, Of { kind, mode }, e) in &compared {
        let percent = |share: f64| 100.0 * share;
        outln!(
            "{:<8}  {:<4}  {:<6}  {:>6.1}  {:>6.1}  {:>6.1}",
            model.name(),
            kind.name(),
            mode.name(),
            percent(e.mean_relative_error),
            percent(e.median),
            percent(e.p95),
        );
    }

    bars.doing("how often quantiles hold");
    let covered = study::coverage(workload, options).map_err(fault)?;
    let line = |&(Of { kind, mode }, level, share): &(Of, f64, f64)| CoverageLine {
        kind,
        mode,
        level,
        share_within: Digits(share),
    };
    write_csv(&file("model_coverage.csv"), &provenance, covered.iter().map(line))?;

    bars.doing("what features are worth");
    let worth = study::importance(workload, options).map_err(fault)?;
    let line = |&(Of { kind, mode }, feature, added): &(Of, &'static str, f64)| ImportanceLine {
        kind,
        mode,
        feature: feature.into(),
        error_added: Digits(added),
    };
    write_csv(&file("model_importance.csv"), &provenance, worth.iter().map(line))?;

    bars.doing("what more queries would gain");
    let learnt = study::learning_curve(workload, options).map_err(fault)?;
    let line = |&(Of { kind, mode }, samples, error): &(Of, usize, f64)| LearningLine {
        kind,
        mode,
        samples,
        mean_relative_error: Digits(error),
    };
    write_csv(&file("model_learning.csv"), &provenance, learnt.iter().map(line))?;
    learning_chart(&learnt, names, options.model).write(&file("model_learning"))?;

    bars.doing("estimating each query by a model that has not seen it");
    let scattered = study::scatter(workload, options).map_err(fault)?;
    let line = |&(Of { kind, mode }, query, estimated, measured): &(Of, crate::ids::QueryId, f64, f64)| ScatterLine {
        kind,
        mode,
        query_id: query.0,
        estimated_us: Digits(estimated),
        measured_us: Digits(measured),
    };
    bars.end();
    write_csv(&file("model_scatter.csv"), &provenance, scattered.iter().map(line))?;

    for name in [
        ERRORS,
        "model_deciles.csv",
        "model_coverage.csv",
        "model_importance.csv",
        "model_learning.csv",
        "model_scatter.csv",
    ] {
        result_file(name.trim_end_matches(".csv"), &file(name));
    }
    outln!("\nwritten: {}: model_*.csv, model_learning.svg", dir.display());
    Ok(())
}

/// Errors against the number of queries.
fn learning_chart(learnt: &[(Of, usize, f64)], names: &str, model: ModelKind) -> LineChart {
    let mut series: Vec<Series> = Vec::new();
    for &(Of { kind, mode }, samples, error) in learnt {
        let name = format!("{kind}, {mode}");
        let point = Point { x: samples as f64, y: 100.0 * error, ..Point::default() };
        match series.iter_mut().find(|series| series.name == name) {
            Some(series) => series.points.push(point),
            None => series.push(Series { name, points: vec![point], ..Series::default() }),
        }
    }
    LineChart {
        title: String::from("Error of estimates by the number of queries behind them"),
        subtitle: format!("{names}, model {model}"),
        x_label: String::from("queries in the fit"),
        y_label: String::from("mean relative error (%)"),
        is_x_log: true,
        series,
        ..LineChart::default()
    }
}
