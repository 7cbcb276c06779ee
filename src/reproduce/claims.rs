//! `tandem reproduce --claims`: tests the papers' statements on recorded results.

use std::path::Path;

use serde_json::json;
use tandem_model::files::{Provenance, check_writable};

use crate::failure::Failure;
use crate::output::{result, result_file, say, say_screen};
use tandem_papers::{Claim, Verdict, check, judge_folder, write_claims};
use tandem_report::table::Table;

/// Verdicts in the order of tables.
const VERDICTS: [Verdict; 3] = [Verdict::Confirmed, Verdict::NotConfirmed, Verdict::NotTestable];

/// Lists all claims, or checks those that are recorded.
pub(super) fn list(results: &Path, is_check: bool, out: &Path) -> Result<(), Failure> {
    if is_check {
        let faults = check(results).map_err(Failure::input)?;
        let Some(first) = faults.first() else {
            return say("all claims follow from their files\n");
        };
        faults[1..].iter().for_each(|fault| errln!("{fault}"));
        return Err(Failure::input(first.clone()));
    }
    check_writable(&out.join("claims.csv"))?;
    let (claims, faults) = judge_folder(results).map_err(Failure::input)?;
    faults.iter().for_each(|fault| errln!("warning: {fault}"));
    let mut text = format!("{}\n", counts(&claims));
    for claims in claims.chunk_by(|a, b| (&a.experiment, &a.file) == (&b.experiment, &b.file)) {
        let name = if claims[0].file.is_empty() { &claims[0].experiment } else { &claims[0].file };
        text.push_str(&format!("{name}\n{}\n", table(claims)));
    }
    say_screen(&text, "claims.csv")?;
    write_claims(out, &claims, &Provenance::new().with_command_and_machine())?;
    result_file("claims_file", &out.join("claims.csv"));
    let rows = claims.iter().map(|claim| {
        json!({
            "paper": claim.paper(), "experiment": claim.experiment, "recorded_in": claim.file, "statement": claim.statement,
            "verdict": claim.verdict.name(), "evidence": claim.evidence, "reason": claim.reason,
        })
    });
    result("claims", rows.collect::<Vec<_>>());
    say(&format!("\nwritten: {}\n", out.join("claims.csv").display()))
}

/// Statements with verdicts, numbers and reasons.
pub(super) fn table(claims: &[Claim]) -> String {
    let mut table = Table::new(["verdict", "statement of the paper"]);
    for Claim { statement, verdict, evidence, reason, .. } in claims {
        let known = [evidence.as_str(), reason].into_iter().filter(|text| !text.is_empty()).collect::<Vec<_>>();
        table.row([verdict.name().to_owned(), format!("{statement} -- {}", known.join("; "))]);
    }
    table.to_string()
}

/// Numbers of claims by paper and verdict.
fn counts(claims: &[Claim]) -> String {
    let mut table = Table::new(["paper", VERDICTS[0].name(), VERDICTS[1].name(), VERDICTS[2].name()]);
    for claims in claims.chunk_by(|a, b| a.paper() == b.paper()) {
        let count = |verdict| claims.iter().filter(|claim| claim.verdict == verdict).count().to_string();
        table.row([claims[0].paper().to_owned()].into_iter().chain(VERDICTS.map(count)));
    }
    table.to_string()
}
