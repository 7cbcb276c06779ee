//! Draws charts of lines, points and bars.

use plotters::element::Circle;
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

use super::axis::Axis;
use super::look::{INK, shade};
use super::paper::{Area, BELOW, Drawn, LABEL, Position, TICK, dashed, line, marker, panel, paragraph, text, widest};
use crate::figure::{LineChart, Look, Series, Signs};
use crate::number;

/// The height of a row, and the widths of a column of the legend and of the sample in it.
const ROW: i32 = 250;
const COLUMN: i32 = 2100;
const SAMPLE: i32 = 340;
/// Markers without a line become small dots if they are more than this.
const MOST_MARKERS: usize = 80;

impl LineChart {
    fn axes(&self) -> (Axis, Axis) {
        let (mut xs, mut ys): (Vec<f64>, Vec<f64>) = self.points().map(|point| (point.x, point.y)).unzip();
        let mut own: Vec<f64> = xs.iter().copied().filter(|x| number::text(*x, 2) == number::text(*x, 9)).collect();
        let has_own = own.len() == xs.len() && !self.has_diagonal && self.rows.is_empty();
        own.sort_by(f64::total_cmp);
        own.dedup();
        xs.extend(self.vertical.iter().map(|(x, _)| *x));
        ys.extend(self.horizontal.iter().chain(self.y_ticks.first()).chain(self.y_ticks.last()).map(|(y, _)| *y));
        if self.has_diagonal {
            xs.extend(&ys);
            ys.clone_from(&xs);
        }
        if !self.rows.is_empty() {
            let highs = self.points().filter_map(|point| point.interval).map(|(_, high)| high);
            xs.extend(highs.chain((!self.is_x_log).then_some(0.0)));
        }
        let (x, mut y) = (Axis::new(xs, self.is_x_log), Axis::new(ys, self.is_y_log));
        if !self.y_ticks.is_empty() {
            y.ticks.clone_from(&self.y_ticks);
        }
        // Few round values of all points become the ticks.
        let x = if has_own && (2..=6).contains(&own.len()) { x.with_ticks(&own) } else { x };
        (x, if self.rows.is_empty() { y } else { Axis::rows(self.rows.iter().map(|[name, _]| name)) })
    }

    /// Draws the chart from `at` on, and returns the height behind it.
    pub(crate) fn draw(&self, area: &Area<'_>, at: i32, height: i32) -> Drawn<i32> {
        let (width, axes) = (area.dim_in_pixel().0 as i32, self.axes());
        let at = paragraph(area, &self.y_label, (60, at), LABEL, width - 120)?;
        // The meaning of a vertical line stands between the label and the plotted area.
        let top = at + if self.vertical.is_some() { 260 } else { 120 };
        let bottom = top + if self.rows.is_empty() { height } else { ROW * self.rows.len() as i32 };
        let half = widest(axes.0.ticks.last().map(|(_, text)| text)) / 2;
        let margin = half.max(widest(self.rows.iter().map(|[_, value]| value)) + 60) + 80;
        let sides = [widest(axes.1.ticks.iter().map(|(_, text)| text)) + 140, width - margin];
        self.plotted(area, &axes, [top, bottom], sides)?;
        let mut at = bottom + BELOW + 60;
        let columns = width / COLUMN;
        let indexed: Vec<(usize, &Series)> = self.series.iter().enumerate().filter(|_| self.rows.is_empty()).collect();
        for row in indexed.chunks(columns as usize) {
            let mut end = at;
            for (place, &(index, series)) in row.iter().enumerate() {
                let x = 60 + width / columns * place as i32;
                end = end.max(paragraph(area, &series.name, (x + SAMPLE, at), LABEL, width / columns - SAMPLE - 60)?);
                let sample = [(x, at + LABEL * 6 / 10), (x + SAMPLE - 80, at + LABEL * 6 / 10)];
                if series.signs != Signs::Markers {
                    stroke(area, &sample, index, series)?;
                }
                if series.signs != Signs::Line {
                    marker(area, ((sample[0].0 + sample[1].0) / 2, sample[0].1), look(index, series), false)?;
                }
            }
            at = end + 10;
        }
        Ok(at)
    }

    fn plotted(&self, area: &Area<'_>, axes: &(Axis, Axis), heights: [i32; 2], sides: [i32; 2]) -> Drawn {
        let ([top, bottom], [left, right], is_lines) = (heights, sides, self.rows.is_empty());
        let panel = panel(area, heights, sides, axes.clone(), Some(&self.x_label))?;
        let place = |x, y| panel.backend_coord(&(x, y));
        if self.has_diagonal {
            line(area, &[(left, bottom), (right, top)], &dashed(&INK), 10)?;
        }
        for (index, series) in self.series.iter().enumerate() {
            let (look, ink) = (look(index, series), shade(look(index, series).0));
            let shown = series.points.iter().filter(|point| axes.0.can_show(point.x) && axes.1.can_show(point.y));
            let shown: Vec<_> = shown.map(|point| (place(point.x, point.y), point)).collect();
            let places: Vec<Position> = shown.iter().map(|(place, _)| *place).collect();
            let is_cloud = series.signs == Signs::Markers && shown.len() > MOST_MARKERS;
            if is_lines && series.signs != Signs::Markers {
                stroke(area, &places, index, series)?;
            }
            for ((x, y), point) in shown {
                if is_cloud {
                    area.draw(&Circle::new((x, y), 20, ink.mix(0.45).filled()))?;
                    continue;
                }
                if !is_lines && series.signs != Signs::Markers {
                    // Lengths mean nothing on a logarithmic axis, so only a thin line leads to the value.
                    line(area, &[(left, y), (x, y)], &ink.mix(0.6), if self.is_x_log { 10 } else { 90 })?;
                }
                if let Some((low, high)) = point.interval {
                    let ends =
                        [low, high].map(|end| if is_lines { (x, place(0.0, end).1) } else { (place(end, 0.0).0, y) });
                    whisker(area, (x, y), ends, &if is_lines { ink } else { INK })?;
                }
                if series.signs != Signs::Line {
                    marker(area, (x, y), look, point.is_hollow)?;
                }
            }
        }
        if let Some((x, name)) = &self.vertical {
            let (x, _) = place(*x, 0.0);
            line(area, &[(x, top - 40), (x, bottom)], &dashed(&INK), 10)?;
            text(area, name, (x, top - 120), TICK, if x > (left + right) / 2 { HPos::Right } else { HPos::Left })?;
        }
        if let Some((y, name)) = &self.horizontal {
            let (_, y) = place(0.0, *y);
            line(area, &[(left, y), (right, y)], &dashed(&INK), 10)?;
            // The text stands below the line if there is no room above.
            text(area, name, (left + 60, if y - top < 160 { y + 90 } else { y - 90 }), TICK, HPos::Left)?;
        }
        for (row, [_, value]) in self.rows.iter().enumerate() {
            text(area, value, (area.dim_in_pixel().0 as i32 - 30, place(0.0, row as f64).1), TICK, HPos::Right)?;
        }
        Ok(())
    }
}

fn look(index: usize, series: &Series) -> Look {
    series.look.unwrap_or((index, index))
}

fn stroke(area: &Area<'_>, places: &[Position], index: usize, series: &Series) -> Drawn {
    let ink = shade(look(index, series).0);
    if series.is_dashed { line(area, places, &dashed(&ink), 20) } else { line(area, places, &ink, 20) }
}

/// Draws an interval around a position, unless the marker there hides it.
fn whisker(area: &Area<'_>, (x, y): Position, ends: [Position; 2], colour: &impl Color) -> Drawn {
    if ends.iter().all(|end| (end.0 - x).abs().max((end.1 - y).abs()) <= 40) {
        return Ok(());
    }
    let (dx, dy) = if ends[0].0 == ends[1].0 { (40, 0) } else { (0, 40) };
    let caps = ends.map(|(x, y)| [(x - dx, y - dy), (x + dx, y + dy)]);
    caps.iter().chain([&ends]).try_for_each(|bar| line(area, bar, colour, 10))
}
