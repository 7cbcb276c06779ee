//! `tandem report`: one HTML page from folders of results.

use std::io::Write;
use std::path::PathBuf;

use super::Failure;
use tandem_core::files::{check_writable, write_atomically};
use tandem_report::number::counted;
use tandem_report::page::{Folder, page};

/// Make one HTML page from folders of results: the story in words, figures, tables.
#[derive(Debug, clap::Args)]
pub(super) struct Arguments {
    /// Folders of results, of whatever commands; those below them are looked into, too
    #[arg(value_name = "DIR", default_value = "out")]
    folders: Vec<PathBuf>,
    /// The page; one file, which needs no network [default: report.html in the first folder]
    #[arg(short, long, value_name = "FILE")]
    out: Option<PathBuf>,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let folders = Folder::read(&arguments.folders)?;
    // There is a default, so that there is a first.
    let beside = || arguments.folders.first().map_or_else(PathBuf::new, |first| first.join("report.html"));
    let out = arguments.out.clone().unwrap_or_else(beside);
    check_writable(&out)?;
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
