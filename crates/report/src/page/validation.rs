//! Predicted against measured, run by run.

use super::folder::{Folder, Kind};
use super::html::{HtmlTable, folded};
use crate::figure::{LineChart, Point, Series, Signs, look_of};
use crate::sheet::Sheet;

/// Pictures and tables.
pub(crate) fn section(id: &str, folder: &Folder) -> String {
    let is_empty = |kind| folder.of(kind).next().is_none();
    if is_empty(Kind::Validation) {
        return String::new();
    }
    let mut html = format!("<section id=\"{id}-s-validation\"><h3>Live runs</h3>\n");
    let is_predicted = |sheet: &Sheet| sheet.lines().any(|line| line.number("predicted_mean_ms").is_some());
    if folder.of(Kind::Validation).any(is_predicted) {
        html += "<div class=\"tabs\">";
        for (metric, name) in [("mean", "mean"), ("p50", "median"), ("p99", "p99")] {
            html += &scatter(folder, metric, name).html(&format!("{id}-predicted-{metric}"));
        }
        html += "</div>\n";
    }
    for sheet in folder.of(Kind::Validation) {
        html += &folded(
            &format!("All {} live runs ({})", sheet.rows.len(), sheet.name),
            &HtmlTable::of_sheet("Live runs in order, with what else kept the machine busy", sheet),
        );
    }
    html + "</section>\n"
}

fn scatter(folder: &Folder, metric: &str, name: &str) -> LineChart {
    let (predicted, measured) = (format!("predicted_{metric}_ms"), format!("measured_{metric}_ms"));
    let half_width = format!("predicted_{metric}_half_width");
    let mut series: Vec<Series> = Vec::new();
    let (mut within, mut count) = (0, 0);
    for line in folder.of(Kind::Validation).flat_map(Sheet::lines) {
        let (Some(y), Some(x)) = (line.number(&predicted), line.number(&measured)) else { continue };
        let policy = line.text("policy");
        within += usize::from((x / y).max(y / x) <= 1.25);
        count += 1;
        let interval = line.number(&half_width).map(|half| (y / (1.0 + half), y * (1.0 + half)));
        let point = Point { x, y, is_hollow: line.text("verdict") != "held", interval };
        let series = Series::named(&mut series, policy.to_owned());
        (series.look, series.signs) = (Some(look_of(policy)), Signs::Markers);
        series.points.push(point);
    }
    LineChart {
        title: format!("Predicted and measured delay: {name}"),
        note: format!(
            "On the dashed line both are equal. {within} of {count} predictions of the {name} delay are within a quarter of the \
             measurement. Hollow: the objective was not held live. Bars: 90 % intervals of predictions"
        ),
        x_label: format!("measured {name} delay (ms)"),
        y_label: format!("predicted {name} delay (ms)"),
        is_x_log: true,
        is_y_log: true,
        series,
        has_diagonal: true,
        ..LineChart::default()
    }
}
