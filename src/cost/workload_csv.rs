//! The file form of workloads: CSV, columns by name and in any order, `#` lines for provenance.
//!
//! ```text
//! # tandem: 0.1.0
//! query_id,mode,terms,shortest,second_shortest,postings,...,cpu_us,gpu_us,results,...
//! 0,and,2,118,5204,5322,...,41.207,96.310,10,...
//! ```
//!
//! Reading is strict, because a misread workload gives a wrong answer without a sign of it: a column or value that is
//! not what it should be is an [`InputError`] with its line and column.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::path::Path;
use std::str::FromStr;

use super::batches::BatchModels;
use super::{Measured, Workload, WorkloadRow};
use crate::files::{Cells, CsvLines, InputError, Provenance, open_text, write_atomically};
use crate::ids::QueryId;
use crate::machine::{Class, PerClass};
use crate::query::{Features, Mode};

/// A column of the file; its number is its place in files that we write.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Column {
    QueryId,
    Mode,
    Terms,
    Shortest,
    SecondShortest,
    Postings,
    Longest,
    Blocks,
    AndBlocks,
    ExpectedMatches,
    CpuUs,
    GpuUs,
    Results,
    LogId,
    CpuSpreadUs,
    GpuSpreadUs,
    GpuDeviceUs,
}

/// Column names, in the order of [`Column`].
const NAMES: [&str; 17] = [
    "query_id",
    "mode",
    "terms",
    "shortest",
    "second_shortest",
    "postings",
    "longest",
    "blocks",
    "and_blocks",
    "expected_matches",
    "cpu_us",
    "gpu_us",
    "results",
    "log_id",
    "cpu_spread_us",
    "gpu_spread_us",
    "gpu_device_us",
];

/// Columns that every workload has; the others are derived or left out where a file lacks them.
const REQUIRED: [Column; 9] = [
    Column::QueryId,
    Column::Mode,
    Column::Terms,
    Column::Shortest,
    Column::SecondShortest,
    Column::Postings,
    Column::CpuUs,
    Column::GpuUs,
    Column::Results,
];

impl Column {
    fn name(self) -> &'static str {
        NAMES[self as usize]
    }
}

/// The least time that a file holds, in microseconds: times have three decimals, and zero is no service time.
const LEAST_US: f64 = 0.001;

impl Workload {
    /// Reads a workload file (`.csv`, also `.gz` or `.zst`).
    ///
    /// # Errors
    /// With line and column: missing or unknown columns, values that are not what the column holds (NaN, negative or
    /// zero times, unknown modes), query ids that repeat, no rows at all.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        Self::parse(path, open_text(path)?)
    }

    /// Reads a workload from any source; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`Workload::read`].
    pub fn parse(name: impl AsRef<Path>, reader: impl BufRead) -> Result<Self, InputError> {
        let path = name.as_ref();
        let mut workload = Self::default();
        let mut lines = CsvLines::new(path, reader);
        let header = lines.next(&mut workload.provenance)?.map(|cells| Header::parse(&cells)).transpose()?;
        let mut lines_by_id = HashMap::new();
        while let Some(header) = &header
            && let Some(cells) = lines.next(&mut workload.provenance)?
        {
            cells.expect_values(header.fields)?;
            let row = Row { cells: &cells, positions: &header.positions };
            let parsed = row.parse(&workload.provenance)?;
            if let Some(first) = lines_by_id.insert(parsed.query_id, cells.line()) {
                let message = format!("`query_id` {} was given in line {first} already", parsed.query_id);
                return Err(row.error(Column::QueryId, message));
            }
            workload.rows.push(parsed);
        }
        workload.batches = BatchModels::take_from(&mut workload.provenance)
            .map_err(|fault| InputError::file(path, format!("a comment line cannot be used: {fault}")))?;
        if workload.rows.is_empty() {
            return Err(InputError::file(path, "holds no queries, expected a header and at least one row"));
        }
        Ok(workload)
    }

    /// Writes a workload file, whole or not at all; names that end in `.gz` or `.zst` are compressed.
    ///
    /// Times and `expected_matches` are rounded to three decimals (times to no less than 0.001); what was read from a
    /// file that this wrote is written and read back unchanged.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        write_atomically(path, |out| match path.extension().and_then(|e| e.to_str()) {
            Some("gz") => {
                let mut encoder = flate2::write::GzEncoder::new(out, flate2::Compression::default());
                self.write_csv(&mut encoder)?;
                encoder.finish().map(drop)
            }
            Some("zst") => {
                let mut encoder = zstd::stream::write::Encoder::new(out, 19)?;
                self.write_csv(&mut encoder)?;
                encoder.finish().map(drop)
            }
            _ => self.write_csv(out),
        })
    }

    /// Writes the CSV text.
    fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        self.batches.in_provenance(&self.provenance).write_to(out)?;
        writeln!(out, "{}", NAMES.join(","))?;
        let time = |us: Option<f64>| us.map_or_else(String::new, |us| format!("{:.3}", us.max(LEAST_US)));
        for row in &self.rows {
            let WorkloadRow { query_id, log_id, mode, features, measured, results } = row;
            let Features { terms, shortest, second_shortest, postings, longest, blocks, and_blocks, expected_matches } =
                features;
            let median = PerClass::from_fn(|kind| time(measured[kind].map(|m| m.median_us)));
            let spread =
                PerClass::from_fn(|kind| measured[kind].map_or_else(String::new, |m| format!("{:.3}", m.spread_us)));
            let device = time(measured[Class::GPU].and_then(|m| m.device_us));
            writeln!(
                out,
                "{query_id},{mode},{terms},{shortest},{second_shortest},{postings},{longest},{blocks},{and_blocks},\
                 {expected_matches:.3},{},{},{results},{log_id},{},{},{device}",
                median[Class::CPU],
                median[Class::GPU],
                spread[Class::CPU],
                spread[Class::GPU],
            )?;
        }
        Ok(())
    }
}

/// Which field of a line holds which column.
struct Header {
    fields: usize,
    /// `None` where the file has no such column.
    positions: [Option<usize>; NAMES.len()],
}

impl Header {
    fn parse(cells: &Cells<'_>) -> Result<Self, InputError> {
        let positions = cells.positions(&NAMES)?;
        let mut missing = REQUIRED.into_iter().filter(|&column| positions[column as usize].is_none()).peekable();
        if missing.peek().is_some() {
            return Err(cells.lacks(missing.map(Column::name)));
        }
        Ok(Self { fields: cells.num_values(), positions })
    }
}

/// One row's values.
struct Row<'a> {
    cells: &'a Cells<'a>,
    positions: &'a [Option<usize>; NAMES.len()],
}

impl Row<'_> {
    fn parse(&self, provenance: &Provenance) -> Result<WorkloadRow, InputError> {
        let query_id: u32 = self.require(Column::QueryId, "a whole number from 0")?;
        let mut measured = PerClass::default();
        for kind in Class::ALL {
            measured[kind] = self.measured(kind)?;
        }
        Ok(WorkloadRow {
            query_id: QueryId(query_id),
            log_id: self.optional(Column::LogId, "a whole number from 0")?.unwrap_or(query_id),
            mode: self.mode()?,
            features: self.features(provenance)?,
            measured,
            results: self.require(Column::Results, "a whole number from 0")?,
        })
    }

    /// The column's value; empty where the file has no such column.
    fn cell(&self, column: Column) -> &str {
        self.positions[column as usize].map_or("", |field| self.cells.value(field))
    }

    /// An error about the column's value.
    fn error(&self, column: Column, message: String) -> InputError {
        self.cells.error_at(self.positions[column as usize].unwrap_or(0), message)
    }

    /// The error that `column` does not hold what it should.
    fn unexpected(&self, column: Column, expected: &str) -> InputError {
        self.error(column, format!("`{}` is \"{}\", expected {expected}", column.name(), self.cell(column)))
    }

    /// The value, or `None` for an empty cell or a missing column.
    fn optional<T: FromStr>(&self, column: Column, expected: &str) -> Result<Option<T>, InputError> {
        match self.cell(column) {
            "" => Ok(None),
            value => value.parse().map(Some).map_err(|_| self.unexpected(column, expected)),
        }
    }

    fn require<T: FromStr>(&self, column: Column, expected: &str) -> Result<T, InputError> {
        self.optional(column, expected)?.ok_or_else(|| self.unexpected(column, expected))
    }

    /// A decimal number, finite and within what `accept` says.
    fn number(&self, column: Column, expected: &str, accept: impl Fn(f64) -> bool) -> Result<Option<f64>, InputError> {
        match self.optional::<f64>(column, expected)? {
            Some(value) if !value.is_finite() || !accept(value) => Err(self.unexpected(column, expected)),
            value => Ok(value),
        }
    }

    fn mode(&self) -> Result<Mode, InputError> {
        let mode = Mode::ALL.into_iter().find(|mode| mode.name() == self.cell(Column::Mode));
        mode.ok_or_else(|| self.unexpected(Column::Mode, "and, or, and-or"))
    }

    fn measured(&self, kind: Class) -> Result<Option<Measured>, InputError> {
        let (median, spread, device) = match kind {
            Class::CPU => (Column::CpuUs, Column::CpuSpreadUs, None),
            Class::GPU => (Column::GpuUs, Column::GpuSpreadUs, Some(Column::GpuDeviceUs)),
            _ => return Ok(None),
        };
        let time = |column| self.number(column, "microseconds above 0", |us| us > 0.0);
        let median_us = time(median)?;
        let spread_us = self.number(spread, "microseconds from 0", |us| us >= 0.0)?;
        let device_us = device.map(time).transpose()?.flatten();
        let Some(median_us) = median_us else {
            for (column, given) in [(Some(spread), spread_us), (device, device_us)] {
                if let (Some(column), Some(_)) = (column, given) {
                    let message = format!("`{}` is given where `{}` is empty", column.name(), median.name());
                    return Err(self.error(column, message));
                }
            }
            return Ok(None);
        };
        Ok(Some(Measured { median_us, spread_us: spread_us.unwrap_or(0.0), device_us }))
    }

    /// The features; those that the file lacks are derived where the list lengths follow from the others.
    fn features(&self, provenance: &Provenance) -> Result<Features, InputError> {
        let count = "a whole number from 1";
        let terms: u32 = self.require(Column::Terms, count)?;
        let shortest: u64 = self.require(Column::Shortest, count)?;
        let second_shortest: u64 = self.require(Column::SecondShortest, count)?;
        let postings: u64 = self.require(Column::Postings, count)?;
        if terms == 0 {
            return Err(self.unexpected(Column::Terms, count));
        }
        if second_shortest < shortest {
            return Err(self.unexpected(Column::SecondShortest, &format!("at least `shortest`, {shortest}")));
        }
        let least = if terms == 1 { second_shortest } else { shortest.saturating_add(second_shortest) };
        if postings < least {
            return Err(self.unexpected(Column::Postings, &format!("the sum of all lists, at least {least}")));
        }
        let longest = self.optional(Column::Longest, count)?;
        let blocks = self.optional(Column::Blocks, count)?;
        let and_blocks = self.optional(Column::AndBlocks, count)?;
        let expected_matches = self.number(Column::ExpectedMatches, "a number from 0", |n| n >= 0.0)?;

        // One to three lists are known from the shortest two and the sum; of more, the longest ones are not.
        let lengths = match terms {
            1 => Some(vec![shortest]),
            2 => Some(vec![shortest, postings - shortest]),
            3 => Some(vec![shortest, second_shortest, postings - shortest - second_shortest]),
            _ => None,
        };
        // Expected matches depend on the size of the collection, which `profile` notes.
        let docs: Option<u64> = provenance.get("docs").and_then(|docs| docs.parse().ok());
        let derived = lengths.map(|lengths| Features::from_lengths(&lengths, docs.unwrap_or(1)));
        let lacks = |column: Column, needs: &str| {
            self.cells.error(format!("no `{}`, and it does not follow from the other columns {needs}", column.name()))
        };
        let or_derived = |given: Option<u64>, column, value: fn(&Features) -> u64| {
            given
                .or_else(|| derived.as_ref().map(value))
                .ok_or_else(|| lacks(column, &format!("for a query of {terms} terms")))
        };
        Ok(Features {
            terms,
            shortest,
            second_shortest,
            postings,
            longest: or_derived(longest, Column::Longest, |f| f.longest)?,
            blocks: or_derived(blocks, Column::Blocks, |f| f.blocks)?,
            and_blocks: or_derived(and_blocks, Column::AndBlocks, |f| f.and_blocks)?,
            expected_matches: expected_matches
                .or_else(|| derived.filter(|_| terms == 1 || docs.is_some()).map(|f| f.expected_matches))
                .ok_or_else(|| {
                    lacks(Column::ExpectedMatches, "(up to three terms it does, with a line `# docs: ...`)")
                })?,
        })
    }
}
