//! `tandem report`: one HTML page of result folders, or the tables and figures of the documentation.

use std::io::Write;
use std::path::{Path, PathBuf};

use tandem_model::files::{check_writable, write_atomically};

use crate::failure::Failure;
use tandem_report::docs::{pages, render};
use tandem_report::number::counted;
use tandem_report::page::{Folder, page};

/// Make an HTML page of result folders, or render the documentation.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tandem report results -o results.html\n  tandem report --docs --check")]
pub(super) struct Arguments {
    /// Folders of results of any commands; subfolders are included
    #[arg(value_name = "DIR", default_value = "out")]
    folders: Vec<PathBuf>,
    /// Page to write: one file that needs no network [default: report.html in the first folder]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Render the tables and figures in Markdown pages of the current directory, `docs/` and `models/` from result files
    #[arg(long, conflicts_with_all = ["folders", "out"])]
    docs: bool,
    /// With --docs: write nothing, list pages and figures that differ from their result files, and exit with code 2
    #[arg(long, requires = "docs")]
    check: bool,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    if arguments.docs {
        return docs(arguments.check);
    }
    let folders = Folder::read(&arguments.folders)?;
    // The option has a default, so that the list is not empty.
    let beside = || arguments.folders.first().map_or_else(PathBuf::new, |first| first.join("report.html"));
    let out = arguments.out.clone().unwrap_or_else(beside);
    check_writable(&out)?;
    // A page may replace an older page among the results that it shows, and nothing else there.
    let is_below = |folder: &PathBuf| {
        out.canonicalize().ok().zip(folder.canonicalize().ok()).is_some_and(|(out, folder)| out.starts_with(folder))
    };
    if out.extension().is_none_or(|extension| extension != "html") && arguments.folders.iter().any(is_below) {
        let out = out.display();
        return Err(Failure::input(format!("{out} is in a folder that the page shows, name another output")));
    }
    write_atomically(&out, |file| file.write_all(page(&folders).as_bytes()))?;
    for folder in &folders {
        for why in &folder.unread {
            errln!("warning: {}", PathBuf::from(&folder.name).join(why).display());
        }
        let shown = folder.sheets.len() + folder.logs.len() + folder.workloads.len() + folder.models.len();
        let listed = counted(folder.listed.len(), "other listed", "others listed");
        outln!("{}: {} shown, {listed}", folder.name, counted(shown, "file", "files"));
    }
    outln!("page: {}", out.display());
    Ok(())
}

/// Renders the pages below the current directory, or lists those that differ from their result files.
fn docs(is_check: bool) -> Result<(), Failure> {
    let root = Path::new("");
    let mut stale = Vec::new();
    let pages = pages(root)?;
    if pages.is_empty() {
        return Err(Failure::input("no Markdown page is in this directory, in docs/ or in models/"));
    }
    for page in pages {
        for (path, text) in render(root, &page)? {
            if std::fs::read_to_string(&path).is_ok_and(|old| old == text) {
                continue;
            }
            if is_check {
                stale.push(path.display().to_string());
            } else {
                write_atomically(&path, |file| file.write_all(text.as_bytes()))?;
                outln!("{}", path.display());
            }
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let stale = stale.join(", ");
    Err(Failure::input(format!("pages differ from their result files (tandem report --docs renders them): {stale}")))
}
