//! Several answers in one table: of several folders, deadlines, policies or machines.

use super::capacity::{Capacity, by_file};
use super::folder::Folder;
use super::html::{Cell, HtmlTable};
use crate::sheet::Sheet;

/// Columns from the heads of files, with their headings.
const FACTS: [(&str, &str); 8] = [
    ("machine", "machine"),
    ("cpu_workers", "CPU workers"),
    ("gpu", "GPU"),
    ("index_name", "index"),
    ("workload", "workload"),
    ("mode", "mode"),
    ("k", "k"),
    ("arrivals", "arrivals"),
];

/// What a file says about its answer. The machine is the simulated one, not the computer that simulated it.
pub(crate) fn fact<'a>(sheet: &'a Sheet, key: &str) -> Option<&'a str> {
    let is_simulated = sheet.provenance.get("gpu_lane_depth").is_some() || sheet.has(&["price_per_month"]);
    sheet.provenance.get(if key == "machine" && is_simulated { "simulated" } else { key })
}

/// The best capacity of every file, if there are several files; else nothing.
pub(crate) fn table(folders: &[Folder]) -> String {
    let of_folder = |folder| by_file(folder).into_iter().map(move |(sheet, all)| (folder, sheet, all));
    let answers: Vec<(&Folder, &Sheet, Vec<Capacity>)> = folders.iter().flat_map(of_folder).collect();
    if answers.len() < 2 {
        return String::new();
    }
    let said = |sheet: &Sheet, key: &str| fact(sheet, key).unwrap_or_default().to_owned();
    let facts: Vec<(&str, &str)> =
        FACTS.into_iter().filter(|(key, _)| answers.iter().any(|(_, sheet, _)| !said(sheet, key).is_empty())).collect();
    let columns = ["folder", "objective", "rate_qps", "from_qps", "to_qps", "how", "policy"];
    let columns = columns.into_iter().chain(facts.iter().map(|(_, heading)| *heading));
    let mut table = HtmlTable::new("All answers, each with its interval", columns);
    for (folder, sheet, all) in &answers {
        let measured = all.iter().find(|capacity| capacity.is_measured());
        let Some(best) = measured.or(all.first()) else { continue };
        let number = |value: Option<f64>| {
            let raw = value.map_or_else(String::new, |value| value.to_string());
            Cell::of(&raw).shown_as(value.map(|value| best.rate(value)))
        };
        let how = if best.is_measured() { best.source.as_str() } else { "simulated" };
        let cells = [
            Cell::text(&folder.name),
            Cell::text(&best.objective),
            number(Some(best.qps)),
            number(best.interval.map(|(low, _)| low)),
            number(best.interval.map(|(_, high)| high)),
            Cell::text(how),
            Cell::text(&best.policy),
        ];
        // Of a path, its last part.
        let fact = |key: &str| said(sheet, key).rsplit('/').next().unwrap_or_default().to_owned();
        table.row(cells.into_iter().chain(facts.iter().map(|(key, _)| Cell::text(&fact(key)))));
    }
    format!("<section id=\"answers\"><h3>Answers</h3>\n{}</section>\n", table.html())
}
