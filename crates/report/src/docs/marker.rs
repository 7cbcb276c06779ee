//! Markers: `<!-- table FILE...; clause: value; ... -->`.

/// A parsed marker.
#[derive(Debug)]
pub(super) struct Marker<'a> {
    /// Whether it is a figure rather than a table.
    pub(super) is_figure: bool,
    /// Its files, relative to the root; each may have one `*`.
    pub(super) files: Vec<&'a str>,
    clauses: Vec<(&'a str, &'a str)>,
}

/// All clauses of tables and figures.
const CLAUSES: [&str; 18] = [
    "at", "match", "where", "pivot", "group", "sort", "columns", "out", "title", "x", "y", "ylabel", "series", "low",
    "high", "hollow", "log", "style",
];

impl<'a> Marker<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, String> {
        let inside = text.trim_start_matches("<!--").trim_end_matches("-->").trim();
        let mut parts = split(inside, ';').into_iter();
        let mut head = parts.next().unwrap_or_default().split_whitespace();
        let is_figure = head.next() == Some("figure");
        let mut clauses = Vec::new();
        for part in parts {
            let (name, value) =
                part.split_once(':').ok_or_else(|| format!("`{part}` is not of the form `name: value`"))?;
            if !CLAUSES.contains(&name.trim()) {
                return Err(format!("unknown clause `{}` (known: {})", name.trim(), CLAUSES.join(", ")));
            }
            clauses.push((name.trim(), value.trim()));
        }
        Ok(Self { is_figure, files: head.collect(), clauses })
    }

    /// The value of a clause, if the marker has it.
    pub(super) fn optional(&self, name: &str) -> Option<&'a str> {
        self.clauses.iter().find(|(key, _)| *key == name).map(|(_, value)| *value)
    }

    pub(super) fn clause(&self, name: &str) -> Result<&'a str, String> {
        self.optional(name).ok_or_else(|| format!("the marker lacks the clause `{name}`"))
    }
}

/// The parts of a text between separators that stand outside quotes, brackets and parentheses; trimmed.
pub(super) fn split(text: &str, separator: char) -> Vec<&str> {
    let (mut parts, mut start, mut depth, mut is_quoted) = (Vec::new(), 0, 0_usize, false);
    for (at, c) in text.char_indices() {
        match c {
            '"' => is_quoted = !is_quoted,
            '(' | '[' if !is_quoted => depth += 1,
            ')' | ']' if !is_quoted => depth = depth.saturating_sub(1),
            _ if c == separator && depth == 0 && !is_quoted => {
                parts.push(text[start..at].trim());
                start = at + c.len_utf8();
            }
            _ => {}
        }
    }
    parts.push(text[start..].trim());
    parts
}
