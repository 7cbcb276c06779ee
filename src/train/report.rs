//! The files of `train --report` on the errors of models.

use std::borrow::Cow;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tandem_model::base::ids::QueryId;
use tandem_model::base::machine::Class;
use tandem_model::cost::{Evaluation, ModelKind, Of, TrainError, TrainOptions, Workload, study};
use tandem_model::files::{Digits, Provenance, Record, write_csv};
use tandem_model::study::Progress;
use tandem_model::traffic::Mode;

use crate::defaults::Bars;
use crate::failure::Failure;
use crate::output::result_file;
use tandem_report::figure::{LineChart, Point, Series};

/// The errors by kind of model, in the first file that is written.
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
impl Record for ImportanceLine {}
impl Record for LearningLine {}
impl Record for ScatterLine {}

const DECILES: &str = "model_deciles.csv";
const IMPORTANCE: &str = "model_importance.csv";
const LEARNING: &str = "model_learning.csv";
const SCATTER: &str = "model_scatter.csv";

/// Studies the models of this workload and writes the results into `dir`.
pub(super) fn write(dir: &Path, names: &str, workload: &Workload, options: &TrainOptions) -> Result<(), Failure> {
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("workload", names)
        .with("model", options.model)
        .with("folds", options.folds);
    let report = Report { dir, names, workload, options, provenance, bars: Bars::default() };
    report.kinds_of_model()?;
    report.importance()?;
    report.learning()?;
    report.scatter()?;
    for name in [ERRORS, DECILES, IMPORTANCE, LEARNING, SCATTER] {
        result_file(name.trim_end_matches(".csv"), &dir.join(name));
    }
    outln!("\nwritten: {}: model_*.csv, model_learning.svg", dir.display());
    Ok(())
}

/// The studied workload and the folder of the results.
struct Report<'a> {
    dir: &'a Path,
    /// The workload's files.
    names: &'a str,
    workload: &'a Workload,
    options: &'a TrainOptions,
    provenance: Provenance,
    bars: Bars,
}

impl Report<'_> {
    /// Prints and writes the errors of each kind of model, over all queries and by deciles.
    fn kinds_of_model(&self) -> Result<(), Failure> {
        self.bars.doing("comparing kinds of model");
        let compared = self.found(study::compare(self.workload, &ModelKind::ALL, self.options))?;
        self.file(ERRORS, compared.iter().map(error_line))?;
        self.file(DECILES, compared.iter().flat_map(decile_lines))?;
        self.bars.end();
        print_errors(&compared);
        Ok(())
    }

    /// Writes the growth of the error without each feature.
    fn importance(&self) -> Result<(), Failure> {
        self.bars.doing("what features are worth");
        let worth = self.found(study::importance(self.workload, self.options))?;
        let line = |&(Of { kind, mode }, feature, added): &(Of, &'static str, f64)| ImportanceLine {
            kind,
            mode,
            feature: feature.into(),
            error_added: Digits(added),
        };
        self.file(IMPORTANCE, worth.iter().map(line))
    }

    /// Writes the error by number of queries, with a figure.
    fn learning(&self) -> Result<(), Failure> {
        self.bars.doing("what more queries would gain");
        let learnt = self.found(study::learning_curve(self.workload, self.options))?;
        let line = |&(Of { kind, mode }, samples, error): &(Of, usize, f64)| LearningLine {
            kind,
            mode,
            samples,
            mean_relative_error: Digits(error),
        };
        self.file(LEARNING, learnt.iter().map(line))?;
        learning_chart(&learnt, self.names, self.options.model).write(&self.dir.join("model_learning"))?;
        Ok(())
    }

    /// The estimate and the measured cost of each query.
    fn scatter(&self) -> Result<(), Failure> {
        self.bars.doing("estimating each query by a model that has not seen it");
        let scattered = self.found(study::scatter(self.workload, self.options))?;
        let line = |&(Of { kind, mode }, query, estimated, measured): &(Of, QueryId, f64, f64)| ScatterLine {
            kind,
            mode,
            query_id: query.0,
            estimated_us: Digits(estimated),
            measured_us: Digits(measured),
        };
        self.bars.end();
        self.file(SCATTER, scattered.iter().map(line))
    }

    /// The result of a study, or the reason why the workload does not allow it.
    fn found<T>(&self, studied: Result<T, TrainError>) -> Result<T, Failure> {
        studied.map_err(|e| Failure::input(format!("{}: {e}", self.names)))
    }

    fn file<L: Record + Serialize>(&self, name: &str, lines: impl Iterator<Item = L>) -> Result<(), Failure> {
        Ok(write_csv(&self.dir.join(name), &self.provenance, lines)?)
    }
}

/// The errors of one kind of model on one class and mode.
type Compared = (ModelKind, Of, Evaluation);

fn error_line((model, Of { kind, mode }, e): &Compared) -> ErrorLine {
    ErrorLine {
        model: model.name().into(),
        kind: *kind,
        mode: *mode,
        samples: e.samples,
        mean_relative_error: e.mean_relative_error,
        median: e.median,
        p95: e.p95,
        rank_correlation: e.rank_correlation,
    }
}

fn decile_lines((model, of, e): &Compared) -> impl Iterator<Item = DecileLine> {
    e.decile_bias.iter().zip(1..).map(|(&bias, decile)| DecileLine {
        model: model.name().into(),
        kind: of.kind,
        mode: of.mode,
        decile,
        estimated_over_true: bias,
    })
}

fn print_errors(compared: &[Compared]) {
    outln!("mean relative error by kind of model, in percent\n\nmodel     kind  mode      mean  median     p95");
    for (model, Of { kind, mode }, e) in compared {
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
}

/// Errors against the number of queries.
fn learning_chart(learnt: &[(Of, usize, f64)], names: &str, model: ModelKind) -> LineChart {
    let mut series: Vec<Series> = Vec::new();
    for &(Of { kind, mode }, samples, error) in learnt {
        let point = Point { x: samples as f64, y: 100.0 * error, ..Point::default() };
        Series::named(&mut series, format!("{kind}, {mode}")).points.push(point);
    }
    LineChart {
        title: String::from("Error of estimates by the number of queries behind them"),
        note: format!("{names}, model {model}"),
        x_label: String::from("queries in the fit"),
        y_label: String::from("mean relative error (%)"),
        is_x_log: true,
        series,
        ..LineChart::default()
    }
}
