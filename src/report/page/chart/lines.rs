//! Lines and points.

use std::fmt::Write as _;

use super::marker;
use super::plane::{HEIGHT, Plane, Scale, WIDTH};
use crate::report::page::html::escaped;

/// A point of a series.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::report::page) struct Place {
    pub(in crate::report::page) x: f64,
    pub(in crate::report::page) y: f64,
    /// Between which `y` surely lies, where that is known.
    pub(in crate::report::page) interval: Option<(f64, f64)>,
    /// A hollow marker: say, because queries missed their deadline here.
    pub(in crate::report::page) is_hollow: bool,
    /// What is shown beside the pointer; no marker without.
    pub(in crate::report::page) tip: String,
}

/// Points of one name.
#[derive(Clone, Debug, Default, PartialEq)]
pub(in crate::report::page) struct Series {
    pub(in crate::report::page) name: String,
    pub(in crate::report::page) look: usize,
    pub(in crate::report::page) points: Vec<Place>,
    pub(in crate::report::page) is_dashed: bool,
    /// Points of a cloud are not joined; where they are many, they are specks.
    pub(in crate::report::page) is_cloud: bool,
}

/// A chart of lines or points.
#[derive(Clone, Debug)]
pub(in crate::report::page) struct Chart {
    /// Unique in the page.
    pub(in crate::report::page) id: String,
    pub(in crate::report::page) title: String,
    /// What a person who doesn't see it should know.
    pub(in crate::report::page) description: String,
    pub(in crate::report::page) x: Scale,
    pub(in crate::report::page) y: Scale,
    pub(in crate::report::page) series: Vec<Series>,
    pub(in crate::report::page) vertical: Option<(f64, String)>,
    pub(in crate::report::page) horizontal: Option<(f64, String)>,
    /// The line on which both values are equal.
    pub(in crate::report::page) has_diagonal: bool,
    /// Below the chart: what its signs mean.
    pub(in crate::report::page) note: String,
}

impl Chart {
    pub(in crate::report::page) fn new(id: &str, title: &str, x: Scale, y: Scale) -> Self {
        Self {
            id: id.to_owned(),
            title: title.to_owned(),
            description: String::new(),
            x,
            y,
            series: Vec::new(),
            vertical: None,
            horizontal: None,
            has_diagonal: false,
            note: String::new(),
        }
    }

    fn points(&self) -> impl Iterator<Item = &Place> {
        self.series.iter().flat_map(|series| &series.points)
    }

    fn plane(&self) -> Plane {
        let marks = |mark: &Option<(f64, String)>| mark.as_ref().map(|(at, _)| *at);
        let mut xs: Vec<f64> = self.points().map(|p| p.x).chain(marks(&self.vertical)).collect();
        let mut ys: Vec<f64> = self.points().map(|p| p.y).chain(marks(&self.horizontal)).collect();
        if self.has_diagonal {
            xs.extend(self.points().map(|p| p.y));
            ys.clone_from(&xs);
        }
        Plane::new(self.x.clone(), xs.into_iter(), self.y.clone(), ys.into_iter())
    }

    /// The chart as a figure with its legend; nothing if it has no point.
    pub(in crate::report::page) fn html(&self) -> String {
        if self.points().next().is_none() {
            return String::new();
        }
        let plane = self.plane();
        let mut svg = plane.frame();
        if self.has_diagonal {
            svg += &self.diagonal(&plane);
        }
        for (index, series) in self.series.iter().enumerate() {
            svg += &drawn(series, index, &plane);
        }
        svg += &self.vertical.as_ref().map_or_else(String::new, |(at, text)| plane.vertical(*at, text));
        svg += &self.horizontal.as_ref().map_or_else(String::new, |(at, text)| plane.horizontal(*at, text));
        figure(&self.id, &self.title, &self.description, HEIGHT, &svg, &self.legend(), &self.note)
    }

    fn diagonal(&self, plane: &Plane) -> String {
        let mut ends: Vec<f64> =
            self.points().flat_map(|p| [p.x, p.y]).filter(|v| plane.place(*v, *v).is_some()).collect();
        ends.sort_by(f64::total_cmp);
        let place = |value: Option<&f64>| value.and_then(|&value| plane.place(value, value));
        match (place(ends.first()), place(ends.last())) {
            (Some((x, y)), Some((x2, y2))) => format!("<path class=\"mark\" d=\"M{x:.1} {y:.1}L{x2:.1} {y2:.1}\"/>"),
            _ => String::new(),
        }
    }

    /// Which series is which; none where there is one.
    fn legend(&self) -> String {
        if self.series.len() < 2 {
            return String::new();
        }
        let mut html = String::from("<ul class=\"legend\">");
        for (index, series) in self.series.iter().enumerate() {
            let line = if series.is_cloud {
                String::new()
            } else {
                format!("<path class=\"line{}\" d=\"M1 8H27\"/>", if series.is_dashed { " dashed" } else { "" })
            };
            let _ = write!(
                html,
                "<li data-s=\"{index}\" class=\"c{}\"><svg viewBox=\"0 0 28 16\" aria-hidden=\"true\">{line}<path class=\"dot{}\" d=\"{}\"/></svg>{}</li>",
                series.look,
                if series.is_dashed { " hollow" } else { "" },
                marker(14.0, 8.0, series.look),
                escaped(&series.name)
            );
        }
        html + "</ul>"
    }
}

/// More points of a cloud than this are specks.
const MOST_MARKERS: usize = 80;

fn drawn(series: &Series, index: usize, plane: &Plane) -> String {
    let mut svg = format!("<g class=\"series c{}\" data-s=\"{index}\">", series.look);
    let placed: Vec<((f64, f64), &Place)> =
        series.points.iter().filter_map(|p| Some((plane.place(p.x, p.y)?, p))).collect();
    // The band of what is sure: there along its lower edge, back along its upper one.
    let edge = |p: &Place, y: f64| Some((plane.across(p.x)?, plane.up(y).unwrap_or(plane.floor())));
    let known = || placed.iter().filter_map(|(_, p)| Some((*p, p.interval?)));
    let lower = known().filter_map(|(p, (low, _))| edge(p, low));
    let upper: Vec<_> = known().filter_map(|(p, (_, high))| edge(p, high)).collect();
    let around: Vec<_> = lower.chain(upper.into_iter().rev()).collect();
    if around.len() > 2 && !series.is_cloud {
        let _ = write!(svg, "<path class=\"band\" d=\"{}z\"/>", path(around.iter().copied()));
    }
    if !series.is_cloud && placed.len() > 1 {
        let class = if series.is_dashed { "line dashed" } else { "line" };
        let _ = write!(svg, "<path class=\"{class}\" d=\"{}\"/>", path(placed.iter().map(|(at, _)| *at)));
    }
    for ((x, y), point) in placed.iter().filter(|(_, p)| !p.tip.is_empty()) {
        let class = if point.is_hollow { "dot hollow" } else { "dot" };
        let (class, shape) = if series.is_cloud && series.points.len() > MOST_MARKERS {
            ("speck", format!("M{x:.1} {y:.1}h0"))
        } else {
            (class, marker(*x, *y, series.look))
        };
        let _ = write!(svg, "<path class=\"{class}\" d=\"{shape}\" data-t=\"{}\"/>", escaped(&point.tip));
    }
    svg + "</g>"
}

fn path(points: impl Iterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    for (i, (x, y)) in points.enumerate() {
        let _ = write!(d, "{}{x:.1} {y:.1}", if i == 0 { 'M' } else { 'L' });
    }
    d
}

/// A drawing with its name and description for those who don't see it, a legend and a note.
pub(super) fn figure(
    id: &str,
    title: &str,
    description: &str,
    height: f64,
    svg: &str,
    legend: &str,
    note: &str,
) -> String {
    let note = if note.is_empty() { String::new() } else { format!("<p class=\"note\">{}</p>", escaped(note)) };
    format!(
        "<figure id=\"{id}\"><figcaption>{title}</figcaption>{legend}\
         <div class=\"scroll\"><svg class=\"chart\" viewBox=\"0 0 {WIDTH} {height:.0}\" role=\"img\" aria-labelledby=\"{id}-t {id}-d\">\
         <title id=\"{id}-t\">{title}</title><desc id=\"{id}-d\">{description}</desc>{svg}</svg></div>{note}</figure>\n",
        title = escaped(title),
        description = escaped(description),
    )
}
