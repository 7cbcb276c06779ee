//! Puts a chart on a canvas.

use std::io;
use std::sync::OnceLock;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::{LineChart, Series, Stroke};
use crate::report::axis::{Axis, tick_text};
use crate::report::wrap::wrapped;

/// The canvas of the SVG, in its units.
const SIZE: (u32, u32) = (960, 540);
/// Pixels of the PNG a unit: sharp on screens of high density.
const PNG_SCALE: u32 = 2;
/// Room around the lines: left, top, right (the legend), bottom.
const MARGIN: (i32, i32, i32, i32) = (90, 52, 220, 66);
/// Sizes of text.
const TITLE_SIZE: i32 = 19;
const LABEL_SIZE: i32 = 16;
const TICK_SIZE: i32 = 14;
/// Half of a marker's width.
const MARKER: i32 = 4;
/// Lengths of a dash and of the gap after it.
const DASH: (f64, f64) = (7.0, 5.0);

/// How many characters a line of the legend holds, for a name and for the note, whatever font draws it.
const NAME_WIDTH: usize = 19;
const NOTE_WIDTH: usize = 26;

/// Okabe and Ito's palette, with grey for its black and wine for its yellow, which is too light on white, and four more.
const PALETTE: [RGBColor; 12] = [
    RGBColor(0, 114, 178),
    RGBColor(213, 94, 0),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(60, 60, 60),
    RGBColor(136, 34, 85),
    RGBColor(128, 128, 0),
    RGBColor(68, 51, 153),
    RGBColor(153, 102, 51),
    RGBColor(17, 119, 119),
];
const GRID: RGBColor = RGBColor(225, 225, 225);
const INK: RGBColor = RGBColor(40, 40, 40);

/// The chart as SVG text.
pub(super) fn svg(chart: &LineChart) -> io::Result<String> {
    register_font()?;
    let mut text = String::new();
    {
        let area = SVGBackend::with_string(&mut text, SIZE).into_drawing_area();
        Canvas { area, scale: 1 }.chart(chart)?;
    }
    Ok(text)
}

/// The chart as the bytes of a PNG file.
pub(super) fn png(chart: &LineChart) -> io::Result<Vec<u8>> {
    register_font()?;
    // Plotters encodes PNG only into a file of that name.
    let file = tempfile::Builder::new().suffix(".png").tempfile()?;
    let size = (SIZE.0 * PNG_SCALE, SIZE.1 * PNG_SCALE);
    {
        let area = BitMapBackend::new(file.path(), size).into_drawing_area();
        Canvas { area, scale: PNG_SCALE as i32 }.chart(chart)?;
    }
    std::fs::read(file.path())
}

/// Gives plotters the font that travels inside the binary, once.
fn register_font() -> io::Result<()> {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    let is_registered = *REGISTERED.get_or_init(|| {
        plotters::style::register_font("sans-serif", FontStyle::Normal, epaint_default_fonts::UBUNTU_LIGHT).is_ok()
    });
    if is_registered { Ok(()) } else { Err(io::Error::other("the embedded font cannot be read")) }
}

/// A drawing area whose coordinates are the SVG's, whatever its pixels.
struct Canvas<B: DrawingBackend> {
    area: DrawingArea<B, Shift>,
    scale: i32,
}

/// Where a text's given point lies on it.
const CENTRED_BELOW: Pos = Pos { h_pos: HPos::Center, v_pos: VPos::Top };
const LEFT_OF: Pos = Pos { h_pos: HPos::Right, v_pos: VPos::Center };
const RIGHT_OF: Pos = Pos { h_pos: HPos::Left, v_pos: VPos::Center };
const CENTRED: Pos = Pos { h_pos: HPos::Center, v_pos: VPos::Center };

impl<B: DrawingBackend> Canvas<B> {
    fn chart(&self, chart: &LineChart) -> io::Result<()> {
        self.area.fill(&WHITE).map_err(io_error)?;
        let (x_axis, y_axis) = (chart.x_axis(), chart.y_axis());
        self.frame(chart, &x_axis, &y_axis)?;
        let (right, mut legend_y) = (plot_right() + 18, MARGIN.1 + 10);
        for (index, series) in chart.series.iter().enumerate() {
            let look = series.colour.unwrap_or(index);
            self.series(series, look, &x_axis, &y_axis)?;
            self.line(&[(right, legend_y), (right + 30, legend_y)], PALETTE[look % PALETTE.len()], 2, series.stroke)?;
            self.marker((right + 15, legend_y), look, false)?;
            for line in wrapped(&series.name, NAME_WIDTH) {
                self.text(&line, (right + 38, legend_y), LABEL_SIZE, RIGHT_OF, INK)?;
                legend_y += 18;
            }
            legend_y += 6;
        }
        for line in chart.note.iter().flat_map(|note| wrapped(note, NOTE_WIDTH)) {
            self.text(&line, (right, legend_y + 6), TICK_SIZE, RIGHT_OF, INK)?;
            legend_y += 18;
        }
        self.area.present().map_err(io_error)
    }

    /// Grid, ticks, labels, title and the lines across.
    fn frame(&self, chart: &LineChart, x_axis: &Axis, y_axis: &Axis) -> io::Result<()> {
        let (left, top, right, bottom) = (MARGIN.0, MARGIN.1, plot_right(), plot_bottom());
        for &tick in x_axis.ticks() {
            let x = across(x_axis, tick);
            self.line(&[(x, top), (x, bottom)], GRID, 1, Stroke::Solid)?;
            self.text(&tick_text(tick), (x, bottom + 8), TICK_SIZE, CENTRED_BELOW, INK)?;
        }
        for &tick in y_axis.ticks() {
            let y = up(y_axis, tick);
            self.line(&[(left, y), (right, y)], GRID, 1, Stroke::Solid)?;
            self.text(&tick_text(tick), (left - 8, y), TICK_SIZE, LEFT_OF, INK)?;
        }
        self.line(&[(left, top), (left, bottom), (right, bottom)], INK, 1, Stroke::Solid)?;
        // A letter is about half as wide as it is high: long titles, of machines with long names, get smaller ones.
        let most = 2 * (SIZE.0 as i32 - left) / chart.title.chars().count().max(1) as i32;
        let height = if chart.subtitle.is_empty() { top / 2 } else { top / 3 };
        self.text(&chart.title, (left, height), TITLE_SIZE.min(most), RIGHT_OF, INK)?;
        let most = 2 * (SIZE.0 as i32 - left) / chart.subtitle.chars().count().max(1) as i32;
        self.text(&chart.subtitle, (left, top * 3 / 4), TICK_SIZE.min(most), RIGHT_OF, INK)?;
        self.text(&chart.x_label, ((left + right) / 2, bottom + 34), LABEL_SIZE, CENTRED_BELOW, INK)?;
        self.rotated_text(&chart.y_label, (22, (top + bottom) / 2))?;
        if let Some((value, name)) = &chart.vertical {
            let x = across(x_axis, *value);
            self.line(&[(x, top), (x, bottom)], INK, 1, Stroke::Dashed)?;
            self.text(name, (x, top - 20), TICK_SIZE, CENTRED_BELOW, INK)?;
        }
        if let Some((value, name)) = &chart.horizontal {
            let y = up(y_axis, *value);
            self.line(&[(left, y), (right, y)], INK, 1, Stroke::Dashed)?;
            self.text(name, (left + 6, y - 10), TICK_SIZE, RIGHT_OF, INK)?;
        }
        Ok(())
    }

    fn series(&self, series: &Series, look: usize, x_axis: &Axis, y_axis: &Axis) -> io::Result<()> {
        let is_shown = |p: &&super::Point| x_axis.position(p.x).is_some() && y_axis.position(p.y).is_some();
        let shown: Vec<_> = series.points.iter().filter(is_shown).collect();
        let places: Vec<(i32, i32)> = shown.iter().map(|p| (across(x_axis, p.x), up(y_axis, p.y))).collect();
        self.line(&places, PALETTE[look % PALETTE.len()], 2, series.stroke)?;
        for (&(x, y), point) in places.iter().zip(&shown) {
            let Some((low, high)) = point.interval else { continue };
            // On a logarithmic axis an interval may reach below what can be shown.
            let end = |value: f64| {
                y_axis.position(value).map_or(plot_bottom(), |_| up(y_axis, value)).clamp(MARGIN.1, plot_bottom())
            };
            let (low, high) = (end(low), end(high));
            if (low - y).abs().max((high - y).abs()) > MARKER {
                let colour = PALETTE[look % PALETTE.len()];
                let bars = [[(x, low), (x, high)], [(x - 4, low), (x + 4, low)], [(x - 4, high), (x + 4, high)]];
                bars.iter().try_for_each(|bar| self.line(bar, colour, 1, Stroke::Solid))?;
            }
        }
        places.iter().zip(&shown).try_for_each(|(&place, point)| self.marker(place, look, point.is_hollow))
    }

    fn line(&self, points: &[(i32, i32)], colour: RGBColor, width: u32, stroke: Stroke) -> io::Result<()> {
        let style = colour.stroke_width(width * self.scale as u32);
        let pieces = match stroke {
            Stroke::Solid => vec![points.to_vec()],
            Stroke::Dashed => dashes(points),
        };
        pieces.into_iter().filter(|piece| piece.len() > 1).try_for_each(|piece| {
            let piece: Vec<_> = piece.into_iter().map(|p| self.at(p)).collect();
            self.area.draw(&PathElement::new(piece, style)).map_err(io_error)
        })
    }

    /// Neighbouring colours differ in shape, too: circle, square, triangle, diamond, triangle on its head, and again.
    fn marker(&self, (x, y): (i32, i32), look: usize, is_hollow: bool) -> io::Result<()> {
        let colour = PALETTE[look % PALETTE.len()];
        let r = MARKER;
        let corners: &[(i32, i32)] = match look % 5 {
            0 => {
                let fill = if is_hollow { WHITE } else { colour };
                let centre = self.at((x, y));
                self.area.draw(&Circle::new(centre, r * self.scale, fill.filled())).map_err(io_error)?;
                let ring = colour.stroke_width(self.scale as u32 * 3 / 2);
                return self.area.draw(&Circle::new(centre, r * self.scale, ring)).map_err(io_error);
            }
            1 => &[(-r, -r), (r, -r), (r, r), (-r, r)],
            2 => &[(0, -r - 1), (r + 1, r), (-r - 1, r)],
            4 => &[(-r - 1, -r), (r + 1, -r), (0, r + 1)],
            _ => &[(0, -r - 2), (r + 2, 0), (0, r + 2), (-r - 2, 0)],
        };
        let mut outline: Vec<_> = corners.iter().map(|(dx, dy)| self.at((x + dx, y + dy))).collect();
        let fill = if is_hollow { WHITE } else { colour };
        self.area.draw(&Polygon::new(outline.clone(), fill.filled())).map_err(io_error)?;
        outline.push(outline[0]);
        let style = colour.stroke_width(self.scale as u32 * 3 / 2);
        self.area.draw(&PathElement::new(outline, style)).map_err(io_error)
    }

    fn text(&self, text: &str, at: (i32, i32), size: i32, position: Pos, colour: RGBColor) -> io::Result<()> {
        let style = TextStyle::from(("sans-serif", size * self.scale).into_font()).color(&colour).pos(position);
        self.area.draw(&Text::new(text.to_owned(), self.at(at), style)).map_err(io_error)
    }

    fn rotated_text(&self, text: &str, at: (i32, i32)) -> io::Result<()> {
        let font = ("sans-serif", LABEL_SIZE * self.scale).into_font().transform(FontTransform::Rotate270);
        let style = TextStyle::from(font).color(&INK).pos(CENTRED);
        self.area.draw(&Text::new(text.to_owned(), self.at(at), style)).map_err(io_error)
    }

    fn at(&self, (x, y): (i32, i32)) -> (i32, i32) {
        (x * self.scale, y * self.scale)
    }
}

fn plot_right() -> i32 {
    SIZE.0 as i32 - MARGIN.2
}

fn plot_bottom() -> i32 {
    SIZE.1 as i32 - MARGIN.3
}

/// The horizontal place of a value; values that the axis can't show are filtered before.
fn across(axis: &Axis, value: f64) -> i32 {
    let share = axis.position(value).unwrap_or(0.0);
    MARGIN.0 + (share * f64::from(plot_right() - MARGIN.0)).round() as i32
}

/// The vertical place of a value.
fn up(axis: &Axis, value: f64) -> i32 {
    let share = axis.position(value).unwrap_or(0.0);
    plot_bottom() - (share * f64::from(plot_bottom() - MARGIN.1)).round() as i32
}

/// Cuts a path into dashes whose lengths run on around its corners.
fn dashes(points: &[(i32, i32)]) -> Vec<Vec<(i32, i32)>> {
    let mut pieces = Vec::new();
    let mut piece: Vec<(i32, i32)> = points.first().copied().into_iter().collect();
    let mut is_dash = true;
    let mut left = DASH.0;
    for pair in points.windows(2) {
        let [from, to] = [pair[0], pair[1]].map(|(x, y)| (f64::from(x), f64::from(y)));
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let mut walked = 0.0;
        while length - walked > left {
            walked += left;
            let share = walked / length;
            let place = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
            let place = (place.0.round() as i32, place.1.round() as i32);
            if is_dash {
                piece.push(place);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![place];
            }
            is_dash = !is_dash;
            left = if is_dash { DASH.0 } else { DASH.1 };
        }
        left -= length - walked;
        if is_dash {
            piece.push(pair[1]);
        }
    }
    pieces.push(piece);
    pieces
}

fn io_error<E: std::error::Error + Send + Sync>(e: DrawingAreaErrorKind<E>) -> io::Error {
    io::Error::other(format!("cannot draw: {e}"))
}
