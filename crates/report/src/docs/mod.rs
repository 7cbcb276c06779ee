//! Pages whose tables and figures are rendered from result files, so that no number in them is written by hand.
//!
//! A page is Markdown. A marker names files and columns; the block up to the next end marker is rendered:
//!
//! ```text
//! <!-- table results/validation/capacity.csv; columns: policy, predicted_qps "predicted (q/s)", error:+.1% "error" -->
//! | policy | predicted (q/s) | error |
//! ...
//! <!-- end -->
//! ```
//!
//! The clauses of a marker stand between semicolons and apply in this order:
//!
//! | clause | meaning |
//! | --- | --- |
//! | `at: /models` | where the rows of JSON files are: a JSON pointer |
//! | `match: name "{mode} top 10, batches of {size}"` | keeps the rows whose cell has this form; its parts become columns |
//! | `where: policy = mct \| stealing, rate_qps > 100` | keeps the rows that meet all conditions |
//! | `pivot: metric value by name` | one row per name, with one column per metric |
//! | `group: mode, load:%` | one row per mode and load in whole per cent, for aggregates such as `mean(cpu_us)` |
//! | `sort: -capacity_qps` | the order of the rows; descending with a minus sign |
//! | `columns: EXPRESSION:FORMAT "heading", ...` | what is shown (`expression.rs`) |
//!
//! A figure has `out`, `title`, `x`, `y` and `series` instead of `columns` (`figure.rs`). Several files, which may be named by
//! a `*`, are read as one table with a column `file`. The command, commit, date and machine of each file stand below.

mod expression;
mod figure;
mod marker;
mod rows;

use std::path::{Path, PathBuf};

use marker::Marker;
use rows::Rows;
use tandem_model::files::InputError;

const BEGIN: &str = "<!-- ";
const END: &str = "<!-- end -->";

/// The Markdown pages in a folder, and in its folders `docs` and `models` at any depth, in alphabetical order. Fails if
/// a folder cannot be read.
pub fn pages(root: &Path) -> Result<Vec<PathBuf>, InputError> {
    let (mut pages, mut folders) = (Vec::new(), vec![PathBuf::new()]);
    while let Some(folder) = folders.pop() {
        // The current directory has no name.
        let path = root.join(&folder);
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { &path };
        let failed = |e: std::io::Error| InputError::file(path, format!("cannot read: {e}"));
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let below = folder.join(entry.file_name());
            let is_below =
                !folder.as_os_str().is_empty() || ["docs", "models"].iter().any(|name| below == Path::new(name));
            if entry.path().is_dir() && is_below {
                folders.push(below);
            } else if below.extension().is_some_and(|extension| extension == "md") {
                pages.push(below);
            }
        }
    }
    pages.sort();
    Ok(pages)
}

/// Renders the blocks between the markers of a page. Returns the page and its figures, as paths and texts.
///
/// The paths of the page, of result files and of what is returned are relative to `root`. Fails if a file cannot be
/// read, or a marker is malformed or asks for what its files lack: with the line of the marker.
pub fn render(root: &Path, page: &Path) -> Result<Vec<(PathBuf, String)>, InputError> {
    let path = root.join(page);
    let text = std::fs::read_to_string(&path).map_err(|e| InputError::file(&path, format!("cannot read: {e}")))?;
    let folder = page.parent().unwrap_or(Path::new(""));
    let (mut rendered, mut figures, mut done) = (String::new(), Vec::new(), 0);
    while let Some(begin) = next_marker(&text, done) {
        let line = text[..begin].matches('\n').count() as u64 + 1;
        let failed = |message: String| InputError::line(&path, line, message);
        let head = begin + text[begin..].find("-->").ok_or_else(|| failed("the marker lacks `-->`".into()))? + 3;
        let end = text[head..].find(BEGIN).map(|at| head + at).filter(|&at| text[at..].starts_with(END));
        let end = end.ok_or_else(|| failed(format!("the marker lacks its `{END}`")))?;
        let new = block(root, folder, &text[begin..head], &mut figures).map_err(failed)?;
        rendered += &format!("{}\n{new}\n", &text[done..head]);
        done = end;
    }
    rendered += &text[done..];
    Ok(std::iter::once((page.to_owned(), rendered)).chain(figures).collect())
}

/// The start of the next marker from a place in the text on: at the beginning of a line, and not in a block of code.
fn next_marker(text: &str, from: usize) -> Option<usize> {
    let mut lines = text[from..].match_indices(BEGIN).map(|(at, _)| from + at);
    lines.find(|&at| {
        let is_first = at == 0 || text[..at].ends_with('\n');
        let is_code = text[..at].matches("\n```").count() % 2 == 1;
        is_first && !is_code && ["table ", "figure "].iter().any(|kind| text[at + BEGIN.len()..].starts_with(kind))
    })
}

/// The rendered block of a marker.
fn block(root: &Path, folder: &Path, text: &str, figures: &mut Vec<(PathBuf, String)>) -> Result<String, String> {
    let marker = Marker::parse(text)?;
    let rows = Rows::read(root, &marker)?.selected(&marker)?;
    let shown = if marker.is_figure {
        let (path, svg) = figure::drawn(&rows, &marker)?;
        let shown = format!("![{}]({path})", marker.clause("title")?);
        figures.push((folder.join(path), svg));
        shown
    } else {
        rows.markdown(marker.clause("columns")?)?
    };
    Ok(format!("{shown}\n\n{}", rows.origins(&"../".repeat(folder.components().count()))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CSV: &str =
        "# command: tandem x\n# machine: box\npolicy,predicted_qps,measured_qps\nmct,1100.4,1000\na|b,9,\n";

    fn rendered(page: &str) -> Result<Vec<(PathBuf, String)>, String> {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("docs")).unwrap();
        std::fs::write(dir.path().join("a.csv"), CSV).unwrap();
        std::fs::write(dir.path().join("b.json"), r#"{"list": [{"kind": "cpu", "error": {"mean": 0.25}}]}"#).unwrap();
        std::fs::write(dir.path().join("docs/page.md"), page).unwrap();
        render(dir.path(), Path::new("docs/page.md")).map_err(|e| e.to_string())
    }

    #[test]
    fn a_rendered_table_has_its_origin_and_stays_as_it_is() {
        let marker = "<!-- table a.csv; columns: policy, predicted_qps, predicted_qps/measured_qps-1:+.1% \"error, %\", \
                      predicted_qps/measured_qps-1<=0.05:met|not met -->";
        let page = format!("Text.\n```\n<!-- table code.csv -->\n```\n{marker}\nold\n<!-- end -->\nMore.\n");
        let first = rendered(&page).unwrap()[0].1.clone();
        for line in ["| mct | 1,100 | +10.0 % | not met |", "| a\\|b | 9 |  |  |"] {
            assert!(first.lines().any(|other| other == line), "{first}");
        }
        assert!(
            first.contains("[a.csv](../a.csv): `tandem x`; commit not recorded; date not recorded; box"),
            "{first}"
        );
        assert!(first.starts_with("Text.\n") && first.ends_with("<!-- end -->\nMore.\n") && !first.contains("old"));
        assert_eq!(rendered(&first).unwrap()[0].1, first);
    }

    #[test]
    fn values_of_json_files_are_named_by_their_path() {
        let page =
            "<!-- table b.json; at: /list; where: kind = cpu; columns: file, kind, error.mean:% -->\n<!-- end -->";
        let text = &rendered(page).unwrap()[0].1;
        assert!(text.contains("| b | cpu | 25 % |"), "{text}");
    }

    #[test]
    fn rows_are_grouped_by_the_text_of_a_format() {
        let page = "<!-- table a.csv; group: predicted_qps>0:yes|no; columns: count(predicted_qps) \"rows\", \
                    max(predicted_qps) -->\n<!-- end -->";
        let text = &rendered(page).unwrap()[0].1;
        assert!(text.contains("| 2 | 1,100 |"), "{text}");
    }

    #[test]
    fn a_figure_is_a_file_of_its_own() {
        let page = "<!-- figure a.csv; out: x.svg; title: T; x: predicted_qps \"x (q/s)\"; y: measured_qps \"y (q/s)\"; \
                    series: policy -->\n<!-- end -->";
        let files = rendered(page).unwrap();
        assert!(files[0].1.contains("![T](x.svg)"));
        assert_eq!(files[1].0, Path::new("docs/x.svg"));
        assert!(files[1].1.starts_with("<svg") && files[1].1.contains("mct") && files[1].1.contains("y (q/s)"));
    }

    #[test]
    fn markers_of_missing_columns_are_refused_with_their_line() {
        for (marker, message) in [
            (
                "table a.csv; columns: nothing",
                "docs/page.md:2: no column `nothing` (columns: policy, predicted_qps, measured_qps, file)",
            ),
            ("table none.csv; columns: policy", "none.csv: cannot open"),
            ("table none-*.csv; columns: policy", "docs/page.md:2: none-*.csv: no such file"),
            ("table a.csv", "docs/page.md:2: the marker lacks the clause `columns`"),
            ("table a.csv; colums: policy", "docs/page.md:2: unknown clause `colums`"),
            ("table a.csv; where: policy = x; columns: policy", "docs/page.md:2: no row is left"),
            ("table a.csv; columns: policy:5y", "docs/page.md:2: unknown format `5y`"),
            ("table a.csv; columns: (policy", "docs/page.md:2: expected `)`"),
        ] {
            let refused = rendered(&format!("Text\n<!-- {marker} -->\n<!-- end -->")).unwrap_err();
            assert!(refused.contains(message), "{refused}");
        }
        let refused = rendered("<!-- table a.csv; columns: policy -->\n| x |\n").unwrap_err();
        assert!(refused.contains("page.md:1: the marker lacks its `<!-- end -->`"), "{refused}");
    }
}
