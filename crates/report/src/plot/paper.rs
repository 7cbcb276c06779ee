//! What figures share: their size, text, markers, axes, and the SVG around them.
//!
//! plotters rounds positions to whole numbers, so that a unit is a tenth of a pixel.

use std::io;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::axis::Axis;
use super::look::{GRID, INK, Look, MARKERS, PAPER, shade};
use crate::text::wrapped;

pub(crate) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(crate) type Panel<'a> = ChartContext<'a, SVGBackend<'a>, Cartesian2d<Axis, Axis>>;
pub(crate) type Drawn<T = ()> = Result<T, DrawingAreaErrorKind<io::Error>>;
pub(crate) type Position = (i32, i32);

pub(crate) const LABEL: i32 = 140;
pub(crate) const TICK: i32 = 130;
/// Height of the texts below a panel.
pub(crate) const BELOW: i32 = 440;
/// Width of a character per text size, slightly above the mean of fonts without serifs.
const CHARACTER: f64 = 0.58;
/// plotters does not write dashes. This opacity, which nothing else has, stands for them.
const DASHES: f64 = 0.999;

/// A figure's height and the elements of its SVG. `draw` gets paper of this width without an end, and returns the height.
pub(crate) fn drawn(width: i32, draw: impl FnOnce(&Area<'_>) -> Drawn<i32>) -> (i32, String) {
    let mut svg = String::new();
    let area = SVGBackend::with_string(&mut svg, (width.unsigned_abs(), 1_000_000)).into_drawing_area();
    let height = draw(&area).expect("drawing into memory does not fail");
    drop(area);
    let elements = svg.split_once(">\n").and_then(|(_, rest)| rest.strip_suffix("</svg>\n")).unwrap_or_default();
    let dashes = format!(" opacity=\"{DASHES}\"");
    (height, elements.replace(&dashes, " stroke-dasharray=\"60 40\"").replace(" opacity=\"1\"", ""))
}

fn text_width(text: &str, size: i32) -> i32 {
    (CHARACTER * f64::from(size) * text.chars().count() as f64) as i32
}

pub(crate) fn widest<'a>(texts: impl IntoIterator<Item = &'a String>) -> i32 {
    texts.into_iter().map(|text| text_width(text, TICK)).max().unwrap_or(0)
}

fn font(size: i32) -> TextStyle<'static> {
    // The SVG of plotters divides sizes by this number.
    TextStyle::from(FontDesc::new(FontFamily::SansSerif, 1.24 * f64::from(size), FontStyle::Normal)).color(&INK)
}

/// Draws text that is vertically centred at its position.
pub(crate) fn text(area: &Area<'_>, text: &str, at: Position, size: i32, anchor: HPos) -> Drawn {
    area.draw_text(text, &font(size).pos(Pos::new(anchor, VPos::Center)), at)
}

/// Draws text below a position, as wide as this, and returns the height behind it.
pub(crate) fn paragraph(area: &Area<'_>, words: &str, (x, mut y): Position, size: i32, width: i32) -> Drawn<i32> {
    let lines = wrapped(words, (f64::from(width) / (CHARACTER * f64::from(size))) as usize);
    for line in lines.into_iter().filter(|line| !line.is_empty()) {
        text(area, &line, (x, y + size * 6 / 10), size, HPos::Left)?;
        y += size * 13 / 10;
    }
    Ok(y)
}

pub(crate) fn dashed(colour: &impl Color) -> RGBAColor {
    colour.mix(DASHES)
}

pub(crate) fn line(area: &Area<'_>, points: &[Position], colour: &impl Color, width: u32) -> Drawn {
    area.draw(&PathElement::new(points, ShapeStyle::from(colour).stroke_width(width)))
}

pub(crate) fn marker(area: &Area<'_>, (x, y): Position, (colour, shape): Look, is_hollow: bool) -> Drawn {
    let (ink, corners) = (shade(colour), MARKERS[shape % MARKERS.len()]);
    let (fill, size) = if is_hollow { (PAPER, 40.0) } else { (ink, 46.0) };
    if corners.is_empty() {
        area.draw(&Circle::new((x, y), size as u32, fill.filled()))?;
        return if is_hollow { area.draw(&Circle::new((x, y), 40, ink.stroke_width(15))) } else { Ok(()) };
    }
    let corner = |(dx, dy): &(f64, f64)| (x + (size * dx) as i32, y + (size * dy) as i32);
    let corners: Vec<Position> = corners.iter().chain(&corners[..2]).map(corner).collect();
    area.draw(&Polygon::new(&corners[2..], fill.filled()))?;
    // The outline closes with a whole corner.
    if is_hollow { line(area, &corners, &ink, 15) } else { Ok(()) }
}

/// Draws axes and grid lines between these heights, from `left` to `right`. Only a panel with a label has horizontal ticks;
/// texts that would overlap are left out.
pub(crate) fn panel<'a>(
    area: &Area<'a>,
    [top, bottom]: [i32; 2],
    [left, right]: [i32; 2],
    (mut x, y): (Axis, Axis),
    x_label: Option<&str>,
) -> Drawn<Panel<'a>> {
    let (width, height) = area.dim_in_pixel();
    let below = if x_label.is_some() { BELOW } else { 0 };
    let mut end = i32::MIN;
    for i in 0..x.ticks.len() {
        let (at, half) = (x.map(&x.ticks[i].0, (left, right)), text_width(&x.ticks[i].1, TICK) / 2);
        if at - half > end { end = at + half + 50 } else { x.ticks[i].1.clear() }
    }
    let mut panel = ChartBuilder::on(area)
        .margin_top(top)
        .margin_bottom(height as i32 - bottom - below)
        .margin_right(width as i32 - right)
        .x_label_area_size(below)
        .y_label_area_size(left)
        .build_cartesian_2d(x, y)?;
    let mut mesh = panel.configure_mesh();
    mesh.bold_line_style(GRID.stroke_width(10)).light_line_style(TRANSPARENT).axis_style(INK.stroke_width(10));
    mesh.label_style(font(TICK)).axis_desc_style(font(LABEL)).set_all_tick_mark_size(30);
    mesh.x_desc(x_label.unwrap_or_default()).draw()?;
    Ok(panel)
}
