//! Rows of result files: read, selected, and written as a Markdown table.

use std::path::{Path, PathBuf};

use serde_json::Value as Json;
use tandem_model::files::{Provenance, open_text};

use super::expression::{Column, Value, place};
use super::marker::{Marker, split};
use crate::sheet::Sheet;

/// Rows of text with named columns, in groups: a line of a table is a group, most often of one row.
#[derive(Debug, Default)]
pub(super) struct Rows {
    pub(super) columns: Vec<String>,
    groups: Vec<Vec<Vec<String>>>,
    /// The files, and where their numbers come from.
    origins: Vec<(String, Provenance)>,
}

impl Rows {
    /// The rows of all files of a marker. Columns that a file lacks are empty.
    pub(super) fn read(root: &Path, marker: &Marker<'_>) -> Result<Self, String> {
        let mut rows = Self::default();
        for pattern in &marker.files {
            for file in matching(root, pattern)? {
                let path = root.join(&file);
                let stem = named(&file);
                let (mut columns, lines, provenance) = if file.ends_with(".json") {
                    json(&path, marker.optional("at").unwrap_or(""))?
                } else {
                    csv(&path, &file)?
                };
                columns.push("file".into());
                let places: Vec<usize> = columns.iter().map(|name| rows.place_of_new(name)).collect();
                for mut line in lines {
                    line.push(stem.clone());
                    let mut row = vec![String::new(); rows.columns.len()];
                    for (place, cell) in places.iter().zip(line) {
                        row[*place] = cell;
                    }
                    rows.groups.push(vec![row]);
                }
                rows.origins.push((file, provenance));
            }
        }
        let count = rows.columns.len();
        rows.groups.iter_mut().flatten().for_each(|row| row.resize(count, String::new()));
        Ok(rows)
    }

    /// The place of a column, which is added if there is none of this name.
    fn place_of_new(&mut self, name: &str) -> usize {
        self.columns.iter().position(|column| column == name).unwrap_or_else(|| {
            self.columns.push(name.to_owned());
            self.columns.len() - 1
        })
    }

    /// The groups, as expressions take them.
    pub(super) fn groups(&self) -> impl Iterator<Item = Vec<&[String]>> {
        self.groups.iter().map(|group| group.iter().map(Vec::as_slice).collect())
    }

    /// The rows that a marker selects, in its order.
    pub(super) fn selected(mut self, marker: &Marker<'_>) -> Result<Self, String> {
        if let Some(clause) = marker.optional("match") {
            let (name, form) = clause.split_once('"').ok_or("`match` needs a column and a form in quotes")?;
            self.match_form(place(&self.columns, name)?, form.trim_end_matches('"'));
        }
        for condition in marker.optional("where").map_or(Vec::new(), |clause| split(clause, ',')) {
            self.keep(condition)?;
        }
        if let Some(clause) = marker.optional("pivot") {
            self = self.pivoted(clause)?;
        }
        if let Some(clause) = marker.optional("group") {
            let columns = Column::all(clause);
            let key = |group: Vec<&[String]>| columns.iter().map(|column| column.key(&self.columns, &group)).collect();
            let keys: Vec<Vec<String>> = self.groups().map(key).collect::<Result<_, _>>()?;
            let rows = std::mem::take(&mut self.groups).into_iter().flatten();
            self.groups = grouped(keys.into_iter().zip(rows)).into_iter().map(|(_, rows)| rows).collect();
        }
        if let Some(clause) = marker.optional("sort") {
            let (clause, is_descending) = clause.strip_prefix('-').map_or((clause, false), |rest| (rest, true));
            let column = Column::parse(clause);
            let values =
                self.groups().map(|group| column.value(&self.columns, &group)).collect::<Result<Vec<_>, _>>()?;
            let key = |value: &Value| value.number().map_or(f64::INFINITY, |v| if is_descending { -v } else { v });
            let mut order: Vec<usize> = (0..values.len()).collect();
            order.sort_by(|&a, &b| key(&values[a]).total_cmp(&key(&values[b])));
            self.groups = order.into_iter().map(|at| std::mem::take(&mut self.groups[at])).collect();
        }
        if self.groups.is_empty() { Err("no row is left".into()) } else { Ok(self) }
    }

    /// Keeps the rows whose cell has a form such as `{mode} top 10`, and adds columns for its parts in braces.
    fn match_form(&mut self, place: usize, form: &str) {
        // Names and the literal text behind each.
        let mut pieces = form.split('{');
        let first = pieces.next().unwrap_or_default();
        let pieces: Vec<(&str, &str)> = pieces.filter_map(|piece| piece.split_once('}')).collect();
        self.columns.extend(pieces.iter().map(|(name, _)| (*name).to_owned()));
        self.groups.retain_mut(|group| {
            let row = &mut group[0];
            let Some(mut rest) = row[place].strip_prefix(first).map(str::to_owned) else { return false };
            for (at, (_, literal)) in pieces.iter().enumerate() {
                let end =
                    if at + 1 == pieces.len() && literal.is_empty() { Some(rest.len()) } else { rest.find(literal) };
                let Some(end) = end else { return false };
                row.push(rest[..end].to_owned());
                rest = rest[end + literal.len()..].to_owned();
            }
            rest.is_empty()
        });
    }

    /// Keeps the rows that meet a condition: `column = a | b`, `column != a | b`, or a comparison.
    fn keep(&mut self, condition: &str) -> Result<(), String> {
        let named = [(" != ", false), (" = ", true)]
            .into_iter()
            .find_map(|(sign, is_wanted)| condition.split_once(sign).map(|(name, values)| (name, values, is_wanted)));
        let kept: Vec<bool> = if let Some((name, values, is_wanted)) = named {
            let place = place(&self.columns, name.trim().trim_matches(['[', ']']))?;
            let values: Vec<&str> = values.split('|').map(|value| value.trim().trim_matches('"')).collect();
            self.groups.iter().map(|group| values.contains(&group[0][place].as_str()) == is_wanted).collect()
        } else {
            let column = Column::parse(condition);
            let is_true = |group: Vec<&[String]>| Ok(column.value(&self.columns, &group)? == Value::Number(1.0));
            self.groups().map(is_true).collect::<Result<_, String>>()?
        };
        let mut kept = kept.into_iter();
        self.groups.retain(|_| kept.next() == Some(true));
        Ok(())
    }

    /// One row per combination of the columns behind `by`, with a column for each value of the first column.
    fn pivoted(self, clause: &str) -> Result<Self, String> {
        let wrong = || format!("`{clause}` is not of the form `names values by keys`");
        let (names, by) = clause.split_once(" by ").ok_or_else(wrong)?;
        let (name, value) = names.split_once(' ').ok_or_else(wrong)?;
        let (name, value) = (place(&self.columns, name)?, place(&self.columns, value)?);
        let keys = split(by, ',').into_iter().map(|key| place(&self.columns, key)).collect::<Result<Vec<_>, _>>()?;
        let mut pivoted = Self { origins: self.origins.clone(), ..Self::default() };
        pivoted.columns = keys.iter().map(|&key| self.columns[key].clone()).collect();
        for row in self.groups.iter().flatten() {
            pivoted.place_of_new(&row[name]);
        }
        let key = |row: &Vec<String>| keys.iter().map(|&place| row[place].clone()).collect();
        for (mut row, of_key) in grouped(self.groups.into_iter().flatten().map(|row| (key(&row), row))) {
            row.resize(pivoted.columns.len(), String::new());
            for mut cells in of_key {
                let place = place(&pivoted.columns, &cells[name])?;
                row[place] = std::mem::take(&mut cells[value]);
            }
            pivoted.groups.push(vec![row]);
        }
        Ok(pivoted)
    }

    /// A Markdown table; columns of numbers are flush right.
    pub(super) fn markdown(&self, clause: &str) -> Result<String, String> {
        let columns = Column::all(clause);
        let mut lines = Vec::new();
        let mut is_text = vec![false; columns.len()];
        for group in self.groups() {
            let cells =
                columns.iter().map(|column| column.text(&self.columns, &group)).collect::<Result<Vec<_>, _>>()?;
            for (is_text, cell) in is_text.iter_mut().zip(&cells) {
                *is_text |= cell.contains(|c: char| !c.is_ascii_digit() && !"+-,.% ".contains(c));
            }
            lines.push(line(cells.iter().map(String::as_str)));
        }
        let rule = line(is_text.iter().map(|&is_text| if is_text { "---" } else { "---:" }));
        let head = line(columns.iter().map(|column| column.heading.as_str()));
        Ok([vec![head, rule], lines].concat().join("\n"))
    }

    /// The files with command, commit, date and machine; of more than two in one folder, in one line. `up` leads from the page to the root.
    pub(super) fn origins(&self, up: &str) -> String {
        let folder = |file: &str| file.rsplit_once('/').map_or("", |(folder, _)| folder).to_owned();
        let by_folder = self.origins.chunk_by(|(a, _), (b, _)| folder(a) == folder(b));
        let lines = by_folder.flat_map(|files| match files {
            [_] | [_, _] => files.iter().map(|file| origin(up, &file.0, std::slice::from_ref(file))).collect(),
            many => vec![origin(up, &format!("{}/", folder(&many[0].0)), many)],
        });
        format!("<sub>{}</sub>", lines.collect::<Vec<_>>().join("\n<br>"))
    }
}

/// The origin of one file, or of files in a folder: the first one's command, and all commits, dates and machines.
fn origin(up: &str, path: &str, files: &[(String, Provenance)]) -> String {
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    let of = |key: &str| {
        let known =
            files.iter().filter_map(|(_, provenance)| provenance.get(key)).filter(|value| *value != "not recorded");
        let mut values: Vec<&str> = Vec::new();
        known.for_each(|value| {
            if !values.contains(&value) {
                values.push(value)
            }
        });
        (!values.is_empty()).then(|| values.join(", "))
    };
    let or_not = |key: &str| of(key).unwrap_or_else(|| format!("{key} not recorded"));
    let first = files[0].1.get("command").filter(|command| *command != "not recorded");
    let command = first.map_or_else(|| or_not("command"), |command| format!("`{command}`"));
    let of_first = if files.len() > 1 { format!(", {} files, the first by", files.len()) } else { String::from(":") };
    let commit = of("commit").map_or_else(|| or_not("commit"), |commit| format!("commit {commit}"));
    let machine = of("machine").or_else(|| of("device")).unwrap_or_else(|| or_not("machine"));
    let gpu = of("gpu").filter(|gpu| gpu != "none").map_or_else(String::new, |gpu| format!("; GPU: {gpu}"));
    format!("[{name}]({up}{path}){of_first} {command}; {commit}; {}; {machine}{gpu}", or_not("date"))
}

/// The value of the column `file`: the folder and the name of a file without extensions.
fn named(file: &str) -> String {
    let (folder, name) = file.rsplit_once('/').unwrap_or(("", file));
    let stem = name.split('.').next().unwrap_or_default();
    match folder.rsplit('/').next() {
        Some(folder) if !folder.is_empty() => format!("{folder}/{stem}"),
        _ => stem.to_owned(),
    }
}

/// Rows of equal keys, in the order in which the keys come first.
fn grouped(rows: impl Iterator<Item = (Vec<String>, Vec<String>)>) -> Vec<(Vec<String>, Vec<Vec<String>>)> {
    let mut groups: Vec<(Vec<String>, Vec<Vec<String>>)> = Vec::new();
    for (key, row) in rows {
        match groups.iter_mut().find(|(of, _)| *of == key) {
            Some((_, rows)) => rows.push(row),
            None => groups.push((key, vec![row])),
        }
    }
    groups
}

/// A line of a Markdown table.
fn line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    format!("| {} |", cells.map(|cell| cell.replace('|', "\\|")).collect::<Vec<_>>().join(" | "))
}

/// The files below the root that a name means, in alphabetical order; a `*` in it stands for any text.
fn matching(root: &Path, pattern: &str) -> Result<Vec<String>, String> {
    let Some((before, after)) = pattern.split_once('*') else { return Ok(vec![pattern.to_owned()]) };
    let folder = before.rsplit_once('/').map_or("", |(folder, _)| folder);
    let entries = std::fs::read_dir(root.join(folder)).map_err(|e| format!("{folder}: cannot read: {e}"))?;
    let names =
        entries.filter_map(|entry| Some(PathBuf::from(folder).join(entry.ok()?.file_name()).to_str()?.to_owned()));
    let mut names: Vec<String> = names.filter(|name| name.starts_with(before) && name.ends_with(after)).collect();
    names.sort();
    if names.is_empty() { Err(format!("{pattern}: no such file")) } else { Ok(names) }
}

type Read = (Vec<String>, Vec<Vec<String>>, Provenance);

fn csv(path: &Path, name: &str) -> Result<Read, String> {
    let sheet = Sheet::read(path, name).map_err(|e| e.to_string())?;
    match sheet.unread.first() {
        Some(unread) => Err(unread.clone()),
        None => Ok((sheet.columns, sheet.rows, sheet.provenance)),
    }
}

/// The objects of a JSON array; values within objects are named by their path, as `evaluation.median`.
fn json(path: &Path, pointer: &str) -> Result<Read, String> {
    let wrong = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let file: Json = serde_json::from_reader(open_text(path).map_err(|e| e.to_string())?).map_err(|e| wrong(&e))?;
    let list =
        file.pointer(pointer).and_then(Json::as_array).ok_or_else(|| wrong(&format!("no list at `{pointer}`")))?;
    let mut provenance = Provenance::default();
    for (key, value) in file.get("provenance").and_then(Json::as_object).into_iter().flatten() {
        provenance = provenance.with(key, value.as_str().unwrap_or_default());
    }
    let mut columns = Vec::new();
    let mut lines = Vec::new();
    for value in list {
        let mut cells = Vec::new();
        flatten(value, String::new(), &mut cells);
        let mut line = vec![String::new(); columns.len()];
        for (name, cell) in cells {
            match columns.iter().position(|column| *column == name) {
                Some(place) => line[place] = cell,
                None => {
                    columns.push(name);
                    line.push(cell);
                }
            }
        }
        lines.push(line);
    }
    lines.iter_mut().for_each(|line| line.resize(columns.len(), String::new()));
    Ok((columns, lines, provenance))
}

/// The plain values of an object and of those within it, with their paths. Lists are left out.
fn flatten(value: &Json, path: String, cells: &mut Vec<(String, String)>) {
    match value {
        Json::Object(fields) => {
            for (name, value) in fields {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                flatten(value, path, cells);
            }
        }
        Json::String(text) => cells.push((path, text.clone())),
        Json::Array(_) | Json::Null => {}
        plain => cells.push((path, plain.to_string())),
    }
}
