//! One HTML page from folders of results: what a planner reads.
//!
//! ```text
//! DIR... ─▶ Folder: files told apart by their columns ─┬─▶ Story: question, answer, how sure
//!           (summary, capacity, validation, logs,      ├─▶ figures: SVG
//!            workloads, models, bench, anything else)  ├─▶ tables: the same numbers, sortable
//!                                                      └─▶ provenance: command, machine, seed of every file
//! ```
//!
//! The page is one file and asks nothing of a network. Style sheet and script are in it; without the script everything
//! is there, only tables don't sort. Every figure has a title and a description
//! for those who don't see it, and its numbers stand in a table. It follows the reader's choice of light or dark, and
//! prints in black on white.
//!
//! Files are read as they are: columns that a later version adds are shown in the tables, files of other programs are
//! shown as tables or at least listed.

mod answer;
mod bench;
mod capacity;
mod costs;
mod delays;
mod folder;
mod html;
mod story;
mod sweep;
mod validation;

use std::fmt::Write as _;

pub use folder::{Folder, Kind, Listed, Log};

use html::{HtmlTable, folded};
use story::{Story, story};

use crate::plot::{Medium, Timeline, style_sheet};
use crate::text::escaped;

/// How the page looks.
const STYLE: &str = include_str!("style.css");
/// Sorting and tabs.
const SCRIPT: &str = include_str!("page.js");

/// The page about these folders, at least one.
#[must_use]
pub fn page(folders: &[Folder]) -> String {
    let parts: Vec<Part<'_>> = folders.iter().enumerate().map(|(i, folder)| Part::new(i, folder)).collect();
    let title = parts.first().map_or_else(|| String::from("Tandem"), |part| part.story.question.clone());
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta name=\"generator\" content=\"tandem {}\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{}</title>\n<style>\n{}{STYLE}</style>\n</head>\n<body>\n\
         <a class=\"skip\" href=\"#main\">To the results</a>\n",
        env!("CARGO_PKG_VERSION"),
        escaped(&title),
        style_sheet(),
    );
    html += &contents(&parts);
    html += "<main id=\"main\">\n";
    for part in &parts {
        html += &part.html(parts.len() > 1);
    }
    let _ = write!(html, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

/// A folder's share of the page.
struct Part<'a> {
    id: String,
    folder: &'a Folder,
    story: Story,
    sections: String,
}

impl<'a> Part<'a> {
    fn new(number: usize, folder: &'a Folder) -> Self {
        let id = format!("f{number}");
        let capacities = capacity::capacities(folder);
        let deadline_ms = capacities.iter().find_map(|c| c.deadline_ms).or_else(|| logged_deadline_ms(folder));
        let sections = [
            capacity::section(&id, folder, &capacities),
            sweep::section(&id, folder),
            validation::section(&id, folder),
            delays::section(&id, folder, deadline_ms),
            timelines(&id, folder),
            costs::section(&id, folder),
            bench::section(&id, folder),
            others(&id, folder),
            provenance(&id, folder),
        ];
        Self { story: story(folder, &capacities), sections: sections.concat(), id, folder }
    }

    fn html(&self, is_one_of_many: bool) -> String {
        let Story { question, answer, certainty, facts } = &self.story;
        let mut html =
            format!("<article id=\"{}\">\n<header>\n<p class=\"kicker\">{}</p>\n", self.id, escaped(&self.folder.name));
        let heading = if is_one_of_many && self.id != "f0" { "h2" } else { "h1" };
        let _ = write!(html, "<{heading}>{}</{heading}>\n<p class=\"answer\">{answer}</p>\n", escaped(question));
        if !certainty.is_empty() {
            html += "<h2 class=\"sure\">How sure?</h2>\n<ul class=\"sure\">";
            certainty.iter().for_each(|sentence| {
                let _ = write!(html, "<li>{}</li>", escaped(sentence));
            });
            html += "</ul>\n";
        }
        if !facts.is_empty() {
            html += "<dl class=\"facts\">";
            facts.iter().for_each(|(name, value)| {
                let _ = write!(html, "<div><dt>{}</dt><dd>{}</dd></div>", escaped(name), escaped(value));
            });
            html += "</dl>\n";
        }
        html + "</header>\n" + &self.sections + "</article>\n"
    }
}

/// Links to the sections, which are found by their headings.
fn contents(parts: &[Part<'_>]) -> String {
    let mut html = String::from("<nav aria-label=\"Contents\"><p class=\"brand\">Tandem</p>");
    for part in parts {
        if parts.len() > 1 {
            let _ = write!(html, "<a class=\"folder\" href=\"#{}\">{}</a>", part.id, escaped(&part.folder.name));
        }
        for section in part.sections.split("<section id=\"").skip(1) {
            let (Some((id, rest)), Some(heading)) = (section.split_once('"'), section.split("<h3>").nth(1)) else {
                continue;
            };
            debug_assert!(rest.starts_with("><h3>"), "a section begins with its heading");
            let _ = write!(html, "<a href=\"#{id}\">{}</a>", heading.split("</h3>").next().unwrap_or_default());
        }
    }
    html + "</nav>\n"
}

/// The deadline that a log's queries had, if they all had one.
fn logged_deadline_ms(folder: &Folder) -> Option<f64> {
    let row = folder.logs.first()?.log.rows.first()?;
    (row.deadline != tandem_core::base::time::Nanos::MAX).then(|| row.deadline.since(row.arrival).as_ms())
}

/// At most so many runs are drawn as they happened.
const MOST_TIMELINES: usize = 4;

fn timelines(id: &str, folder: &Folder) -> String {
    let timeline = |(number, log): (usize, &Log)| {
        let timeline = Timeline { title: format!("Queues and lanes: {}", log.title), log: &log.log };
        timeline.drawn(Medium::Page).map_or_else(String::new, |drawing| drawing.html(&format!("{id}-run{number}")))
    };
    let figures: String = folder.logs.iter().take(MOST_TIMELINES).enumerate().map(timeline).collect();
    if figures.is_empty() {
        return figures;
    }
    format!("<section id=\"{id}-s-runs\"><h3>Runs as they happened</h3>\n{figures}</section>\n")
}

/// Tables of no known kind.
fn others(id: &str, folder: &Folder) -> String {
    let tables: String = folder
        .of(Kind::Other)
        .map(|sheet| {
            folded(&format!("{}, {} rows", sheet.name, sheet.rows.len()), &HtmlTable::of_sheet(&sheet.name, sheet))
        })
        .collect();
    if tables.is_empty() {
        tables
    } else {
        format!("<section id=\"{id}-s-others\"><h3>Other tables</h3>\n{tables}</section>\n")
    }
}

/// Where every number comes from.
fn provenance(id: &str, folder: &Folder) -> String {
    let mut html = format!("<section id=\"{id}-s-provenance\"><h3>Where the numbers come from</h3>\n");
    // Files of one command say the same: it is said once, for all of them.
    let mut groups: Vec<(Said<'_>, Vec<&str>)> = Vec::new();
    for (name, lines) in said_by_files(folder) {
        match groups.iter_mut().find(|(other, _)| *other == lines) {
            Some((_, names)) => names.push(name),
            None => groups.push((lines, vec![name])),
        }
    }
    for (lines, names) in &groups {
        let _ = write!(html, "<dl class=\"from\"><div><dt>files</dt><dd>{}</dd></div>", escaped(&names.join(", ")));
        for (key, value) in lines {
            let value = if *key == "command" { format!("<code>{}</code>", escaped(value)) } else { escaped(value) };
            let _ = write!(html, "<div><dt>{}</dt><dd>{value}</dd></div>", escaped(key));
        }
        html += "</dl>\n";
    }
    if !folder.logs.is_empty() {
        let names: Vec<&str> = folder.logs.iter().map(|log| log.name.as_str()).collect();
        let _ = writeln!(html, "<p>Logs of runs: {}.</p>", escaped(&names.join(", ")));
    }
    let mut table = HtmlTable::new("Other files", ["file", "size_bytes", "why it is not shown"]);
    for Listed { name, bytes, why } in &folder.listed {
        table.row([html::Cell::text(name), html::Cell::of(&bytes.to_string()), html::Cell::text(why)]);
    }
    html + &folded(&crate::number::counted(folder.listed.len(), "other file", "other files"), &table) + "</section>\n"
}

/// Keys and values.
type Said<'a> = Vec<(&'a str, &'a str)>;

/// What each file says of where it comes from.
fn said_by_files(folder: &Folder) -> Vec<(&str, Said<'_>)> {
    let sheets = folder.sheets.iter().map(|(_, sheet)| (sheet.name.as_str(), sheet.provenance.lines().collect()));
    let workloads =
        folder.workloads.iter().map(|(name, workload)| (name.as_str(), workload.provenance.lines().collect()));
    let models = folder.models.iter().map(|(name, model)| {
        (name.as_str(), model.provenance.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect())
    });
    sheets.chain(workloads).chain(models).collect()
}
