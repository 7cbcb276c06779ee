//! What `bench` measured: a table a part, things down, kinds of number across.

use super::folder::{Folder, Kind};
use super::html::{Cell, HtmlTable};
use crate::sheet::Sheet;

/// The tables.
pub(super) fn section(id: &str, folder: &Folder) -> String {
    let tables: String = folder.of(Kind::Bench).map(tables).collect();
    if tables.is_empty() {
        tables
    } else {
        format!("<section id=\"{id}-s-bench\"><h3>The parts of the node</h3>\n{tables}</section>\n")
    }
}

fn tables(sheet: &Sheet) -> String {
    let mut parts: Vec<&str> = Vec::new();
    for line in sheet.lines() {
        if !parts.contains(&line.text("part")) {
            parts.push(line.text("part"));
        }
    }
    parts.into_iter().map(|part| table(sheet, part).html()).collect()
}

fn table(sheet: &Sheet, part: &str) -> HtmlTable {
    let lines = || sheet.lines().filter(|line| line.text("part") == part);
    let (mut names, mut metrics): (Vec<&str>, Vec<&str>) = (Vec::new(), Vec::new());
    for line in lines() {
        if !names.contains(&line.text("name")) {
            names.push(line.text("name"));
        }
        if !metrics.contains(&line.text("metric")) {
            metrics.push(line.text("metric"));
        }
    }
    let mut table =
        HtmlTable::new(&format!("Measured alone: {part}"), std::iter::once("of").chain(metrics.iter().copied()));
    for name in names {
        let value = |metric: &&str| {
            let found = lines().find(|line| (line.text("name"), line.text("metric")) == (name, *metric));
            Cell::of(found.map_or("", |line| line.text("value")))
        };
        table.row(std::iter::once(Cell::text(name)).chain(metrics.iter().map(value)));
    }
    table
}
