//! Results of `bench`: a table per part, with one row per name and one column per metric.

use super::folder::{Folder, Kind};
use super::html::{self, Cell, HtmlTable};
use crate::sheet::{Sheet, SheetRow};

pub(crate) fn section(id: &str, folder: &Folder) -> String {
    let tables = folder
        .of(Kind::Bench)
        .flat_map(|sheet| distinct(sheet.lines(), "part").into_iter().map(|part| table(sheet, part).html()));
    html::section(id, "bench", "Parts of the node", &tables.collect::<String>())
}

fn table(sheet: &Sheet, part: &str) -> HtmlTable {
    let rows = || sheet.lines().filter(|row| row.text("part") == part);
    let metrics = distinct(rows(), "metric");
    let mut table = HtmlTable::new(&format!("Measured alone: {part}"), ["name"].into_iter().chain(metrics.clone()));
    for name in distinct(rows(), "name") {
        let value = |metric: &&str| {
            let found = rows().find(|row| (row.text("name"), row.text("metric")) == (name, *metric));
            Cell::of(found.map_or("", |row| row.text("value")))
        };
        table.row(std::iter::once(Cell::text(name)).chain(metrics.iter().map(value)));
    }
    table
}

/// The distinct texts of a column, in order of appearance.
fn distinct<'a>(rows: impl Iterator<Item = SheetRow<'a>>, column: &str) -> Vec<&'a str> {
    let mut texts = Vec::new();
    for text in rows.map(|row| row.text(column)) {
        if !texts.contains(&text) {
            texts.push(text);
        }
    }
    texts
}
