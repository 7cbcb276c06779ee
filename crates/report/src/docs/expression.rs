//! Cells of tables and values of figures: expressions over the columns of a file, and how they are shown.

use tandem_model::base::quantile::nearest_rank;

use super::marker::split;
use crate::number::significant;

/// The value of an expression for a row. Empty cells, and results that are not finite, are missing.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Value {
    Missing,
    Number(f64),
    Text(String),
}

impl Value {
    fn of_cell(cell: &str) -> Self {
        match cell.parse::<f64>() {
            _ if cell.is_empty() => Self::Missing,
            _ if cell == "true" => Self::Number(1.0),
            _ if cell == "false" => Self::Number(0.0),
            Ok(number) if number.is_finite() => Self::Number(number),
            _ => Self::Text(cell.to_owned()),
        }
    }

    pub(super) fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// The result of arithmetic on two values: missing if one is missing or no number.
    fn with(&self, other: &Self, of: impl Fn(f64, f64) -> f64) -> Self {
        let result = self.number().zip(other.number()).map(|(a, b)| of(a, b)).filter(|result| result.is_finite());
        result.map_or(Self::Missing, Self::Number)
    }
}

/// An expression, how its value is shown, and the heading: `EXPRESSION:FORMAT "heading"`.
///
/// Expressions know columns, numbers, `+ - * /`, `<= >= < >`, parentheses, `abs(x)`, and `mean`, `median`, `p95`, `p99`, `min`,
/// `max`, `sum` and `count` of an expression over the rows of a group. Names with other characters stand in brackets: `[a b]`.
#[derive(Debug)]
pub(super) struct Column<'a> {
    expression: &'a str,
    format: &'a str,
    pub(super) heading: String,
}

impl<'a> Column<'a> {
    /// The columns of a clause, separated by commas.
    pub(super) fn all(clause: &'a str) -> Vec<Self> {
        split(clause, ',').into_iter().map(Self::parse).collect()
    }

    pub(super) fn parse(text: &'a str) -> Self {
        let (shown, heading) = text.split_once('"').unwrap_or((text, ""));
        let (shown, heading) = (shown.trim(), heading.trim_end_matches('"'));
        let (expression, format) = match split(shown, ':')[..] {
            [expression, format] => (expression, format),
            _ => (shown, ""),
        };
        let heading = if heading.is_empty() { expression.trim_matches(['[', ']']) } else { heading };
        Self { expression, format, heading: heading.to_owned() }
    }

    /// The value for a group of rows; columns outside aggregates are those of its first row.
    pub(super) fn value(&self, columns: &[String], group: &[&[String]]) -> Result<Value, String> {
        let mut parser = Parser { rest: self.expression, columns, group };
        let value = parser.comparison()?;
        match parser.rest.trim() {
            "" => Ok(value),
            rest => Err(format!("unexpected `{rest}` in `{}`", self.expression)),
        }
    }

    /// The value as text, by the format: by default numbers have four significant digits; `6s` six of them, `.2` two decimals,
    /// `.1%` per cent with one decimal, `+` before these a sign; `met|not met` words for true and false; `raw` the file's text.
    pub(super) fn text(&self, columns: &[String], group: &[&[String]]) -> Result<String, String> {
        if self.format == "raw" {
            return Ok(cell(columns, group, self.expression)?.to_owned());
        }
        match self.value(columns, group)? {
            Value::Number(number) => self.shown(number),
            // An unknown format is an error for any cell.
            Value::Missing => self.shown(0.0).map(|_| String::new()),
            Value::Text(text) => self.shown(0.0).map(|_| text),
        }
    }

    /// The key that the rows of a group share: the text of the value if a format is given, otherwise the file's text.
    pub(super) fn key(&self, columns: &[String], row: &[&[String]]) -> Result<String, String> {
        if self.format.is_empty() {
            Ok(cell(columns, row, self.expression)?.to_owned())
        } else {
            self.text(columns, row)
        }
    }

    fn shown(&self, value: f64) -> Result<String, String> {
        shown(self.format, value)
    }
}

/// The place of a column.
pub(super) fn place(columns: &[String], name: &str) -> Result<usize, String> {
    let place = columns.iter().position(|column| column == name.trim());
    place.ok_or_else(|| format!("no column `{}` (columns: {})", name.trim(), columns.join(", ")))
}

/// The cell of a column in the first row of a group.
fn cell<'a>(columns: &[String], group: &[&'a [String]], name: &str) -> Result<&'a str, String> {
    let place = place(columns, name)?;
    Ok(group.first().map_or("", |row| row[place].as_str()))
}

/// A number in a format, such as `.1%`, `3s`, `+.1x` or `yes|no`.
fn shown(asked: &str, value: f64) -> Result<String, String> {
    if let Some((yes, no)) = asked.split_once('|') {
        return Ok(if value != 0.0 { yes } else { no }.to_owned());
    }
    // An error: in per cent up to 100 %, else the prediction as a multiple of the measurement.
    if let Some(of_percent) = asked.strip_suffix('x') {
        let times = || format!("{} times", with_thousands(&significant(1.0 + value, 3).to_string()));
        return if value > 1.0 { Ok(times()) } else { shown(&format!("{of_percent}%"), value) };
    }
    let unknown = || format!("unknown format `{asked}`");
    let (format, has_sign) = asked.strip_prefix('+').map_or((asked, false), |rest| (rest, true));
    let (format, scale, unit) = format.strip_suffix('%').map_or((format, 1.0, ""), |rest| (rest, 100.0, " %"));
    let value = value * scale;
    let digits = match (format.strip_prefix('.'), format.strip_suffix('s')) {
        (Some(decimals), _) => format!("{value:.*}", decimals.parse().map_err(|_| unknown())?),
        (_, Some(digits)) => significant(value, digits.parse().map_err(|_| unknown())?).to_string(),
        _ if !format.is_empty() => return Err(unknown()),
        _ if unit.is_empty() => significant(value, 4).to_string(),
        _ => format!("{value:.0}"),
    };
    let sign = if has_sign && value > 0.0 { "+" } else { "" };
    Ok(format!("{sign}{}{unit}", with_thousands(&digits)))
}

/// A number with commas between thousands.
fn with_thousands(number: &str) -> String {
    let (sign, number) = number.strip_prefix('-').map_or(("", number), |rest| ("-", rest));
    let (whole, decimals) = number.split_once('.').map_or((number, None), |(whole, decimals)| (whole, Some(decimals)));
    let mut text = String::from(sign);
    for (at, digit) in whole.chars().enumerate() {
        if at > 0 && (whole.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    decimals.map_or(text.clone(), |decimals| format!("{text}.{decimals}"))
}

/// Reads an expression from left to right and evaluates it.
struct Parser<'a> {
    rest: &'a str,
    columns: &'a [String],
    group: &'a [&'a [String]],
}

impl Parser<'_> {
    /// Reads one of these signs, if the text continues with it.
    fn takes(&mut self, signs: &[&'static str]) -> Option<&'static str> {
        self.rest = self.rest.trim_start();
        let sign = signs.iter().find(|sign| self.rest.starts_with(**sign))?;
        self.rest = &self.rest[sign.len()..];
        Some(sign)
    }

    fn comparison(&mut self) -> Result<Value, String> {
        let left = self.sum()?;
        let Some(sign) = self.takes(&["<=", ">=", "<", ">"]) else { return Ok(left) };
        let right = self.sum()?;
        Ok(left.with(&right, |a, b| {
            f64::from(match sign {
                "<=" => a <= b,
                ">=" => a >= b,
                "<" => a < b,
                _ => a > b,
            })
        }))
    }

    fn sum(&mut self) -> Result<Value, String> {
        let mut value = self.product()?;
        while let Some(sign) = self.takes(&["+", "-"]) {
            let next = self.product()?;
            value = value.with(&next, |a, b| if sign == "+" { a + b } else { a - b });
        }
        Ok(value)
    }

    fn product(&mut self) -> Result<Value, String> {
        let mut value = self.factor()?;
        while let Some(sign) = self.takes(&["*", "/"]) {
            let next = self.factor()?;
            value = value.with(&next, |a, b| if sign == "*" { a * b } else { a / b });
        }
        Ok(value)
    }

    fn factor(&mut self) -> Result<Value, String> {
        if self.takes(&["("]).is_some() {
            let value = self.comparison()?;
            return self.takes(&[")"]).map(|_| value).ok_or_else(|| format!("expected `)`, found `{}`", self.rest));
        }
        if self.takes(&["["]).is_some() {
            let (name, rest) = self.rest.split_once(']').ok_or("expected `]`")?;
            self.rest = rest;
            return Ok(Value::of_cell(cell(self.columns, self.group, name)?));
        }
        let is_word = |c: char| c.is_alphanumeric() || "_.".contains(c);
        let word = &self.rest[..self.rest.find(|c| !is_word(c)).unwrap_or(self.rest.len())];
        self.rest = &self.rest[word.len()..];
        if word.is_empty() {
            return Err(format!("expected a column or a number, found `{}`", self.rest));
        }
        if self.rest.starts_with('(') {
            return self.function(word);
        }
        match word.parse::<f64>() {
            Ok(number) if word.starts_with(|c: char| c.is_ascii_digit()) => Ok(Value::Number(number)),
            _ => Ok(Value::of_cell(cell(self.columns, self.group, word)?)),
        }
    }

    /// A function of the expression in parentheses that follows.
    fn function(&mut self, name: &str) -> Result<Value, String> {
        let (start, group) = (self.rest, self.group);
        // One row at a time, each from the same place in the text.
        let mut values = Vec::new();
        let rows = if name == "abs" { &group[..1] } else { group };
        for row in rows.chunks(1) {
            (self.rest, self.group) = (start, row);
            values.extend(self.factor()?.number());
        }
        self.group = group;
        let count = values.len() as f64;
        let value = match name {
            "count" => count,
            _ if values.is_empty() => return Ok(Value::Missing),
            "abs" => values[0].abs(),
            "sum" => values.iter().sum(),
            "mean" => values.iter().sum::<f64>() / count,
            "median" | "p95" | "p99" => {
                values.sort_by(f64::total_cmp);
                let share = if name == "median" { 0.5 } else { 0.01 * name[1..].parse().unwrap_or(50.0) };
                nearest_rank(&values, share).unwrap_or(f64::NAN)
            }
            "min" => values.into_iter().fold(f64::INFINITY, f64::min),
            "max" => values.into_iter().fold(f64::NEG_INFINITY, f64::max),
            _ => return Err(format!("unknown function `{name}`")),
        };
        Ok(Value::Number(value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_above_a_hundred_per_cent_is_a_multiple() {
        let told = [(".1x", 0.234), ("+.1x", 0.234), (".1x", -0.5), (".1x", 845.8), (".1%", 845.8)];
        let told = told.map(|(format, value)| shown(format, value).unwrap());
        assert_eq!(told, ["23.4 %", "+23.4 %", "-50.0 %", "847 times", "84,580.0 %"]);
    }
}
