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
use crate::figure::{LineChart, Point, Series, Signs, with_looks};

/// The path of the figure relative to the page's folder, and the figure as SVG. It shows at most eight lines, the highest.
pub(super) fn drawn<'a>(rows: &Rows, marker: &Marker<'a>) -> Result<(&'a str, String), String> {
    let (x, ys) = (Column::parse(marker.clause("x")?), Column::all(marker.clause("y")?));
    let name = Column::parse(marker.clause("series")?);
    let optional = |clause: &str| marker.optional(clause).map(Column::parse);
    let (low, high, hollow) = (optional("low"), optional("high"), optional("hollow"));
    let has =
        |clause: &str, word: &str| marker.optional(clause).is_some_and(|value| value.split(' ').any(|w| w == word));
    // One line per value, and an owner of all values, who gives them their colour and marker.
    let (mut series, mut owners): (Vec<Series>, Vec<Series>) = (Vec::new(), Vec::new());
    for group in rows.groups() {
        let number = |column: &Column<'_>| column.value(&rows.columns, &group).map(|value| value.number());
        let optional = |column: &Option<Column<'_>>| column.as_ref().map_or(Ok(None), number);
        let of = name.text(&rows.columns, &group)?;
        Series::named(&mut owners, of.clone());
        for (at, column) in ys.iter().enumerate() {
            let line = if ys.len() == 1 { of.clone() } else { format!("{of}, {}", column.heading) };
            let line = Series::named(&mut series, line);
            line.is_dashed = at > 0;
            line.signs = match (has("style", "markers"), has("style", "line")) {
                (true, _) => Signs::Markers,
                (_, true) => Signs::Line,
                _ => Signs::LineAndMarkers,
            };
            if let (Some(x), Some(y)) = (number(&x)?, number(column)?) {
                let interval = if at == 0 { optional(&low)?.zip(optional(&high)?) } else { None };
                let is_hollow = optional(&hollow)? == Some(1.0);
                line.points.push(Point { x, y, is_hollow, interval });
            }
        }
    }
    let is_policy = |owner: &Series| PolicyKind::ALL.iter().any(|kind| kind.name() == owner.name);
    let owners = if owners.iter().any(is_policy) { with_looks(owners) } else { owners };
    for (at, series) in series.iter_mut().enumerate() {
        let owner = at / ys.len();
        series.look = owners[owner].look.or(Some((owner, owner)));
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
