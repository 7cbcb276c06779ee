//! Figures of pages, by the chart engine of all other figures.
//!
//! | clause | meaning |
//! | --- | --- |
//! | `out: figures/x.svg` | the file, relative to the page's folder |
//! | `title: Mean delay` | stands above the chart and describes the picture |
//! | `x: rate_qps "arrival rate (q/s)"` | the horizontal axis, with its unit |
//! | `y: measured_ms "measured", predicted_ms "predicted"` | values; those behind the first are dashed |
//! | `ylabel: mean delay (ms)` | the vertical axis, if there are several values; else it is the heading of `y` |
//! | `series: policy` | one line per value; a policy has the same colour and marker in all figures |
//! | `low: low_qps; high: high_qps` | the interval of the first value |
//! | `hollow: missed > 0` | points with a hollow marker |
//! | `log: x y` | logarithmic axes |
//! | `style: markers diagonal` | markers without lines (`line`: lines without markers), and the line of equal values |

use tandem_model::sched::PolicyKind;

use super::expression::Column;
use super::marker::Marker;
use super::rows::Rows;
use crate::plot::{LineChart, Point, Series, Signs, Stroke, looks_of};

/// The path of the figure relative to the page's folder, and the figure as SVG. It shows at most eight lines, the highest.
pub(super) fn drawn<'a>(rows: &Rows, marker: &Marker<'a>) -> Result<(&'a str, String), String> {
    let (x, ys) = (Column::parse(marker.clause("x")?), Column::all(marker.clause("y")?));
    let name = Column::parse(marker.clause("series")?);
    let optional = |clause: &str| marker.optional(clause).map(Column::parse);
    let (low, high, hollow) = (optional("low"), optional("high"), optional("hollow"));
    let has =
        |clause: &str, word: &str| marker.optional(clause).is_some_and(|value| value.split(' ').any(|w| w == word));
    // The lines, and whose each is: several lines of one owner have the same colour and marker.
    let (mut series, mut owners): (Vec<Series>, Vec<String>) = (Vec::new(), Vec::new());
    for group in rows.groups() {
        let number = |column: &Column<'_>| column.value(&rows.columns, &group).map(|value| value.number());
        let optional = |column: &Option<Column<'_>>| column.as_ref().map_or(Ok(None), number);
        let of = name.text(&rows.columns, &group)?;
        for (at, column) in ys.iter().enumerate() {
            let line = if ys.len() == 1 { of.clone() } else { format!("{of}, {}", column.heading) };
            let place = series.iter().position(|series| series.name == line).unwrap_or_else(|| {
                let stroke = if at == 0 { Stroke::Solid } else { Stroke::Dashed };
                let signs = match (has("style", "markers"), has("style", "line")) {
                    (true, _) => Signs::Markers,
                    (_, true) => Signs::Line,
                    _ => Signs::LineAndMarkers,
                };
                series.push(Series { name: line, stroke, signs, ..Series::default() });
                owners.push(of.clone());
                series.len() - 1
            });
            if let (Some(x), Some(y)) = (number(&x)?, number(column)?) {
                let interval = if at == 0 { optional(&low)?.zip(optional(&high)?) } else { None };
                let is_hollow = optional(&hollow)? == Some(1.0);
                series[place].points.push(Point { x, y, is_hollow, interval });
            }
        }
    }
    let mut names: Vec<&str> = owners.iter().map(String::as_str).collect();
    names.dedup();
    let is_policy = |name: &&str| PolicyKind::ALL.iter().any(|kind| kind.name() == *name);
    let looks = match names.iter().any(is_policy) {
        true => looks_of(&names),
        false => (0..names.len()).map(|at| (at, at)).collect(),
    };
    for (series, owner) in series.iter_mut().zip(&owners) {
        let look = names.iter().position(|name| name == owner).map(|at| looks[at]);
        (series.colour, series.marker) = look.unzip();
    }
    let chart = LineChart {
        title: marker.clause("title")?.to_owned(),
        x_label: x.heading,
        y_label: marker.optional("ylabel").map_or_else(|| ys[0].heading.clone(), str::to_owned),
        is_x_log: has("log", "x"),
        is_y_log: has("log", "y"),
        has_diagonal: has("style", "diagonal"),
        series,
        ..LineChart::default()
    };
    let svg = chart.with_best("those with the highest values", Series::highest).svg();
    Ok((marker.clause("out")?, svg))
}
