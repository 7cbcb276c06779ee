//! Recognition of the form of a query log by its lines.

use std::borrow::Cow;
use std::path::Path;

use super::table::{self, Kind, Row, Table};
use super::topics::parse_topics;
use super::{LogFormat, LogOptions, foreign, json, names};
use crate::files::InputError;

/// Reads `text`, with its non-blank `lines`, in the recognised form.
pub(super) fn recognised<'a>(
    path: &Path,
    text: &'a str,
    mut lines: Vec<(u64, &'a str)>,
    options: &LogOptions,
) -> Result<Table, InputError> {
    let of_json = |json::Found { entries, skipped }, form: &str| {
        let skipped = if skipped > 0 { format!(", {skipped} records without words left out") } else { String::new() };
        Table { entries, found: format!("{form}{skipped}") }
    };
    if options.format.is_none() && lines[0].1.starts_with("# tandem:") {
        return Err(InputError::line(path, lines[0].0, "is a file of results of this program, expected queries"));
    }
    // A file may begin with remarks; a log's first queries may also begin with `#`.
    // Excel names the separator on a line of its own: `sep=;`.
    let is_separator = |line: &str| line.strip_prefix("sep=").is_some_and(|rest| rest.trim_end().chars().count() == 1);
    let is_remark = |&(_, line): &(u64, &str)| line.starts_with("# ") || *line == *"#" || is_separator(line);
    let remarks = lines.iter().take_while(|line| is_remark(line)).count();
    let rest = &lines[remarks.min(lines.len() - 1)..];
    let format = match options.format {
        Some(format) => format,
        None => match format_of(path, rest)? {
            LogFormat::Plain => LogFormat::Plain,
            other => {
                lines.drain(..remarks.min(lines.len() - 1));
                other
            }
        },
    };
    // The number of lines stays equal, so that line numbers in errors stay right.
    let behind_remarks =
        || "\n".repeat(lines[0].0 as usize - 1) + text.splitn(lines[0].0 as usize, '\n').last().unwrap_or_default();
    match format {
        LogFormat::Json => Ok(of_json(json::parse(path, &behind_remarks())?, "JSON")),
        LogFormat::SlowLog => Ok(of_json(json::parse_slow_lines(text), "slow log")),
        LogFormat::Topics => {
            Ok(Table { entries: parse_topics(path, &behind_remarks())?, found: "TREC topics".to_owned() })
        }
        LogFormat::Tsv => {
            let row = |&(line, text): &(u64, &'a str)| match text.contains('\t') || options.column == Some(1) {
                true => Ok(Row { line, cells: text.split('\t').map(Cow::Borrowed).collect() }),
                false => Err(InputError::line(path, line, "no tab, expected columns between tabs as in most lines")),
            };
            table::read(path, lines.iter().map(row).collect::<Result<_, _>>()?, "tab-separated", Some('\t'), options)
        }
        LogFormat::Csv => {
            let separator = separator(&lines);
            let rows = csv_rows(path, text, lines[0].0, separator)?;
            let form = match separator {
                b',' => "comma-separated",
                b';' => "semicolon-separated",
                _ => "bar-separated",
            };
            table::read(path, rows, form, None, options)
        }
        LogFormat::Colon => {
            let is_priority =
                |line: &str| colon(line).is_some_and(|(_, text)| colon(text).is_some_and(|(id, _)| id.len() <= 2));
            let has_priorities = lines.iter().all(|(_, line)| is_priority(line));
            let row = |&(line, text): &(u64, &'a str)| {
                let (id, query) = colon(text)
                    .ok_or_else(|| InputError::line(path, line, "no colon, expected `id:query` as in most lines"))?;
                let query = if has_priorities { colon(query).map_or(query, |(_, query)| query) } else { query };
                Ok(Row { line, cells: vec![Cow::Borrowed(id), Cow::Borrowed(query)] })
            };
            let rows = lines.iter().map(row).collect::<Result<_, InputError>>()?;
            let column = Some(options.column.unwrap_or(2));
            let as_numbers =
                lines.iter().all(|(_, line)| colon(line).is_some_and(|(_, query)| Kind::of(query) == Kind::Number));
            let options = LogOptions { column: if as_numbers { options.column } else { column }, ..*options };
            table::read(path, rows, "colon-separated", None, &options)
        }
        LogFormat::Plain => {
            if options.format.is_none() && has_ids(&lines) {
                let row = |&(line, text): &(u64, &'a str)| {
                    let (id, query) = text.trim().split_once(char::is_whitespace).unwrap_or_default();
                    Row { line, cells: vec![Cow::Borrowed(id), Cow::Borrowed(query)] }
                };
                let options = LogOptions { column: Some(options.column.unwrap_or(2)), ..*options };
                return table::read(path, lines.iter().map(row).collect(), "an id and a query a line", None, &options);
            }
            let drop = if options.format.is_none() { leading_columns(&lines) } else { 0 };
            let row = |&(line, text): &(u64, &'a str)| {
                let text = (0..drop).fold(text.trim(), |text, _| {
                    text.split_once(char::is_whitespace).map_or("", |(_, rest)| rest.trim())
                });
                Row { line, cells: vec![Cow::Borrowed(text)] }
            };
            let rows: Vec<Row<'_>> = lines.iter().map(row).collect();
            let records = rows.iter().filter(|row| foreign::is_record(&row.cells[0])).count();
            if options.format.is_none() && 2 * records > rows.len() {
                let message = format!(
                    "{records} of its {} lines are records of requests, with times, `key=value` or HTTP, expected queries alone \
                     (--log-format plain reads them nevertheless)",
                    rows.len()
                );
                return Err(InputError::file(path, message));
            }
            let form = if drop > 0 { "one query a line behind numbers or times" } else { "one query a line" };
            let column = options.format.map(|_| 1);
            table::read(path, rows, form, None, &LogOptions { column, ..*options })
        }
    }
}

fn format_of(path: &Path, lines: &[(u64, &str)]) -> Result<LogFormat, InputError> {
    let first = lines[0].1.trim_start();
    let share =
        |is_so: &dyn Fn(&str) -> bool| lines.iter().filter(|(_, line)| is_so(line)).count() as f64 / lines.len() as f64;
    if share(&|line| line.contains("took[") && line.contains("source[")) > 0.5 {
        return Ok(LogFormat::SlowLog);
    }
    // Sogou puts queries into brackets, but never first on a line.
    if first.starts_with('{') || first.starts_with('[') && !first.contains('\t') {
        return Ok(LogFormat::Json);
    }
    if let Some(form) = foreign::form(lines) {
        let message = format!("is {form}, expected queries (--log-format plain reads its lines nevertheless)");
        return Err(InputError::file(path, message));
    }
    if first.starts_with('<') {
        return Ok(LogFormat::Topics);
    }
    let tabs = share(&|line| line.contains('\t'));
    // Rows of term numbers differ in length; as plain lines they are refused with that reason.
    let is_numbers = share(&|line| Kind::of(line) == Kind::Number) == 1.0;
    if tabs >= 0.5 && !is_numbers {
        return Ok(LogFormat::Tsv);
    }
    if tabs > 0.05 && !is_numbers {
        let message = format!("{:.0} % of its lines have tabs (--log-format tsv or plain decides)", 100.0 * tabs);
        return Err(InputError::file(path, message));
    }
    let words = |line: &str| -> Vec<String> { line.split_whitespace().map(str::to_owned).collect() };
    let is_judgement =
        |line: &str| matches!(&words(line)[..], [_, iter, _, grade] if is_number(iter) && is_number(grade));
    let is_run = |line: &str| matches!(&words(line)[..], [_, q0, _, rank, score, _] if q0 == "Q0" && is_number(rank) && is_number(score));
    for (what, is_so) in [("relevance judgements", &is_judgement as &dyn Fn(&str) -> bool), ("a TREC run", &is_run)] {
        if share(is_so) == 1.0 && (lines.len() > 1 || what != "relevance judgements") {
            return Err(InputError::file(
                path,
                format!("holds {what}, expected queries (--log-format plain reads it nevertheless)"),
            ));
        }
    }
    if is_csv(path, lines) {
        return Ok(LogFormat::Csv);
    }
    // A time of day is no id.
    if colon(lines[0].1).is_some() && share(&|line| colon(line).is_some()) >= 0.5 && share(&is_clock) < 1.0 {
        return Ok(LogFormat::Colon);
    }
    Ok(LogFormat::Plain)
}

fn is_number(word: &str) -> bool {
    word.parse::<f64>().is_ok()
}

/// Whether a line begins with hours and minutes.
fn is_clock(line: &str) -> bool {
    line.split_whitespace().next().is_some_and(|word| word.len() >= 4 && Kind::of(word) == Kind::Time)
}

/// The id and the query of a line `id:query`. An id is not a word of a query: `701` or `wt09-1`, but not `site` or
/// `http`.
fn colon(line: &str) -> Option<(&str, &str)> {
    let (id, query) = line.split_once(':')?;
    let (id, query) = (id.trim(), query.trim());
    let is_id = id.ends_with(|last: char| last.is_ascii_digit())
        && id.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'));
    is_id.then_some((id, query))
}

fn separator(lines: &[(u64, &str)]) -> u8 {
    let count = |separator: char| lines.iter().filter(|(_, line)| line.contains(separator)).count();
    [',', ';', '|']
        .into_iter()
        .rev()
        .max_by_key(|&separator| count(separator))
        .map_or(b',', |separator| separator as u8)
}

/// Whether lines are CSV and not prose with commas: equal numbers of cells, and a header or columns that prose does not
/// have.
fn is_csv(path: &Path, lines: &[(u64, &str)]) -> bool {
    let separator = separator(lines);
    let text: Vec<&str> = lines.iter().map(|(_, line)| *line).collect();
    let text = text.join("\n");
    let Ok(rows) = csv_rows(path, &text, 1, separator) else { return false };
    let width = rows.first().map_or(0, |row| row.cells.len());
    if width < 2 || rows.iter().any(|row| row.cells.len() != width) {
        return false;
    }
    let known = rows[0].cells.iter().filter(|name| names::is_known(name)).count();
    let header = usize::from(table::has_header(&rows));
    let is_quoted = |&(_, line): &(u64, &str)| {
        line.trim_start().starts_with('"') || line.contains(&format!("{}\"", separator as char))
    };
    let is_strange = |at: usize| {
        let kinds = rows[header..].iter().map(|row| Kind::of(&row.cells[at]));
        kinds.clone().all(|kind| kind != Kind::Text) && kinds.clone().any(|kind| kind != Kind::Empty)
    };
    rows.len() > 1 && 2 * known >= width || lines.iter().all(is_quoted) || (0..width).any(is_strange)
}

/// The records of CSV from line `first` on.
fn csv_rows(path: &Path, text: &str, first: u64, separator: u8) -> Result<Vec<Row<'static>>, InputError> {
    // The crate counts a line only after the second character of a line end.
    let text = text.splitn(first as usize, '\n').last().unwrap_or_default().replace("\r\n", "\n");
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).delimiter(separator).from_reader(text.as_bytes());
    let mut rows = Vec::new();
    for record in reader.into_records() {
        let record = record.map_err(|e| {
            let line = e.position().map_or(first, |position| first - 1 + position.line());
            InputError::line(path, line, format!("is not CSV: {e}"))
        })?;
        let line = record.position().map_or(first, |position| first - 1 + position.line());
        rows.push(Row { line, cells: record.iter().map(|cell| Cow::Owned(cell.to_owned())).collect() });
    }
    Ok(rows)
}

/// Whether each line begins with an id of its own: letters that all ids share, and a number, as in `TEST01 portia`.
fn has_ids(lines: &[(u64, &str)]) -> bool {
    let id = |line: &str| -> Option<(String, String)> {
        let (id, _) = line.trim().split_once(char::is_whitespace)?;
        let (letters, digits) = id.split_at(id.find(|c: char| c.is_ascii_digit())?);
        let is_id = letters.chars().all(char::is_alphabetic) && digits.chars().all(|c| c.is_ascii_digit());
        (is_id && !letters.is_empty()).then(|| (letters.to_owned(), digits.to_owned()))
    };
    let ids: Option<Vec<(String, String)>> = lines.iter().map(|(_, line)| id(line)).collect();
    ids.is_some_and(|ids| {
        let distinct: std::collections::HashSet<&str> = ids.iter().map(|(_, digits)| digits.as_str()).collect();
        // Two queries may begin with names such as `ps4` and `ps5`.
        let is_telling = ids.len() > 2 || ids.len() == 2 && ids.iter().all(|(_, digits)| digits.len() > 1);
        is_telling && distinct.len() == ids.len() && ids.iter().all(|(letters, _)| *letters == ids[0].0)
    })
}

/// Number of lines from which a number in the same place of each of them is an id, a frequency or a time.
const MANY: usize = 20;

/// The number of leading words on each line that end in a line count, a frequency or a time.
fn leading_columns(lines: &[(u64, &str)]) -> usize {
    let word = |line: &str, at: usize| line.split_whitespace().nth(at).map(str::to_owned);
    let is_time = |at: usize| {
        lines
            .iter()
            .all(|(_, line)| word(line, at).is_some_and(|word| word.len() >= 4 && Kind::of(&word) == Kind::Time))
    };
    let mut times = 0;
    while is_time(times) {
        times += 1;
    }
    let numbers = |at: usize| lines.iter().map(|(_, line)| word(line, at)?.parse().ok()).collect::<Option<Vec<f64>>>();
    let is_more = |at: usize| lines.iter().all(|(_, line)| word(line, at).is_some());
    // Of many queries, not all have a number in the same place.
    let is_field = |at: usize| numbers(at).is_some_and(|numbers| numbers.iter().any(|number| *number != numbers[0]));
    if lines.len() >= MANY
        && let Some(last) = (times..times + 3).rev().find(|&at| is_field(at) && is_more(at + 1))
    {
        return last + 1;
    }
    let counts = numbers(times)
        .is_some_and(|numbers| numbers.len() > 2 && numbers.windows(2).all(|pair| pair[1] == pair[0] + 1.0));
    times + usize::from((counts || times == 0 && has_frequencies(lines)) && is_more(times + 1))
}

/// Whether each line begins with the frequency of its query, right-aligned as by `uniq -c`.
fn has_frequencies(lines: &[(u64, &str)]) -> bool {
    let end = |line: &str| {
        let digits = line.trim_start().split(char::is_whitespace).next().filter(|word| word.parse::<u64>().is_ok())?;
        Some(line.len() - line.trim_start().len() + digits.len())
    };
    let ends: Option<Vec<usize>> = lines.iter().map(|(_, line)| end(line)).collect();
    ends.is_some_and(|ends| ends.len() > 1 && ends.iter().all(|end| *end == ends[0]))
        && lines.iter().any(|(_, line)| line.starts_with(' '))
}
