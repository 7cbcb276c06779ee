//! Tables as JSON: the rows of a CSV file as objects whose keys are its columns.

use std::path::Path;

use serde::Serialize;
use serde_json::{Map, Number, Value, json};
use tandem_model::files::InputError;

use super::sheet::Sheet;

/// Columns of names, even if they look like numbers.
const NAMES: [&str; 13] = [
    "source", "policy", "gpu", "part", "name", "metric", "run", "kind", "mode", "lane", "doc_id", "machine", "workload",
];

/// The rows of a CSV file. A column contains numbers, or `true` and `false`, if all its values do, else text. Empty
/// values are `null`. Fails if the file can't be read.
pub fn rows_of_csv(path: &Path) -> Result<Value, InputError> {
    let sheet = Sheet::read(path, &path.display().to_string())?;
    let kinds: Vec<ColumnKind> =
        sheet.columns.iter().enumerate().map(|(at, name)| ColumnKind::of(&sheet, at, name)).collect();
    let object = |cells: &Vec<String>| {
        let value = |((name, kind), cell): ((&String, &ColumnKind), &String)| (name.clone(), kind.value(cell));
        Value::Object(sheet.columns.iter().zip(&kinds).zip(cells).map(value).collect::<Map<_, _>>())
    };
    Ok(Value::Array(sheet.rows.iter().map(object).collect()))
}

/// One row as it is written to a file, as an object with the types of [`rows_of_csv`].
pub fn row_of_file(row: impl Serialize) -> Value {
    let Value::Object(columns) = json!(row) else { return Value::Null };
    let typed = |(name, value): (String, Value)| {
        let number = value.as_str().filter(|_| !NAMES.contains(&name.as_str())).and_then(number);
        (name, number.map_or(value, Value::Number))
    };
    Value::Object(columns.into_iter().map(typed).collect())
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ColumnKind {
    Numbers,
    Truths,
    Text,
}

impl ColumnKind {
    fn of(sheet: &Sheet, at: usize, name: &str) -> Self {
        let all = |holds: fn(&str) -> bool| {
            sheet.rows.iter().filter_map(|row| row.get(at)).filter(|cell| !cell.is_empty()).all(|cell| holds(cell))
        };
        match () {
            () if NAMES.contains(&name) => Self::Text,
            () if all(|cell| number(cell).is_some()) => Self::Numbers,
            () if all(|cell| ["true", "false"].contains(&cell)) => Self::Truths,
            () => Self::Text,
        }
    }

    fn value(self, cell: &str) -> Value {
        match self {
            _ if cell.is_empty() => Value::Null,
            Self::Numbers => number(cell).map_or(Value::Null, Value::Number),
            Self::Truths => Value::Bool(cell == "true"),
            Self::Text => Value::String(cell.to_owned()),
        }
    }
}

/// Parses a number. Whole numbers stay whole.
fn number(cell: &str) -> Option<Number> {
    let whole = cell.parse::<u64>().ok().map(Number::from).or_else(|| cell.parse::<i64>().ok().map(Number::from));
    whole.or_else(|| Number::from_f64(cell.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_keeps_its_keys_and_numbers_stay_numbers() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("any.csv");
        let text =
            "# seed: 1\npolicy,rate_qps,seed,overloaded,note,bound_qps\n7,1.50,3,false,12,\n\"a,b\",2,4,true,x,inf\n";
        std::fs::write(&path, text).unwrap();
        let expected = serde_json::json!([
            {"policy": "7", "rate_qps": 1.5, "seed": 3, "overloaded": false, "note": "12", "bound_qps": null},
            {"policy": "a,b", "rate_qps": 2, "seed": 4, "overloaded": true, "note": "x", "bound_qps": "inf"},
        ]);
        let rows = rows_of_csv(&path).unwrap();
        assert_eq!(rows[0]["rate_qps"].as_f64(), Some(1.5));
        assert_eq!(rows[1], expected[1]);
        assert_eq!(rows[0], expected[0]);
    }
}
