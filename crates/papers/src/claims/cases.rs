//! Statements that hold if a relation holds in every case.

use super::{Outcome, outcome};
use crate::results::{Found, Gap, Results, captured, shown};

/// A case: its name, and the two numbers that are compared.
pub(super) type Case = (String, f64, f64);

/// Cases of rows of two forms with equal texts in their holes; both are our numbers.
pub(super) fn joined(results: &Results, first: &str, second: &str) -> Found<Vec<Case>> {
    let others = results.like(second)?;
    let found = results.like(first)?.into_iter().filter_map(|(name, a)| {
        let b = others.iter().find(|(other, _)| *other == name)?.1;
        Some((name, a, b))
    });
    Ok(found.collect())
}

/// A single case of two rows of ours.
pub(super) fn pair(results: &Results, first: &str, second: &str) -> Found<Vec<Case>> {
    Ok(vec![(format!("{first} and {second}"), results.ours(first)?, results.ours(second)?)])
}

/// Cases of rows of a form, each with a fixed number.
pub(super) fn against(results: &Results, form: &str, number: f64) -> Found<Vec<Case>> {
    Ok(results.like(form)?.into_iter().map(|(name, ours)| (name, ours, number)).collect())
}

/// Cases of our numbers and the paper's, of rows of a form for which the paper gives a number.
pub(super) fn with_papers(results: &Results, form: &str) -> Found<Vec<Case>> {
    results.like(form)?;
    let of_form = results.rows.iter().filter(|row| captured(form, &row.name).is_some());
    Ok(of_form.filter_map(|row| Some((row.name.clone(), row.ours?, row.paper?))).collect())
}

/// Counterexamples in evidence.
const SHOWN: usize = 3;

/// Holds if the first number is below the second in every case.
pub(super) fn below(cases: Vec<Case>) -> Found<Outcome> {
    every(cases, "below", |a, b| a < b)
}

/// Holds if the first number is above the second in every case.
pub(super) fn above(cases: Vec<Case>) -> Found<Outcome> {
    every(cases, "above", |a, b| a > b)
}

/// Holds if the first number differs from the second by at most this share of it in every case.
pub(super) fn near(cases: Vec<Case>, share: f64) -> Found<Outcome> {
    every(cases, "near", |a, b| (a - b).abs() <= share * b.abs())
}

/// Holds if `is_so` holds in every case.
pub(super) fn every(cases: Vec<Case>, relation: &str, is_so: impl Fn(f64, f64) -> bool) -> Found<Outcome> {
    let Some(first) = cases.first() else { return Err(Gap(String::from("no case was measured"))) };
    let text = |(name, a, b): &Case| format!("{name}: {} {relation} {}", shown(*a), shown(*b));
    let against: Vec<&Case> = cases.iter().filter(|(_, a, b)| !is_so(*a, *b)).collect();
    let evidence = match (cases.len(), &against[..]) {
        (1, _) => text(first).replace(&format!(" {relation} "), ", "),
        (count, []) => format!("in all {count} cases, such as {}", text(first)),
        (count, against) => {
            let listed = against.iter().take(SHOWN).map(|(name, a, b)| format!("{name}: {}, {}", shown(*a), shown(*b)));
            let more = if against.len() > SHOWN { ", ..." } else { "" };
            let listed = listed.collect::<Vec<_>>().join("; ");
            format!("in {} of {count} cases; not so: {listed}{more}", count - against.len())
        }
    };
    Ok(outcome(against.is_empty(), evidence))
}

/// Holds if values fall (or do not rise) from each to the next, up to a tolerance as a share of the value.
pub(super) fn falling(values: &[(String, f64)], tolerance: f64) -> Found<Outcome> {
    let cases = values.windows(2).map(|pair| (format!("{} after {}", pair[1].0, pair[0].0), pair[1].1, pair[0].1));
    every(cases.collect(), "not above", |a, b| a <= b * (1.0 + tolerance))
}

/// Holds if values rise (or do not fall) from each to the next, up to a tolerance as a share of the value.
pub(super) fn rising(values: &[(String, f64)], tolerance: f64) -> Found<Outcome> {
    let cases = values.windows(2).map(|pair| (format!("{} after {}", pair[1].0, pair[0].0), pair[1].1, pair[0].1));
    every(cases.collect(), "not below", |a, b| a >= b * (1.0 - tolerance))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_names_the_cases_against_it() {
        let case = |name: &str, a, b| (name.to_owned(), a, b);
        let held = below(vec![case("x", 1.0, 2.0), case("y", 2.0, 3.0)]).unwrap();
        assert!(held.held && held.evidence == "in all 2 cases, such as x: 1 below 2", "{held:?}");
        let failed = below(vec![case("x", 1.0, 2.0), case("y", 4.0, 3.0)]).unwrap();
        assert!(!failed.held && failed.evidence == "in 1 of 2 cases; not so: y: 4, 3", "{failed:?}");
        assert!(near(vec![case("x", 95.0, 100.0)], 0.05).unwrap().held);
        assert!(below(Vec::new()).is_err());
        let values = [("a".to_owned(), 3.0), ("b".to_owned(), 2.0), ("c".to_owned(), 2.1)];
        assert!(falling(&values, 0.1).unwrap().held && !falling(&values, 0.0).unwrap().held);
        assert!(!rising(&values, 0.0).unwrap().held);
    }
}
