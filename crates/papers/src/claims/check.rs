//! Claims of a folder of results, their file, and whether both agree.

use std::io;
use std::path::Path;

use tandem_model::files::{Provenance, write_atomically};

use super::{Claim, Verdict, foreign_rows, judge};
use crate::registry::EXPERIMENTS;
use crate::results::Results;

/// The file of claims in a folder of results.
const FILE: &str = "claims.csv";
const COLUMNS: [&str; 7] = ["paper", "experiment", "recorded_in", "statement", "verdict", "evidence", "reason"];
/// Origin that every file of results names.
const ORIGIN: [&str; 4] = ["command", "commit", "date", "machine"];

/// Judges all experiments on the files of a folder. An experiment without a file has claims that are not testable.
///
/// Faults of files are returned as well: rows that this version does not make, and a missing origin. Fails with a
/// message if the folder or a file cannot be read.
pub fn judge_folder(folder: &Path) -> Result<(Vec<Claim>, Vec<String>), String> {
    let (mut claims, mut faults) = (Vec::new(), Vec::new());
    let entries = std::fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.ok()?.file_name().to_str()?.strip_suffix(".csv").map(str::to_owned)).collect();
    names.sort();
    for experiment in &EXPERIMENTS {
        let is_of = |name: &&String| {
            name.strip_prefix(experiment.name).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let before = claims.len();
        for name in names.iter().filter(is_of) {
            let path = folder.join(format!("{name}.csv"));
            let Some(results) = Results::read(&path)? else { continue };
            let lacking = ORIGIN.into_iter().filter(|key| results.provenance.get(key).is_none());
            let lacking = lacking.map(|key| format!("no `# {key}:` line"));
            let found = lacking.chain(foreign_rows(experiment.name, &results));
            faults.extend(found.map(|fault| format!("{}: {fault}", path.display())));
            claims.extend(judge(experiment.name, name, &results));
        }
        if claims.len() == before {
            claims.extend(judge(experiment.name, "", &Results::missing()));
        }
    }
    Ok((claims, faults))
}

/// Differences between the claims of a folder's results and those of its file, and faults of its files. Fails with a
/// message if a file cannot be read.
pub fn check(folder: &Path) -> Result<Vec<String>, String> {
    let (now, mut faults) = judge_folder(folder)?;
    let written = read_claims(folder)?;
    let what = |claim: &Claim| format!("{} ({}): {}", claim.experiment, claim.file, claim.statement);
    let path = folder.join(FILE);
    for claim in now.iter().filter(|claim| !written.contains(claim)) {
        let verdict = claim.verdict.name();
        faults.push(format!("{}: {}: expected \"{verdict}\" with its evidence", path.display(), what(claim)));
    }
    let is_gone = |claim: &&Claim| !now.iter().any(|other| what(other) == what(claim));
    faults.extend(
        written
            .iter()
            .filter(is_gone)
            .map(|claim| format!("{}: {}: no statement of this version", path.display(), what(claim))),
    );
    Ok(faults)
}

/// Writes claims into `claims.csv` of a folder. Fails as the file system does.
pub fn write_claims(folder: &Path, claims: &[Claim], provenance: &Provenance) -> io::Result<()> {
    write_atomically(&folder.join(FILE), |file| {
        provenance.write_to(file)?;
        let mut csv = csv::Writer::from_writer(file);
        csv.write_record(COLUMNS)?;
        for claim in claims {
            let Claim { experiment, file, statement, verdict, evidence, reason } = claim;
            csv.write_record([claim.paper(), experiment, file, statement, verdict.name(), evidence, reason])?;
        }
        csv.flush()
    })
}

/// Reads `claims.csv` of a folder. Fails with a message if the file cannot be read, or has an unknown verdict.
pub fn read_claims(folder: &Path) -> Result<Vec<Claim>, String> {
    let path = folder.join(FILE);
    let fault = |e: &dyn std::fmt::Display| format!("{}: {e}", path.display());
    let mut reader = csv::ReaderBuilder::new().comment(Some(b'#')).from_path(&path).map_err(|e| fault(&e))?;
    if reader.headers().map_err(|e| fault(&e))? != COLUMNS.as_slice() {
        return Err(fault(&format!("expected the columns {}", COLUMNS.join(", "))));
    }
    let claim = |record: csv::Result<csv::StringRecord>| {
        let cells = record.map_err(|e| fault(&e))?;
        let all = [Verdict::Confirmed, Verdict::NotConfirmed, Verdict::NotTestable];
        let verdict = all.into_iter().find(|verdict| verdict.name() == &cells[4]);
        Ok(Claim {
            experiment: cells[1].to_owned(),
            file: cells[2].to_owned(),
            statement: cells[3].to_owned(),
            verdict: verdict.ok_or_else(|| fault(&format!("unknown verdict `{}`", &cells[4])))?,
            evidence: cells[5].to_owned(),
            reason: cells[6].to_owned(),
        })
    };
    reader.records().map(claim).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verdict_that_does_not_follow_from_its_file_is_found() {
        let dir = tempfile::tempdir().unwrap();
        let origin =
            "# command: x\n# commit: x\n# date: x\n# machine: x\n# note: 600 queries train, 600 are measured; 0 more\n";
        let mut table = format!("{origin}quantity,unit,paper,ours\n");
        for (policy, mb) in [("Qtf", 3), ("QtfDf", 4), ("VFB, λ 0.95", 2)] {
            for what in ["moved\",MB", "hit rate\",%"] {
                table += &format!("\"{policy}, cache 10 % of M: {what},,{mb}\n");
            }
        }
        table += "\"VFB: moved, over Qtf, mean over the sizes\",x,,0.7\n\"VFB: moved, over QtfDf, mean over the sizes\",x,,0.5\n";
        let file = dir.path().join("wang-fig7.csv");
        std::fs::write(&file, &table).unwrap();
        let (claims, faults) = judge_folder(dir.path()).unwrap();
        assert_eq!(faults, Vec::<String>::new());
        write_claims(dir.path(), &claims, &Provenance::new()).unwrap();
        assert_eq!(read_claims(dir.path()).unwrap(), claims);
        assert_eq!(check(dir.path()), Ok(Vec::new()));

        // VFB moves most, and the file says nothing of its machine.
        std::fs::write(&file, table.replace("moved\",MB,,2", "moved\",MB,,9").replace("# machine: x\n", "")).unwrap();
        let faults = check(dir.path()).unwrap();
        assert!(faults.iter().any(|fault| fault.contains("wang-fig7.csv: no `# machine:` line")), "{faults:?}");
        assert!(faults.iter().any(|fault| fault.contains("expected \"not confirmed\"")), "{faults:?}");
        // A row of another version is found, and so is the lack of its new name.
        std::fs::write(&file, table.replace("hit rate", "hits")).unwrap();
        let faults = check(dir.path()).unwrap();
        assert!(faults.iter().any(|fault| fault.contains("is not of this version")), "{faults:?}");
        assert!(faults.iter().any(|fault| fault.contains("no row `{}, cache {} % of M: hit rate`")), "{faults:?}");
    }
}
