//! Lines, shapes and text of figures, written as SVG.

use std::fmt::Write as _;

use super::look::{Colour, MARKERS, Medium, Stroke};
use crate::text::{escaped, wrapped};

pub(crate) const TITLE_SIZE: f64 = 17.0;
pub(crate) const LABEL_SIZE: f64 = 14.0;
pub(crate) const TICK_SIZE: f64 = 13.0;
pub(crate) const LINE_HEIGHT: f64 = 19.0;
/// Width of a character per text size, slightly above the mean of fonts without serifs.
const CHARACTER: f64 = 0.58;
/// Half of a marker's width.
const MARKER: f64 = 4.0;

/// A position on the canvas: across from the left, down from the top.
pub(crate) type Position = (f64, f64);

/// A drawn figure and its texts.
#[derive(Debug)]
pub(crate) struct Drawing {
    pub(crate) title: String,
    /// Description for readers who can't see the figure.
    pub(crate) description: String,
    /// Explanation of the figure's signs.
    pub(crate) note: String,
    pub(crate) canvas: Canvas,
}

impl Drawing {
    /// The figure as an SVG file on white paper.
    pub(crate) fn file(&self) -> String {
        let Canvas { width, height, svg, .. } = &self.canvas;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"sans-serif\" role=\"img\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{svg}</svg>\n",
            escaped(&self.title),
            escaped(&self.description),
        )
    }

    /// The figure as a part of a page, with title, note and an `id` that is unique on the page.
    pub(crate) fn html(&self, id: &str) -> String {
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        let Canvas { width, height, svg, .. } = &self.canvas;
        let note = if self.note.is_empty() { "" } else { &format!("<p class=\"note\">{}</p>", escaped(&self.note)) };
        format!(
            "<figure id=\"{id}\"><figcaption>{title}</figcaption><svg class=\"chart\" viewBox=\"0 0 {width:.0} {height:.0}\" \
             role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{title}</title>\
             <desc id=\"{id}-d\">{description}</desc>\n{svg}</svg>{note}</figure>\n"
        )
    }
}

pub(crate) fn text_width(text: &str, size: f64) -> f64 {
    CHARACTER * size * text.chars().count() as f64
}

pub(crate) fn fitted(text: &str, size: f64, width: f64) -> Vec<String> {
    wrapped(text, (width / (CHARACTER * size)) as usize)
}

/// The end of a text that is at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

#[derive(Clone, Debug)]
pub(crate) struct Canvas {
    medium: Medium,
    pub(crate) width: f64,
    height: f64,
    svg: String,
}

impl Canvas {
    pub(crate) fn new(medium: Medium, height: f64) -> Self {
        Self { medium, width: medium.width(), height, svg: String::new() }
    }

    /// Appends an element that ends in these attributes.
    fn element(&mut self, start: std::fmt::Arguments<'_>, end: &str) {
        let _ = writeln!(self.svg, "<{start}{end}/>");
    }

    fn fill(&self, colour: Colour, opacity: f64) -> String {
        let opacity = if opacity < 1.0 { format!(" fill-opacity=\"{opacity}\"") } else { String::new() };
        format!(" fill=\"{}\"{opacity}", colour.css(self.medium))
    }

    fn stroke(&self, colour: Colour, width: f64) -> String {
        format!(" stroke=\"{}\" stroke-width=\"{width}\"", colour.css(self.medium))
    }

    pub(crate) fn line(&mut self, positions: &[Position], colour: Colour, width: f64, stroke: Stroke) {
        let dashes = if stroke == Stroke::Dashed { " stroke-dasharray=\"6 4\"" } else { "" };
        let style = self.stroke(colour, width);
        self.element(format_args!("polyline points=\"{}\" fill=\"none\"", points(positions)), &(style + dashes));
    }

    pub(crate) fn area(&mut self, corners: &[Position], colour: Colour, opacity: f64) {
        let style = self.fill(colour, opacity);
        self.element(format_args!("polygon points=\"{}\"", points(corners)), &style);
    }

    pub(crate) fn block(&mut self, (x, y): Position, (x2, y2): Position, colour: Colour, opacity: f64) {
        let style = self.fill(colour, opacity);
        let start = format_args!("rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\"", x2 - x, y2 - y);
        self.element(start, &style);
    }

    pub(crate) fn dot(&mut self, (x, y): Position, radius: f64, colour: Colour, opacity: f64) {
        let style = self.fill(colour, opacity);
        self.element(format_args!("circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{radius}\""), &style);
    }

    /// The marker of a look, which is a colour and a shape.
    pub(crate) fn marker(&mut self, (x, y): Position, look: (usize, usize), is_hollow: bool) {
        let (ink, shape) = (Colour::Series(look.0), MARKERS[look.1 % MARKERS.len()]);
        let style = self.fill(if is_hollow { Colour::Paper } else { ink }, 1.0) + &self.stroke(ink, 1.5);
        if shape.is_empty() {
            return self.element(format_args!("circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{MARKER}\""), &style);
        }
        let corners: Vec<Position> = shape.iter().map(|(dx, dy)| (x + MARKER * dx, y + MARKER * dy)).collect();
        self.element(format_args!("polygon points=\"{}\"", points(&corners)), &style);
    }

    /// A line of text, vertically centred at its position.
    pub(crate) fn text(&mut self, text: &str, (x, y): Position, size: f64, anchor: Anchor) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let (fill, y) = (self.fill(Colour::Ink, 1.0), y + 0.35 * size);
        let text = escaped(text);
        let _ = writeln!(
            self.svg,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{fill}>{text}</text>"
        );
    }

    /// Grid lines and numbers of a horizontal axis. Numbers that would overlap are left out.
    pub(crate) fn ticks_below(
        &mut self,
        ticks: &[(f64, String)],
        across: impl Fn(f64) -> Option<f64>,
        (top, bottom): (f64, f64),
    ) {
        let mut end = f64::NEG_INFINITY;
        for (tick, text) in ticks {
            let Some(x) = across(*tick) else { continue };
            self.line(&[(x, top), (x, bottom)], Colour::Grid, 1.0, Stroke::Solid);
            let half = text_width(text, TICK_SIZE) / 2.0;
            if x - half > end + 5.0 {
                self.text(text, (x, bottom + 13.0), TICK_SIZE, Anchor::Middle);
                end = x + half;
            }
        }
    }

    /// A dashed vertical line, and its meaning above it.
    pub(crate) fn upright(&mut self, x: f64, (top, bottom): (f64, f64), name: &str) {
        self.line(&[(x, top - 4.0), (x, bottom)], Colour::Ink, 1.0, Stroke::Dashed);
        let anchor = if x > self.width / 2.0 { Anchor::End } else { Anchor::Start };
        self.text(name, (x, top - 12.0), TICK_SIZE, anchor);
    }
}

fn points(positions: &[Position]) -> String {
    positions.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}
