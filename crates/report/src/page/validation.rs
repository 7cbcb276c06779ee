//! Predicted and measured delays of each run.

use super::folder::{Folder, Kind};
use super::html::{self, HtmlTable, folded};
use crate::plot::{LineChart, Point, Series, Signs, look_of};
use crate::sheet::Sheet;

pub(crate) fn section(id: &str, folder: &Folder) -> String {
    let mut html = String::new();
    for (metric, name) in [("mean", "mean"), ("p50", "median"), ("p99", "p99")] {
        html += &scatter(folder, metric, name).html(&format!("{id}-predicted-{metric}"));
    }
    if !html.is_empty() {
        html = format!("<div class=\"tabs\">{html}</div>\n");
    }
    let tables = [
        (Kind::Validation, "All comparisons", "Predicted and measured delays"),
        (
            Kind::Validity,
            "Reliability of predictions",
            "Errors and the spread of repeated live runs, by policy and load",
        ),
        (
            Kind::ValidationRuns,
            "Live runs, the parts of their delays, and interference",
            "Live runs and their predictions",
        ),
    ];
    for (kind, summary, caption) in tables {
        for sheet in folder.of(kind) {
            html += &folded(&format!("{summary} ({})", sheet.name), &HtmlTable::of_sheet(caption, sheet));
        }
    }
    html::section(id, "validation", "Predicted and measured", &html)
}

fn scatter(folder: &Folder, metric: &str, name: &str) -> LineChart {
    let (predicted, measured) = (format!("predicted_{metric}_ms"), format!("measured_{metric}_ms"));
    let mut series: Vec<Series> = Vec::new();
    let (mut within, mut count) = (0, 0);
    for line in folder.of(Kind::Validation).flat_map(Sheet::lines) {
        let (Some(x), Some(y)) = (line.number(&predicted), line.number(&measured)) else { continue };
        let policy = line.text("policy");
        let missed = line.number("measured_missed").unwrap_or(0.0) + line.number("unanswered").unwrap_or(0.0);
        within += usize::from((x / y).max(y / x) <= 1.25);
        count += 1;
        let point = Point { x, y, is_hollow: missed > 0.0, interval: None };
        match series.iter_mut().find(|series| series.name == policy) {
            Some(series) => series.points.push(point),
            None => series.push(Series {
                name: policy.to_owned(),
                colour: Some(look_of(policy)),
                points: vec![point],
                signs: Signs::Markers,
                ..Series::default()
            }),
        }
    }
    let description =
        format!("{within} of {count} predictions of the {name} delay are within a quarter of the measurement.");
    LineChart {
        title: format!("Predicted and measured delay: {name}"),
        note: Some(format!(
            "Both are equal on the dashed line. {description} Hollow: a query missed its deadline live"
        )),
        description,
        x_label: format!("predicted {name} delay (ms)"),
        y_label: format!("measured {name} delay (ms)"),
        is_x_log: true,
        is_y_log: true,
        series,
        has_diagonal: true,
        ..LineChart::default()
    }
}
