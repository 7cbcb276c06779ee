//! One HTML page from folders of results, for planners.
//!
//! ```text
//! DIR... ─▶ Folder: files known by their columns ─┬─▶ Story: question, answer, how sure
//!           (summary, capacity, validation, logs,      ├─▶ figures: SVG
//!            workloads, models, bench, anything else)  ├─▶ tables: the same numbers, sortable
//!                                                      └─▶ provenance: command, machine, seed of every file
//! ```
//!
//! The page is one file that needs no network. It contains style sheet and script. Without the script only sorting is
//! missing. Every figure has a title, a description for readers who can't see it, and a table of its numbers. The page
//! follows the reader's choice of light or dark, and prints in black on white.
//!
//! Columns of later versions appear in the tables. Files of other programs appear as tables or in the list of files.

mod answer;
mod answers;
mod bench;
mod capacity;
mod costs;
mod course;
mod delays;
mod folder;
mod html;
mod story;
mod sweep;
mod validation;

use std::fmt::Write as _;

pub use folder::{Folder, Kind, Listed, Log};

use answer::Story;
use html::{HtmlTable, folded};
use story::story;

use crate::plot::look::style_sheet;
use crate::text::escaped;

const STYLE: &str = include_str!("style.css");
const SCRIPT: &str = include_str!("page.js");

/// The page of these folders, at least one.
pub fn page(folders: &[Folder]) -> String {
    let parts: Vec<Article<'_>> = folders.iter().enumerate().map(|(i, folder)| Article::new(i, folder)).collect();
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
    html += &answers::table(folders);
    for part in &parts {
        html += &part.html(parts.len() > 1);
    }
    let _ = write!(html, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

struct Article<'a> {
    id: String,
    folder: &'a Folder,
    story: Story,
    sections: String,
}

impl<'a> Article<'a> {
    fn new(number: usize, folder: &'a Folder) -> Self {
        let id = format!("f{number}");
        let capacities = capacity::capacities(folder);
        let deadline_ms = capacities.iter().find_map(|c| c.deadline_ms).or_else(|| logged_deadline_ms(folder));
        let sections = [
            capacity::section(&id, folder, &capacities),
            sweep::section(&id, folder),
            plans(&id, folder),
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

/// Links to the sections, found by their headings.
fn contents(parts: &[Article<'_>]) -> String {
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

/// The deadline of a logged run's queries, if they have one.
fn logged_deadline_ms(folder: &Folder) -> Option<f64> {
    let row = folder.logs.first()?.log.rows.first()?;
    (row.deadline != tandem_model::base::time::Nanos::MAX).then(|| row.deadline.since(row.arrival).as_ms())
}

/// Maximum number of runs that are drawn.
const MOST_TIMELINES: usize = 4;

fn timelines(id: &str, folder: &Folder) -> String {
    let figure = |(number, log): (usize, &Log)| {
        course::figure(&format!("{id}-run{number}"), &format!("Queue and lanes: {}", log.title), &log.log)
    };
    let figures: String = folder.logs.iter().take(MOST_TIMELINES).enumerate().map(figure).collect();
    html::section(id, "runs", "Course of runs", &figures)
}

fn plans(id: &str, folder: &Folder) -> String {
    let tables =
        folder.of(Kind::Plan).map(|sheet| HtmlTable::of_sheet("The best plan of each machine type", sheet).html());
    html::section(id, "plan", "Plan", &tables.collect::<String>())
}

fn others(id: &str, folder: &Folder) -> String {
    let tables: String = folder
        .of(Kind::Other)
        .map(|sheet| {
            folded(&format!("{}, {} rows", sheet.name, sheet.rows.len()), &HtmlTable::of_sheet(&sheet.name, sheet))
        })
        .collect();
    html::section(id, "others", "Other tables", &tables)
}

fn provenance(id: &str, folder: &Folder) -> String {
    let mut html = String::new();
    // Files of one command have the same provenance, which is shown once.
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
    let mut table = HtmlTable::new("Other files", ["file", "size_bytes", "reason"]);
    for Listed { name, bytes, why } in &folder.listed {
        table.row([html::Cell::text(name), html::Cell::of(&bytes.to_string()), html::Cell::text(why)]);
    }
    html += &folded(&crate::number::counted(folder.listed.len(), "other file", "other files"), &table);
    html::section(id, "provenance", "Provenance", &html)
}

/// Keys and values of a provenance.
type Said<'a> = Vec<(&'a str, &'a str)>;

fn said_by_files(folder: &Folder) -> Vec<(&str, Said<'_>)> {
    let sheets = folder.sheets.iter().map(|(_, sheet)| (sheet.name.as_str(), sheet.provenance.lines().collect()));
    let workloads =
        folder.workloads.iter().map(|(name, workload)| (name.as_str(), workload.provenance.lines().collect()));
    let models = folder.models.iter().map(|(name, model)| {
        (name.as_str(), model.provenance.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect())
    });
    sheets.chain(workloads).chain(models).collect()
}
