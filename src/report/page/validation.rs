//! Predicted against measured, run by run.

use super::chart::{Chart, Place, Scale, Series, Unit, look_of};
use super::folder::{Folder, Kind};
use super::html::{HtmlTable, folded, number};
use super::sheet::Sheet;

/// Pictures and tables.
pub(super) fn section(id: &str, folder: &Folder) -> String {
    let is_empty = |kind| folder.of(kind).next().is_none();
    if is_empty(Kind::Validation) && is_empty(Kind::Validity) {
        return String::new();
    }
    let mut html =
        format!("<section id=\"{id}-s-validation\"><h3>Predicted against measured</h3>\n<div class=\"tabs\">");
    for (metric, name) in [("mean", "mean"), ("p50", "median"), ("p99", "p99")] {
        html += &scatter(id, folder, metric, name).html();
    }
    html += "</div>\n";
    for sheet in folder.of(Kind::Validation) {
        html += &folded(
            &format!("All {} comparisons ({})", sheet.rows.len(), sheet.name),
            &HtmlTable::of_sheet("Predicted and measured delays", sheet),
        );
    }
    for sheet in folder.of(Kind::Validity) {
        html += &folded(
            &format!("Where to trust predictions ({})", sheet.name),
            &HtmlTable::of_sheet("Errors beside the spread of repeated live runs, by policy and load", sheet),
        );
    }
    for sheet in folder.of(Kind::ValidationRuns) {
        html += &folded(
            &format!("Each live run, where its delays come from, and what disturbed it ({})", sheet.name),
            &HtmlTable::of_sheet("Repeated live runs, each beside its prediction", sheet),
        );
    }
    html + "</section>\n"
}

fn scatter(id: &str, folder: &Folder, metric: &str, name: &str) -> Chart {
    let mut chart = Chart::new(
        &format!("{id}-predicted-{metric}"),
        &format!("Predicted and measured delay: {name}"),
        Scale::new(&format!("predicted {name} delay"), Unit::Plain("ms"), true),
        Scale::new(&format!("measured {name} delay"), Unit::Plain("ms"), true),
    );
    chart.has_diagonal = true;
    let (predicted, measured) = (format!("predicted_{metric}_ms"), format!("measured_{metric}_ms"));
    let (mut within, mut count) = (0, 0);
    for line in folder.of(Kind::Validation).flat_map(Sheet::lines) {
        let (Some(x), Some(y)) = (line.number(&predicted), line.number(&measured)) else { continue };
        let policy = line.text("policy");
        let missed = line.number("measured_missed").unwrap_or(0.0) + line.number("unanswered").unwrap_or(0.0);
        let tip = format!(
            "{policy} at {} q/s: predicted {} ms, measured {} ms",
            number(line.number("rate_qps").unwrap_or(0.0)),
            number(x),
            number(y)
        );
        let place = Place { x, y, is_hollow: missed > 0.0, tip, ..Place::default() };
        within += usize::from((x / y).max(y / x) <= 1.25);
        count += 1;
        match chart.series.iter_mut().find(|series| series.name == policy) {
            Some(series) => series.points.push(place),
            None => chart.series.push(Series {
                name: policy.to_owned(),
                look: look_of(policy),
                points: vec![place],
                is_cloud: true,
                ..Series::default()
            }),
        }
    }
    chart.description =
        format!("{within} of {count} predictions of the {name} delay are within a quarter of what was measured.");
    chart.note =
        format!("On the dashed line both are equal. {} Hollow: a query missed its deadline live.", chart.description);
    chart
}
