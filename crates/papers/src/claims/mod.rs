//! The papers' statements about their tables and figures, tested on numbers of this program.
//!
//! A claim is a statement of a paper with a test. The test reads rows and curves of one run ([`Results`]), measured a moment ago or
//! read from a file, so that every verdict follows from numbers that are recorded.
//!
//! | verdict | meaning |
//! | --- | --- |
//! | confirmed | the numbers have the relation that the paper states |
//! | not confirmed | they have another one; the reason is a measured cause, or "cause unknown" |
//! | not testable here | a number is missing, or the run is too small; the reason says which |
//!
//! Words such as "much" and "slightly" have the bounds that each statement gives in brackets.

mod cases;
mod check;
mod ding;
mod ding_text;
mod huang;
mod tatikonda;
mod wang;
mod wei;

use tandem_model::base::named::named_enum;

use crate::results::{Found, Gap, Results, captured, shown};

pub use check::{check, judge_folder, read_claims, write_claims};

/// Smallest number of queries whose mean is compared.
const LEAST_QUERIES: u64 = 50;

named_enum! {
    /// The result of testing a statement.
    pub enum Verdict {
        /// The numbers have the stated relation.
        Confirmed = "confirmed",
        /// The numbers have another relation.
        NotConfirmed = "not confirmed",
        /// The numbers do not decide.
        NotTestable = "not testable here",
    }
}

/// A statement of a paper, tested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Name of the table or figure, such as `ding-fig3`.
    pub experiment: String,
    /// Name of the file of numbers without its ending, or empty for numbers that are in no file.
    pub file: String,
    /// The statement in the paper's terms.
    pub statement: String,
    /// Whether it held.
    pub verdict: Verdict,
    /// The numbers that decide.
    pub evidence: String,
    /// The cause of a statement that did not hold, or what is missing.
    pub reason: String,
}

impl Claim {
    /// First author of the paper.
    pub fn paper(&self) -> &str {
        self.experiment.split('-').next().unwrap_or_default()
    }
}

/// Statements about one table or figure, and the form of its rows.
struct Statements {
    experiment: &'static str,
    /// Forms of row names; `{}` stands for any text. `?` in front: a row that some machines or inputs lack.
    rows: &'static [&'static str],
    /// Smallest number of queries.
    least_queries: u64,
    judge: fn(&mut Judge<'_>),
}

/// Statements about means over queries.
const fn on_queries(experiment: &'static str, rows: &'static [&'static str], judge: fn(&mut Judge<'_>)) -> Statements {
    Statements { experiment, rows, least_queries: LEAST_QUERIES, judge }
}

/// Statements about sums and counts, for which any number of queries is enough.
const fn on_counts(experiment: &'static str, rows: &'static [&'static str], judge: fn(&mut Judge<'_>)) -> Statements {
    Statements { experiment, rows, least_queries: 0, judge }
}

fn statements_of(experiment: &str) -> Option<&'static Statements> {
    let all = [ding::ALL, ding_text::ALL, wang::ALL, huang::ALL, wei::ALL, tatikonda::ALL];
    all.into_iter().flatten().find(|statements| statements.experiment == experiment)
}

/// Tests all statements about an experiment.
pub fn judge(experiment: &str, file: &str, results: &Results) -> Vec<Claim> {
    let Some(statements) = statements_of(experiment) else { return Vec::new() };
    let mut judge = Judge { statements, file, results, claims: Vec::new() };
    (statements.judge)(&mut judge);
    judge.claims
}

/// Row names of a run that this version does not make, and forms of rows that a run lacks.
pub fn foreign_rows(experiment: &str, results: &Results) -> Vec<String> {
    let Some(statements) = statements_of(experiment) else { return Vec::new() };
    let form = |pattern: &&'static str| pattern.trim_start_matches('?');
    let is_known = |name: &str| statements.rows.iter().any(|pattern| captured(form(pattern), name).is_some());
    let unknown = results.rows.iter().filter(|row| !is_known(&row.name));
    let unknown = unknown.map(|row| format!("row `{}` is not of this version", row.name));
    let lacking = statements.rows.iter().filter(|pattern| !pattern.starts_with('?') && !results.has(pattern));
    unknown.chain(lacking.map(|pattern| format!("no row `{pattern}`"))).collect()
}

/// Collects the claims of one run.
struct Judge<'a> {
    statements: &'static Statements,
    file: &'a str,
    results: &'a Results,
    claims: Vec<Claim>,
}

/// Whether a statement held, with the deciding numbers and the measured cause of the opposite.
#[derive(Clone, Debug)]
struct Outcome {
    held: bool,
    evidence: String,
    cause: Option<String>,
}

/// An outcome without a cause.
fn outcome(held: bool, evidence: impl Into<String>) -> Outcome {
    Outcome { held, evidence: evidence.into(), cause: None }
}

impl Outcome {
    /// Adds the cause of a statement that does not hold, if numbers show it.
    fn because(self, is_shown: bool, cause: impl Into<String>) -> Self {
        let cause = if self.held || !is_shown { self.cause } else { Some(cause.into()) };
        Self { cause, ..self }
    }

    /// Adds a cause that a number shows, if it is known and large or small enough.
    fn because_of(self, number: Found<f64>, is_shown: impl Fn(f64) -> bool, cause: impl Fn(String) -> String) -> Self {
        match number {
            Ok(number) => self.because(is_shown(number), cause(shown(number))),
            Err(_) => self,
        }
    }
}

impl Judge<'_> {
    /// Tests a statement.
    fn claim(&mut self, statement: impl Into<String>, test: impl FnOnce(&Results) -> Found<Outcome>) {
        let tested = self.large_enough().and_then(|()| test(self.results));
        let (verdict, evidence, reason) = match tested {
            Ok(Outcome { held: true, evidence, .. }) => (Verdict::Confirmed, evidence, String::new()),
            Ok(Outcome { evidence, cause, .. }) => {
                (Verdict::NotConfirmed, evidence, cause.unwrap_or_else(|| String::from("cause unknown")))
            }
            Err(Gap(reason)) => (Verdict::NotTestable, String::new(), reason),
        };
        self.claims.push(Claim {
            experiment: self.statements.experiment.to_owned(),
            file: self.file.to_owned(),
            statement: statement.into(),
            verdict,
            evidence,
            reason,
        });
    }

    fn large_enough(&self) -> Found<()> {
        let least = self.statements.least_queries;
        match self.results.queries() {
            Some(queries) if queries < least => {
                Err(Gap(format!("too few samples: {queries} queries, at least {least} are needed")))
            }
            _ => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::EXPERIMENTS;

    #[test]
    fn experiments_and_statements_belong_together() {
        for experiment in &EXPERIMENTS {
            let claims = judge(experiment.name, "", &Results::missing());
            assert!(!claims.is_empty(), "{}", experiment.name);
            for claim in claims {
                assert_eq!(claim.verdict, Verdict::NotTestable, "{claim:?}");
                assert_eq!(claim.reason, "no result is recorded", "{claim:?}");
            }
        }
        let all = [ding::ALL, ding_text::ALL, wang::ALL, huang::ALL, wei::ALL, tatikonda::ALL];
        assert_eq!(all.iter().map(|statements| statements.len()).sum::<usize>(), EXPERIMENTS.len());
    }
}
