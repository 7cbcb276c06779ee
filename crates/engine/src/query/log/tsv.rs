//! Query logs in columns between tabs.

use std::borrow::Cow;

use tandem_base::files::InputError;

use super::LogFormat;
use super::form::Form;
use super::table::Row;
use crate::query::log::table::{self};

pub(super) const TSV: Form = Form {
    format: LogFormat::Tsv,
    likeness: |log| log.tabs(),
    read: |log, options| {
        let rows = log.lines.iter().map(|&(line, text)| match text.contains('\t') || options.column == Some(1) {
            true => Ok(Row { line, cells: text.split('\t').map(Cow::Borrowed).collect() }),
            false => Err(InputError::line(log.path, line, "no tab, expected columns between tabs as in most lines")),
        });
        table::read(log.path, rows.collect::<Result<_, _>>()?, "tab-separated", Some('\t'), options)
    },
};
