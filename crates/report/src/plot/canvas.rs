//! What figures are put together from, drawn by plotters as SVG.

use std::io;

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::Stroke;
use super::look::{GRID, INK, MARKERS, PAPER, colour, themed};
use crate::text::{escaped, wrapped};

/// Plotters places by whole units: each is a tenth of those here.
const UNIT: f64 = 10.0;
/// Sizes of text: a title, labels and the legend, ticks.
pub(super) const TITLE_SIZE: f64 = 17.0;
pub(super) const LABEL_SIZE: f64 = 14.0;
pub(super) const TICK_SIZE: f64 = 13.0;
/// The height of a line of labels or the legend.
pub(super) const LINE_HEIGHT: f64 = 19.0;
/// Width of a character, of the height of its font: somewhat more than fonts without serifs need on average.
const CHARACTER: f64 = 0.58;
/// Lengths of a dash and of the gap after it.
const DASH: (f64, f64) = (6.0, 4.0);
/// Half of a marker's width.
const MARKER: f64 = 4.0;

/// A place on the canvas: across from the left, down from the top.
pub(super) type Place = (f64, f64);

/// Where a figure stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// In a file by itself: with title, subtitle and note.
    File,
    /// In a page, which has title and note as text around it, and narrow enough for a phone.
    Page,
}

impl Medium {
    /// The width of the canvas.
    pub(super) fn width(self) -> f64 {
        match self {
            Self::File => 760.0,
            Self::Page => 440.0,
        }
    }
}

/// A figure that is drawn, and its words.
#[derive(Debug)]
pub(crate) struct Drawing {
    pub(crate) title: String,
    /// What a person who doesn't see it should know.
    pub(crate) description: String,
    /// What its signs mean.
    pub(crate) note: String,
    pub(super) size: Place,
    /// What is inside of the SVG.
    pub(super) inside: io::Result<String>,
}

impl Drawing {
    /// As an SVG file on white paper.
    pub(super) fn file(self) -> io::Result<String> {
        let (inside, (width, height)) = (self.inside?, self.size);
        Ok(format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" viewBox=\"{}\" role=\"img\">\n\
             <title>{}</title>\n<desc>{}</desc>\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{inside}</svg>\n",
            view_box(self.size),
            escaped(&self.title),
            escaped(&self.description),
        ))
    }

    /// As a part of a page, with its title, its note and an `id` that is unique there.
    pub(crate) fn html(&self, id: &str) -> String {
        let (title, description) = (escaped(&self.title), escaped(&self.description));
        let svg = match &self.inside {
            Ok(inside) => format!(
                "<svg class=\"chart\" viewBox=\"{}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\"><title id=\"{id}-t\">{title}</title>\
                 <desc id=\"{id}-d\">{description}</desc>\n{}</svg>",
                view_box(self.size),
                themed(inside)
            ),
            Err(e) => format!("<p class=\"note\">{}</p>", escaped(&e.to_string())),
        };
        let note =
            if self.note.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>", escaped(&self.note)) };
        format!("<figure id=\"{id}\"><figcaption>{title}</figcaption>{svg}{note}</figure>\n")
    }
}

fn view_box((width, height): Place) -> String {
    format!("0 0 {:.0} {:.0}", width * UNIT, height * UNIT)
}

/// About how wide a text is.
pub(super) fn text_width(text: &str, size: f64) -> f64 {
    CHARACTER * size * text.chars().count() as f64
}

/// Lines of text that fit a width.
pub(super) fn fitted(text: &str, size: f64, width: f64) -> Vec<String> {
    wrapped(text, (width / (CHARACTER * size)) as usize)
}

/// Which end of a text is at its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Anchor {
    Start,
    Middle,
    End,
}

/// What is drawn on.
pub(super) struct Canvas<'a> {
    svg: SVGBackend<'a>,
    outcome: io::Result<()>,
}

impl Canvas<'_> {
    /// What `draw` puts on a canvas of this size, as the inside of an SVG.
    pub(super) fn inside((width, height): Place, draw: impl FnOnce(&mut Canvas<'_>)) -> io::Result<String> {
        let mut svg = String::new();
        {
            let backend = SVGBackend::with_string(&mut svg, ((width * UNIT) as u32, (height * UNIT) as u32));
            let mut canvas = Canvas { svg: backend, outcome: Ok(()) };
            draw(&mut canvas);
            let end = canvas.svg.present();
            canvas.keep(end);
            canvas.outcome?;
        }
        let inside = svg.split_once('>').and_then(|(_, rest)| rest.rsplit_once("</svg>"));
        Ok(inside.map_or("", |(inside, _)| inside).trim_start().replace(" opacity=\"1\"", ""))
    }

    pub(super) fn width(&self) -> f64 {
        f64::from(self.svg.get_size().0) / UNIT
    }

    /// Keeps the first error.
    fn keep<E: std::error::Error>(&mut self, outcome: Result<(), E>) {
        if let (Ok(()), Err(e)) = (&self.outcome, outcome) {
            self.outcome = Err(io::Error::other(format!("cannot draw: {e}")));
        }
    }

    /// A line through places.
    pub(super) fn line(&mut self, places: &[Place], colour: impl Color, width: f64, stroke: Stroke) {
        let style = colour.stroke_width((width * UNIT) as u32);
        let pieces = match stroke {
            Stroke::Solid => vec![places.to_vec()],
            Stroke::Dashed => dashes(places),
        };
        for piece in pieces.into_iter().filter(|piece| piece.len() > 1) {
            let drawn = self.svg.draw_path(piece.into_iter().map(units), &style);
            self.keep(drawn);
        }
    }

    /// A filled area.
    pub(super) fn area(&mut self, corners: &[Place], colour: impl Color) {
        let drawn = self.svg.fill_polygon(corners.iter().copied().map(units), &colour.filled());
        self.keep(drawn);
    }

    /// A filled rectangle.
    pub(super) fn block(&mut self, upper_left: Place, lower_right: Place, colour: impl Color) {
        let drawn = self.svg.draw_rect(units(upper_left), units(lower_right), &colour.filled(), true);
        self.keep(drawn);
    }

    /// A filled circle.
    pub(super) fn dot(&mut self, at: Place, radius: f64, colour: impl Color) {
        let drawn = self.svg.draw_circle(units(at), (radius * UNIT) as u32, &colour.filled(), true);
        self.keep(drawn);
    }

    /// The marker of a look.
    pub(super) fn marker(&mut self, (x, y): Place, look: (usize, usize), is_hollow: bool) {
        let (ink, shape) = (colour(look.0), MARKERS[look.1 % MARKERS.len()]);
        let fill = if is_hollow { PAPER } else { ink };
        if shape.is_empty() {
            self.dot((x, y), MARKER, fill);
            let ring = self.svg.draw_circle(units((x, y)), (MARKER * UNIT) as u32, &ink.stroke_width(15), false);
            self.keep(ring);
            return;
        }
        let mut outline: Vec<Place> = shape.iter().map(|(dx, dy)| (x + MARKER * dx, y + MARKER * dy)).collect();
        self.area(&outline, fill);
        outline.push(outline[0]);
        self.line(&outline, ink, 1.5, Stroke::Solid);
    }

    /// A line of text; its place is at the middle of its height.
    pub(super) fn text(&mut self, text: &str, at: Place, size: f64, anchor: Anchor) {
        let h_pos = match anchor {
            Anchor::Start => HPos::Left,
            Anchor::Middle => HPos::Center,
            Anchor::End => HPos::Right,
        };
        // Plotters divides sizes by 1.24.
        let font = ("sans-serif", 1.24 * size * UNIT).into_font();
        let style = TextStyle::from(font).color(&INK).pos(Pos { h_pos, v_pos: VPos::Center });
        let drawn = self.svg.draw_text(text, &style, units(at));
        self.keep(drawn);
    }

    /// Lines of the grid and their numbers, of an axis along the bottom. Numbers for which there is no room are left out.
    pub(super) fn ticks_below(
        &mut self,
        ticks: &[(f64, String)],
        across: impl Fn(f64) -> Option<f64>,
        (top, bottom): (f64, f64),
    ) {
        let mut end = f64::NEG_INFINITY;
        for (tick, text) in ticks {
            let Some(x) = across(*tick) else { continue };
            self.line(&[(x, top), (x, bottom)], GRID, 1.0, Stroke::Solid);
            let half = text_width(text, TICK_SIZE) / 2.0;
            if x - half > end + 5.0 {
                self.text(text, (x, bottom + 13.0), TICK_SIZE, Anchor::Middle);
                end = x + half;
            }
        }
    }

    /// A dashed line upwards, and above it what it means.
    pub(super) fn upright(&mut self, x: f64, (top, bottom): (f64, f64), name: &str) {
        self.line(&[(x, top - 4.0), (x, bottom)], INK, 1.0, Stroke::Dashed);
        let anchor = if x > self.width() / 2.0 { Anchor::End } else { Anchor::Start };
        self.text(name, (x, top - 12.0), TICK_SIZE, anchor);
    }
}

fn units((x, y): Place) -> (i32, i32) {
    ((x * UNIT).round() as i32, (y * UNIT).round() as i32)
}

/// Cuts a path into dashes whose lengths run on around its corners.
fn dashes(places: &[Place]) -> Vec<Vec<Place>> {
    let mut pieces = Vec::new();
    let mut piece: Vec<Place> = places.first().copied().into_iter().collect();
    let mut is_dash = true;
    let mut left = DASH.0;
    for pair in places.windows(2) {
        let (from, to) = (pair[0], pair[1]);
        let length = (to.0 - from.0).hypot(to.1 - from.1);
        let mut walked = 0.0;
        while length - walked > left {
            walked += left;
            let share = walked / length;
            let place = (from.0 + share * (to.0 - from.0), from.1 + share * (to.1 - from.1));
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
            piece.push(to);
        }
    }
    pieces.push(piece);
    pieces
}
