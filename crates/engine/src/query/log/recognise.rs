//! Recognition of the form of a query log by its lines.

use tandem_base::files::InputError;

use super::form::{Form, Source};
use super::table::Table;
use super::{LogFormat, LogOptions, colon, csv, foreign, json, plain, topics, tsv};

/// All forms. A log has the first one that its lines have.
pub(super) static FORMS: [Form; 7] =
    [json::SLOW_LOG, json::JSON, topics::FORM, tsv::TSV, csv::CSV, colon::COLON, plain::PLAIN];

/// Reads a log in the form that the options name, or else in the recognised one.
pub(super) fn recognised(log: Source<'_>, options: &LogOptions) -> Result<Table, InputError> {
    if let Some(format) = options.format {
        return (format.form().read)(&log, options);
    }
    let (line, first) = log.lines[0];
    if first.starts_with("# tandem:") {
        return Err(InputError::line(log.path, line, "is a file of results of this program, expected queries"));
    }
    // A file may begin with remarks; a log's first queries may also begin with `#`.
    // Excel names the separator on a line of its own: `sep=;`.
    let is_separator = |line: &str| line.strip_prefix("sep=").is_some_and(|rest| rest.trim_end().chars().count() == 1);
    let is_remark = |&&(_, line): &&(u64, &str)| line.starts_with("# ") || *line == *"#" || is_separator(line);
    let remarks = log.lines.iter().take_while(is_remark).count().min(log.lines.len() - 1);
    let rest = Source { lines: log.lines[remarks..].to_vec(), ..log };
    let form = FORMS.iter().find(|form| (form.likeness)(&rest) >= 0.5).unwrap_or(&plain::PLAIN);
    match refusal(&rest, form.format) {
        Some(message) => Err(InputError::file(log.path, message)),
        None => (form.read)(if form.format == LogFormat::Plain { &log } else { &rest }, options),
    }
}

/// Why lines that look like this form are no query log, or not a clear one.
fn refusal(log: &Source<'_>, format: LogFormat) -> Option<String> {
    if [LogFormat::SlowLog, LogFormat::Json].contains(&format) {
        return None;
    }
    if let Some(form) = foreign::form(&log.lines) {
        return Some(format!("is {form}, expected queries (--log-format plain reads its lines nevertheless)"));
    }
    if [LogFormat::Topics, LogFormat::Tsv].contains(&format) {
        return None;
    }
    let tabs = log.tabs();
    if tabs > 0.05 {
        return Some(format!("{:.0} % of its lines have tabs (--log-format tsv or plain decides)", 100.0 * tabs));
    }
    let held = foreign::judgements_or_run(log)?;
    Some(format!("holds {held}, expected queries (--log-format plain reads it nevertheless)"))
}
