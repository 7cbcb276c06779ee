//! Queries in columns: finding the column of the query text and that of its id.

use std::borrow::Cow;
use std::collections::HashSet;
use std::path::Path;

use tandem_base::files::InputError;

use super::names::{IDS, OTHERS, QUERIES, has, is_known, normal};
use super::{LogEntry, LogOptions};

/// A line, or a record of several lines, cut into its cells.
pub(super) struct Row<'a> {
    pub(super) line: u64,
    pub(super) cells: Vec<Cow<'a, str>>,
}

/// The kind of a cell's content, or of most cells of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Empty,
    Number,
    Time,
    Url,
    /// A list or an object in brackets.
    Answers,
    /// One word with a digit, such as `q7`.
    Id,
    Text,
}

impl Kind {
    pub(super) fn of(cell: &str) -> Self {
        let cell = cell.trim();
        let is_of = |extra: &str| cell.chars().all(|c| c.is_ascii_digit() || extra.contains(c));
        let has_digit = cell.contains(|c: char| c.is_ascii_digit());
        if cell.is_empty() || cell == "-" {
            Self::Empty
        } else if cell.split_whitespace().all(|word| word.parse::<f64>().is_ok() && has_digit) {
            Self::Number
        } else if has_digit && is_of(":-/.,TZ+ []") && (cell.contains(':') || cell.matches(['-', '/']).count() == 2) {
            Self::Time
        } else if cell.contains("://") || cell.starts_with("www.") || is_path(cell) || is_encoded(cell) {
            Self::Url
        } else if ["['", "[\"", "{\"", "{'", "[]"].iter().any(|start| cell.starts_with(start)) {
            Self::Answers
        } else if has_digit && !cell.contains(char::is_whitespace) {
            Self::Id
        } else {
            Self::Text
        }
    }
}

/// A host and a path without a scheme.
fn is_path(cell: &str) -> bool {
    let host = cell.split_once('/').map(|(host, _)| host);
    !cell.contains(char::is_whitespace) && host.is_some_and(|host| host.contains('.') && host.is_ascii())
}

/// A word with characters in percent encoding, as in addresses and in the identifiers of CAR.
fn is_encoded(cell: &str) -> bool {
    let code = |part: &str| part.len() >= 2 && part.is_char_boundary(2) && u8::from_str_radix(&part[..2], 16).is_ok();
    !cell.contains(char::is_whitespace) && cell.split('%').skip(1).any(code)
}

struct Column {
    name: String,
    kind: Kind,
    /// Whether every row has a value, and no two rows have the same one.
    is_distinct: bool,
    has_blanks: bool,
}

pub(super) struct Table {
    pub(super) entries: Vec<LogEntry>,
    /// The columns and the position of the query, in words.
    pub(super) found: String,
}

/// Finds the queries of `rows`, at least one; `form` names the separator in words. If the query is the last column,
/// `joins` is the separator that joins it with the cells after it. Fails if no column or more than one may hold the
/// query: with the option that decides. With the line: a row is too short or too long.
pub(super) fn read(
    path: &Path,
    mut rows: Vec<Row<'_>>,
    form: &str,
    joins: Option<char>,
    options: &LogOptions,
) -> Result<Table, InputError> {
    let header = take_header(&mut rows);
    if rows.is_empty() {
        return Err(InputError::file(path, "no queries below its header"));
    }
    let width = header.as_ref().map_or_else(|| width(&rows), |header| header.len());
    let columns: Vec<Column> = (0..width).map(|at| column(&rows, header.as_deref(), at)).collect();
    let query = query_column(path, &columns, rows.len(), options)?;
    let label = label_column(&columns, query);
    let repeats =
        (0..width).find(|&at| columns[at].kind == Kind::Time).zip((0..width).find(|&at| columns[at].kind == Kind::Url));
    let mut entries: Vec<LogEntry> = Vec::new();
    let mut last: Option<Vec<Cow<'_, str>>> = None;
    let mut clicks = 0;
    for Row { line, mut cells } in rows {
        if cells.len() <= query {
            let message =
                format!("{} columns, expected the query in column {}, as in most lines", cells.len(), query + 1);
            return Err(InputError::line(path, line, message));
        }
        if cells.len() > width {
            let Some(separator) = joins.filter(|_| query + 1 == width) else {
                return Err(InputError::line(
                    path,
                    line,
                    format!("{} columns, expected {width} as in most lines", cells.len()),
                ));
            };
            let rest: Vec<Cow<'_, str>> = cells.drain(query..).collect();
            cells.push(rest.join(&separator.to_string()).into());
        }
        // A log of clicks has a row for each click on a query's results.
        if let Some((time, _)) = repeats {
            let of_query: Vec<Cow<'_, str>> = cells.iter().take(query.max(time) + 1).cloned().collect();
            if last.as_ref() == Some(&of_query) {
                clicks += 1;
                continue;
            }
            last = Some(of_query);
        }
        let text = cells[query].trim();
        let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(text).trim();
        if text.is_empty() || text == "-" && width > 2 {
            continue;
        }
        let named =
            label.and_then(|at| cells.get(at)).map(|cell| cell.trim().to_owned()).filter(|label| !label.is_empty());
        let label = named.unwrap_or_else(|| entries.len().to_string());
        entries.push(LogEntry { label, text: text.to_owned(), line });
    }
    let mut found = match width {
        1 => form.to_owned(),
        _ => format!("{form}, {width} columns, query in column {}", query + 1),
    };
    if let Some(header) = &header {
        found += &format!(" (`{}`), header passed over", header[query]);
    }
    if clicks > 0 {
        found += &format!(", {clicks} further clicks on the same results left out");
    }
    Ok(Table { entries, found })
}

/// Removes the first row if it names the columns.
fn take_header(rows: &mut Vec<Row<'_>>) -> Option<Vec<String>> {
    has_header(rows).then(|| rows.remove(0).cells.iter().map(|cell| cell.trim().to_owned()).collect())
}

/// Whether the first row names the columns: at least half of its names are known, or one is and stands above numbers, times or
/// addresses. A single known name among other words may be a query.
pub(super) fn has_header(rows: &[Row<'_>]) -> bool {
    let Some((first, rest)) = rows.split_first().filter(|(_, rest)| !rest.is_empty()) else { return false };
    let is_name = |name: &str, most: usize| Kind::of(name) == Kind::Text && name.split_whitespace().count() <= most;
    let are_names = |most: usize| first.cells.iter().all(|name| is_name(name, most));
    let known = first.cells.iter().filter(|name| is_known(name.trim())).count();
    let is_data = |at: usize| {
        let kind = |row: &Row<'_>| row.cells.get(at).map_or(Kind::Empty, |cell| Kind::of(cell));
        rest.iter().all(|row| matches!(kind(row), Kind::Number | Kind::Time | Kind::Url))
    };
    known > 0 && (2 * known >= first.cells.len() && are_names(3) || are_names(6) && (0..first.cells.len()).any(is_data))
}

/// The number of columns: the most that at least one row in twenty has.
fn width(rows: &[Row<'_>]) -> usize {
    let most = rows.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let has_many = |&width: &usize| 20 * rows.iter().filter(|row| row.cells.len() == width).count() >= rows.len();
    (1..=most).rev().find(has_many).unwrap_or(most)
}

fn column(rows: &[Row<'_>], header: Option<&[String]>, at: usize) -> Column {
    let cells = || rows.iter().filter_map(|row| row.cells.get(at)).map(|cell| cell.trim());
    let mut counts: Vec<(Kind, usize)> = Vec::new();
    for kind in cells().map(Kind::of).filter(|&kind| kind != Kind::Empty) {
        match counts.iter_mut().find(|(of, _)| *of == kind) {
            Some((_, count)) => *count += 1,
            None => counts.push((kind, 1)),
        }
    }
    let all: usize = counts.iter().map(|(_, count)| count).sum();
    // Some typed queries are numbers and addresses.
    let is_text = counts.iter().any(|&(kind, count)| kind == Kind::Text && 5 * count >= all);
    let most = counts.iter().max_by_key(|(_, count)| *count).map_or(Kind::Empty, |(kind, _)| *kind);
    let mut seen = HashSet::new();
    Column {
        name: header.and_then(|header| header.get(at)).map(|name| normal(name)).unwrap_or_default(),
        kind: if is_text { Kind::Text } else { most },
        is_distinct: rows.iter().all(|row| {
            let cell = row.cells.get(at).map_or("", |cell| cell.trim());
            !cell.is_empty() && seen.insert(cell)
        }),
        has_blanks: cells().any(|cell| cell.contains(char::is_whitespace)),
    }
}

fn query_column(path: &Path, columns: &[Column], rows: usize, options: &LogOptions) -> Result<usize, InputError> {
    if let Some(column) = options.column {
        let is_there = (1..=columns.len()).contains(&column);
        let error =
            || InputError::file(path, format!("column {column} is asked for, and it has {} (--column)", columns.len()));
        return is_there.then(|| column - 1).ok_or_else(error);
    }
    let named = QUERIES.split(' ').find_map(|name| columns.iter().position(|column| column.name == name));
    // Column names decide, whatever the columns hold.
    if let Some(named) = named {
        return Ok(named);
    }
    let is_other = |name: &str| has(OTHERS, name) || has(IDS, name);
    let text = |at: &usize| columns[*at].kind == Kind::Text && !is_other(&columns[*at].name);
    let mut texts: Vec<usize> = (0..columns.len()).filter(text).collect();
    // Names of users, for example, are single words.
    if texts.len() > 1 && texts.iter().filter(|&&at| columns[at].has_blanks).count() == 1 {
        texts.retain(|&at| columns[at].has_blanks);
    }
    match texts[..] {
        [only] => Ok(only),
        // A log may consist of words with digits, such as names of articles.
        [] if matches!(columns, [Column { kind: Kind::Id, .. }]) => Ok(0),
        [] => {
            let numbers = columns.iter().all(|column| matches!(column.kind, Kind::Number | Kind::Empty));
            let what = if numbers { "holds numbers only, of terms perhaps" } else { "has no column of words" };
            let kinds: Vec<String> = columns.iter().map(|column| format!("{:?}", column.kind).to_lowercase()).collect();
            let kinds = kinds.join(", ");
            let message =
                format!("{what} ({kinds} in {rows} rows), expected queries (--column N says which column they are in)");
            Err(InputError::file(path, message))
        }
        _ => {
            let all: Vec<String> = texts.iter().map(|at| (at + 1).to_string()).collect();
            let message = format!("columns {} may each be the query (--column N decides)", all.join(" and "));
            Err(InputError::file(path, message))
        }
    }
}

/// The column that names queries: of two columns the first. Of more, a column without repeated values, since user names
/// repeat.
fn label_column(columns: &[Column], query: usize) -> Option<usize> {
    let is_id = |column: &Column| matches!(column.kind, Kind::Id | Kind::Number) || has(IDS, &column.name);
    match (columns.len(), query) {
        (2, 1) => Some(0),
        _ => (0..columns.len()).find(|&at| {
            at != query && is_id(&columns[at]) && columns[at].is_distinct && !has(OTHERS, &columns[at].name)
        }),
    }
}
