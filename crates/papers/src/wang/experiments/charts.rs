//! Charts of the figures: lines by cache policy.

use crate::{Chart, Line};

/// A line that was measured, modelled or counted here.
pub(super) fn line(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.into(), is_papers: false, colour, points }
}

/// A line as the paper's text tells it.
pub(super) fn papers_line(name: impl Into<String>, colour: usize, points: Vec<(f64, f64)>) -> Line {
    Line { name: name.into(), is_papers: true, colour, points }
}

/// A chart of figure `number` with linear axes.
pub(super) fn chart(
    stem: &'static str,
    title: &str,
    number: u32,
    x_label: &str,
    y_label: &str,
    lines: Vec<Line>,
) -> Chart {
    Chart {
        stem: stem.to_owned(),
        title: format!("{title} (Wang et al., figure {number})"),
        x_label: x_label.to_owned(),
        y_label: y_label.to_owned(),
        is_x_log: false,
        is_y_log: false,
        lines,
    }
}
