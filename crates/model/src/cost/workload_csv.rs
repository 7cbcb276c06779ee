//! The file form of workloads: CSV, columns by name and in any order, `#` lines for provenance.
//!
//! ```text
//! # tandem: 0.1.0
//! query_id,mode,terms,shortest,second_shortest,postings,...,cpu_us,gpu_us,results,...
//! 0,and,2,118,5204,5322,...,41.207,96.310,10,...
//! ```
//!
//! Files with service times alone are read by `own_times.rs`.
//!
//! Reading is strict, because a misread workload gives wrong answers without notice. An invalid column or value is an
//! [`InputError`] with its line and column.

use std::collections::HashMap;
use std::io::{self, BufRead, Cursor, Read};
use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::batches::BatchModels;
use super::workload::{MOST_US, Measured, Workload, WorkloadRow};
use super::{SpeedUp, comment_line, own_times};
use crate::base::ids::QueryId;
use crate::base::machine::{Class, PerClass};
use crate::files::{CsvReader, Decimals, InputError, Provenance, Record, Row, open_text, parsed, write_csv};
use crate::traffic::{Features, IndexFeatures, Mode, with_index_features};

/// Makes [`WorkloadLine`] from the columns: for each its name, its form in a line, and its value in a row. Files of earlier versions
/// may lack `optional` columns.
macro_rules! columns {
    ($row:ident: $($(#[$serde:meta])* $([$optional:ident])? $column:ident: $form:ty = $value:expr,)+) => {
        /// A line of the file. Missing optional columns are derived or left out.
        #[derive(Debug, Serialize, Deserialize)]
        struct WorkloadLine {
            $($(#[$serde])* $column: $form,)+
        }

        impl Record for WorkloadLine {
            const OPTIONAL: &'static [&'static str] = &[$($(name!($optional $column),)?)+];
        }

        impl WorkloadLine {
            fn of($row: &WorkloadRow) -> Self {
                Self { $($column: $value,)+ }
            }
        }
    };
}

macro_rules! name {
    (optional $column:ident) => {
        stringify!($column)
    };
}

/// Lists the columns, in their order in files. A new column needs a line here, a field of [`WorkloadRow`], its reading in
/// [`row`], and a row in `traces/README.md`. Columns of index features come from their own list.
macro_rules! define_columns {
    ($($(#[$meaning:meta])* $feature:ident,)*) => {
        columns! { row:
            query_id: QueryId = row.query_id,
            mode: Mode = row.mode,
            terms: Count = Count(row.features.terms.into()),
            shortest: Count = Count(row.features.shortest),
            second_shortest: Count = Count(row.features.second_shortest),
            postings: Count = Count(row.features.postings),
            [optional] longest: Option<Count> = known(row.features.longest),
            [optional] blocks: Option<Count> = known(row.features.blocks),
            [optional] and_blocks: Option<Count> = known(row.features.and_blocks),
            [optional] expected_matches: Option<AtLeastZero> =
                row.features.is_complete().then_some(AtLeastZero(row.features.expected_matches)),
            cpu_us: Option<ServiceUs> = row.measured[Class::CPU].map(|m| ServiceUs(m.median_us)),
            gpu_us: Option<ServiceUs> = row.measured[Class::GPU].map(|m| ServiceUs(m.median_us)),
            results: u32 = row.results,
            [optional] log_id: Option<u32> = Some(row.log_id),
            [optional] cpu_spread_us: Option<SpreadUs> = row.measured[Class::CPU].map(|m| SpreadUs(m.spread_us)),
            [optional] gpu_spread_us: Option<SpreadUs> = row.measured[Class::GPU].map(|m| SpreadUs(m.spread_us)),
            #[serde(skip_serializing)]
            [optional] predicted_us: Option<ServiceUs> = row.predicted_us.map(ServiceUs),
            [optional] gpu_device_us: Option<ServiceUs> =
                row.measured[Class::GPU].and_then(|m| m.device_us).map(ServiceUs),
            $([optional] $feature: Option<AtLeastZero> =
                row.index_features.map(|f| f.$feature).filter(|number| !number.is_nan()).map(AtLeastZero),)*
        }

        impl WorkloadLine {
            /// The features from the index, as far as given.
            fn index_features(&self) -> [Option<AtLeastZero>; IndexFeatures::COUNT] {
                [$(self.$feature),*]
            }
        }
    };
}
with_index_features!(define_columns);

/// The message for a file of an earlier version with a line `# contention`.
const OLD_CONTENTION: &str = "`contention` belongs to machine profiles now (delete this line, and measure the machine with \
                              these queries: `tandem profile INDEX --queries FILE --machine`)";

/// Columns that all files of `profile` have. Files of service times have at most one of these names.
const OF_PROFILES: [&str; 5] = ["terms", "shortest", "second_shortest", "postings", "results"];

/// The key of the comment line with the speed-up on several cores.
const SPEED_UP: &str = "speed_up";

/// A count; 0 becomes an empty cell, for unknown.
fn known(count: u64) -> Option<Count> {
    Some(Count(count)).filter(|_| count > 0)
}

#[derive(Clone, Copy, Debug, Serialize)]
#[serde(transparent)]
struct Count(u64);

#[derive(Clone, Copy, Debug)]
struct ServiceUs(f64);

#[derive(Clone, Copy, Debug)]
struct SpreadUs(f64);

#[derive(Clone, Copy, Debug)]
struct AtLeastZero(f64);

/// The least time in a file, in microseconds. Times have three decimals, and zero is no service time.
const LEAST_US: f64 = 0.001;

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let count = |text: &str| text.parse().ok().filter(|&count| count > 0);
        parsed(deserializer, "a whole number from 1", count).map(Self)
    }
}

impl<'de> Deserialize<'de> for ServiceUs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let us = |text: &str| text.parse().ok().filter(|&us: &f64| us > 0.0 && us.is_finite());
        parsed(deserializer, "microseconds above 0", us).map(Self)
    }
}

impl<'de> Deserialize<'de> for SpreadUs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, "microseconds from 0", at_least_zero).map(Self)
    }
}

impl<'de> Deserialize<'de> for AtLeastZero {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        parsed(deserializer, "a number from 0", at_least_zero).map(Self)
    }
}

fn at_least_zero(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| *number >= 0.0 && number.is_finite())
}

impl Serialize for ServiceUs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Decimals::<3>(self.0.max(LEAST_US)).serialize(serializer)
    }
}

impl Serialize for SpreadUs {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Decimals::<3>(self.0).serialize(serializer)
    }
}

impl Serialize for AtLeastZero {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        Decimals::<3>(self.0).serialize(serializer)
    }
}

impl Workload {
    /// Reads a workload file (`.csv`, also `.gz` or `.zst`). Fails with line and column: missing or unknown columns,
    /// invalid values (NaN, times not above zero or above an hour, unknown modes), repeated query ids, no rows.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        Self::parse(path, open_text(path)?)
    }

    /// Reads a workload from any source; errors use `name`. Fails as [`Workload::read`].
    pub fn parse(name: impl AsRef<Path>, mut reader: impl BufRead) -> Result<Self, InputError> {
        let path = name.as_ref();
        let (mut head, mut header, mut line) = (Vec::new(), 0..0, 0);
        while head[header.clone()].trim_ascii().is_empty() || head[header.clone()].starts_with(b"#") {
            (header.start, line) = (head.len(), line + 1);
            let length = reader.read_until(b'\n', &mut head);
            let length = length.map_err(|e| InputError::line(path, line, format!("cannot read: {e}")))?;
            header.end = header.start + length;
            if length == 0 {
                break;
            }
        }
        if let Some(before) = head.split(|&byte| byte == b'\n').position(|line| line.starts_with(b"# contention:")) {
            return Err(InputError::line(path, before as u64 + 1, OLD_CONTENTION));
        }
        let columns = String::from_utf8_lossy(&head[header]).into_owned();
        let has_column = |name: &str| columns.split(',').any(|column| column.trim().trim_matches('"') == name);
        let is_own = OF_PROFILES.into_iter().filter(|name| has_column(name)).count() < 2;
        let reader = Cursor::new(head).chain(reader);
        let (mut provenance, rows) = if is_own { own_times::read(path, reader)? } else { read_rows(path, reader)? };
        if rows.is_empty() {
            return Err(InputError::file(path, "holds no queries, expected a header and at least one row"));
        }
        let unusable = |fault| InputError::file(path, format!("a comment line cannot be used: {fault}"));
        let batches = BatchModels::take_from(&mut provenance).map_err(unusable)?;
        let speed_up = comment_line::take(&mut provenance, SPEED_UP, SpeedUp::check).map_err(unusable)?;
        Ok(Self { provenance, rows, batches, speed_up })
    }

    /// Writes a workload file atomically. Names that end in `.gz` or `.zst` are compressed.
    ///
    /// Times and `expected_matches` are rounded to three decimals, times to no less than 0.001. Writing and reading such a
    /// file again leaves it unchanged. Fails as the file system does.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let provenance = self.batches.in_provenance(&self.provenance);
        let provenance = comment_line::with(&provenance, SPEED_UP, self.speed_up.as_ref());
        write_csv(path, &provenance, self.rows.iter().map(WorkloadLine::of))
    }
}

/// The comment lines and all rows, whose ids are distinct.
fn read_rows(path: &Path, reader: impl BufRead) -> Result<(Provenance, Vec<WorkloadRow>), InputError> {
    let mut lines = CsvReader::<WorkloadLine, _>::new(path, reader)?;
    let mut rows = Vec::new();
    let mut lines_by_id = HashMap::new();
    while let Some(line) = lines.next_row()? {
        let row = row(&line)?;
        if let Some(first) = lines_by_id.insert(row.query_id, line.line()) {
            let message = format!("`query_id` {} was given in line {first} already", row.query_id);
            return Err(line.error_at("query_id", message));
        }
        rows.push(row);
    }
    Ok((lines.into_provenance(), rows))
}

fn row(line: &Row<'_, WorkloadLine>) -> Result<WorkloadRow, InputError> {
    let WorkloadLine {
        query_id,
        mode,
        results,
        log_id,
        cpu_us,
        gpu_us,
        cpu_spread_us,
        gpu_spread_us,
        gpu_device_us,
        predicted_us,
        ..
    } = line.value;
    let cpu = measured(line, ["cpu_us", "cpu_spread_us", ""], (cpu_us, cpu_spread_us, None))?;
    let gpu = measured(line, ["gpu_us", "gpu_spread_us", "gpu_device_us"], (gpu_us, gpu_spread_us, gpu_device_us))?;
    Ok(WorkloadRow {
        query_id,
        log_id: log_id.unwrap_or(query_id.0),
        mode,
        features: features(line)?,
        index_features: index_features(&line.value),
        measured: PerClass::two(cpu, gpu),
        predicted_us: predicted_us.map(|us| us.0),
        results,
    })
}

/// The measurement on a class of processor, from columns of these names: median, spread and device time.
fn measured<T>(
    line: &Row<'_, T>,
    names: [&str; 3],
    (median, spread, device): (Option<ServiceUs>, Option<SpreadUs>, Option<ServiceUs>),
) -> Result<Option<Measured>, InputError> {
    let Some(ServiceUs(median_us)) = median else {
        for (name, is_given) in [(names[1], spread.is_some()), (names[2], device.is_some())] {
            if is_given {
                return Err(line.error_at(name, format!("`{name}` is given where `{}` is empty", names[0])));
            }
        }
        return Ok(None);
    };
    at_most_an_hour(line, names[0], median_us)?;
    device.map_or(Ok(()), |ServiceUs(us)| at_most_an_hour(line, names[2], us))?;
    let spread_us = spread.map_or(0.0, |spread| spread.0);
    Ok(Some(Measured { median_us, spread_us, device_us: device.map(|us| us.0) }))
}

fn at_most_an_hour<T>(line: &Row<'_, T>, name: &str, us: f64) -> Result<(), InputError> {
    if us <= MOST_US {
        return Ok(());
    }
    Err(line.unexpected(name, "microseconds, at most an hour of them (3.6e9)"))
}

/// The features from the index. Those that an older file lacks are NaN; `None` if it has none.
fn index_features(line: &WorkloadLine) -> Option<IndexFeatures> {
    let given = line.index_features();
    let is_any = given.iter().any(Option::is_some);
    is_any.then(|| IndexFeatures::from_vector(given.map(|number| number.map_or(f64::NAN, |number| number.0))))
}

/// The features. Missing ones are derived where the list lengths follow from the other columns, and unknown otherwise.
fn features(line: &Row<'_, WorkloadLine>) -> Result<Features, InputError> {
    let WorkloadLine {
        terms: Count(terms),
        shortest: Count(shortest),
        second_shortest: Count(second_shortest),
        postings: Count(postings),
        longest,
        blocks,
        and_blocks,
        expected_matches,
        ..
    } = line.value;
    let terms = u32::try_from(terms).map_err(|_| line.unexpected("terms", "a whole number from 1"))?;
    if second_shortest < shortest {
        return Err(line.unexpected("second_shortest", &format!("at least `shortest`, {shortest}")));
    }
    let least = if terms == 1 { second_shortest } else { shortest.saturating_add(second_shortest) };
    if postings < least {
        return Err(line.unexpected("postings", &format!("the sum of all lists, at least {least}")));
    }

    // Up to three list lengths follow from the shortest two and the sum; beyond that the longest are unknown.
    let lengths = match terms {
        1 => Some(vec![shortest]),
        2 => Some(vec![shortest, postings - shortest]),
        3 => Some(vec![shortest, second_shortest, postings - shortest - second_shortest]),
        _ => None,
    };
    // Expected matches depend on the size of the collection, which `profile` records.
    let docs: Option<u64> = line.provenance().get("docs").and_then(|docs| docs.parse().ok());
    let derived = lengths.map(|lengths| Features::from_lengths(&lengths, docs.unwrap_or(1)));
    let or_derived = |given: Option<Count>, value: fn(&Features) -> u64| {
        given.map(|count| count.0).or_else(|| derived.as_ref().map(value))
    };
    let longest = or_derived(longest, |f| f.longest);
    let blocks = or_derived(blocks, |f| f.blocks);
    let and_blocks = or_derived(and_blocks, |f| f.and_blocks);
    let expected_matches = expected_matches
        .map(|number| number.0)
        .or_else(|| derived.filter(|_| terms == 1 || docs.is_some()).map(|f| f.expected_matches))
        // One unknown feature makes them incomplete.
        .filter(|_| [longest, blocks, and_blocks].iter().all(Option::is_some));
    Ok(Features {
        terms,
        shortest,
        second_shortest,
        postings,
        longest: longest.unwrap_or(0),
        blocks: blocks.unwrap_or(0),
        and_blocks: and_blocks.unwrap_or(0),
        expected_matches: expected_matches.unwrap_or(f64::NAN),
    })
}
