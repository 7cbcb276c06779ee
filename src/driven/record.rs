//! `--record` and `--recorded`: live runs that are kept, and the simulator judged by them.

use std::path::{Path, PathBuf};
use std::time::Instant;

use tandem_drive::lab::record::{
    Ablated, BASELINE, DRAWN, Given, Number, RecordedCell, Recording, read_baseline, read_record, replay, worsened,
    write_baseline, write_record,
};
use tandem_drive::lab::{Answer, Node, Question};
use tandem_model::files::{Provenance, check_writable, write_csv};
use tandem_model::sched::PolicyOptions;

use super::DrivenArguments;
use crate::defaults::Bars;
use crate::failure::Failure;
use crate::interrupts;
use crate::output::{is_verbose, result_file};
use tandem_report::number::counted;
use tandem_report::recorded::{ablation_table, cell_table, record_table};

/// Checks whether runs of these arguments can be recorded, before any is driven.
pub(super) fn check(arguments: &DrivenArguments) -> Result<(), Failure> {
    let Some(folder) = &arguments.record else { return Ok(()) };
    let settings = &arguments.settings;
    let has_usual_bursts = settings.burstiness()? == Default::default();
    if !DRAWN.contains(&arguments.process.arrivals.as_str()) || !has_usual_bursts {
        let known = DRAWN.join(", ");
        return Err(Failure::input(format!(
            "--record: a cell names its arrivals, expected {known} with the usual bursts, not {}",
            arguments.process.arrivals
        )));
    }
    if settings.checked()? != PolicyOptions::default() {
        return Err(Failure::input("--record: a cell names its policy only, so leave out settings of policies"));
    }
    Ok(check_writable(&folder.join(BASELINE))?)
}

/// Adds the live runs to the record, where one is asked for, and returns the new files.
pub(crate) fn keep(
    arguments: &DrivenArguments,
    node: &Node,
    question: &Question,
    index_name: &str,
    found: &Answer,
    provenance: &Provenance,
) -> Result<Vec<PathBuf>, Failure> {
    let Some(folder) = &arguments.record else { return Ok(Vec::new()) };
    let machine_file = arguments.machine.read(true)?.map(|(path, _)| PathBuf::from(path));
    let mode = arguments.search.mode.to_string();
    let recording = Recording {
        folder,
        index_name,
        mode: &mode,
        k: arguments.search.k,
        arrivals: &arguments.process.arrivals,
        machine_file: machine_file.as_deref(),
        is_fitted: arguments.settings.fitted,
    };
    Ok(write_record(&recording, node, question, &found.driven, provenance)?)
}

/// All cells of a record, of which there must be some.
fn cells_of(folder: &Path) -> Result<Vec<RecordedCell>, Failure> {
    let cells = read_record(folder)?;
    if cells.is_empty() {
        let hint = "holds no cells (`tandem validate --record DIR` adds some)";
        return Err(Failure::input(format!("{}: {hint}", folder.display())));
    }
    Ok(cells)
}

/// Predicts a record without some numbers of the machine profiles, each in turn, and prints what gets worse.
pub(crate) fn ablate(folder: &Path, out: &Path, without: &[String]) -> Result<(), Failure> {
    let path = out.join("ablation.csv");
    check_writable(&path)?;
    let named = |name: &String| {
        let known = Number::ALL.into_iter().find(|number| number.name() == name);
        let names = Number::ALL.map(Number::name).join(", ");
        known.ok_or_else(|| Failure::setting("without", name, &format!("{names} or all")))
    };
    let numbers: Vec<Number> = match without {
        [all] if all == "all" => Number::ALL.into(),
        some => some.iter().map(named).collect::<Result<_, _>>()?,
    };
    let cells = cells_of(folder)?;
    interrupts::catch();
    let (with, _) = replay(&cells, Given::Before, &Bars::default())?;
    let mut rows = Vec::new();
    for number in numbers {
        let (less, _) = replay(&cells, Given::Without(number), &Bars::default())?;
        rows.extend(Ablated::of(number, &with, &less));
    }
    outln!("{}", ablation_table(&rows).trim_end());
    write_csv(&path, &Provenance::new().with_command_and_machine().with("record", folder.display()), rows)?;
    result_file("ablation", &path);
    errln!("written: {}", path.display());
    Ok(())
}

/// Replays a record, prints its errors, and fails if they are worse than the accepted ones. With the costs of the runs
/// themselves, only cells that know them are replayed, and nothing is judged.
pub(crate) fn judge(folder: &Path, out: &Path, is_given_costs: bool, accepts: bool) -> Result<(), Failure> {
    let started = Instant::now();
    let path = out.join("recorded.csv");
    check_writable(&path)?;
    let mut cells = cells_of(folder)?;
    if is_given_costs {
        cells.retain(|one| one.cell.work_ratio_cpu.or(one.cell.work_ratio_gpu).is_some());
        if cells.is_empty() {
            let why = "no cell knows what its own run cost (`tandem validate --record DIR` adds some that do)";
            return Err(Failure::input(format!("{}: {why}", folder.display())));
        }
    }
    // An accepted one may be of an older program.
    let baseline = if accepts || is_given_costs { None } else { read_baseline(folder)? };
    interrupts::catch();
    let given = if is_given_costs { Given::Costs } else { Given::Before };
    let (compared, contradictions) = replay(&cells, given, &Bars::default())?;
    let fitted = cells.iter().filter(|one| one.cell.fitted == "yes").count();
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("record", folder.display())
        .with("cells", cells.len())
        .with("fitted", fitted);
    write_csv(&path, &provenance, compared.iter().cloned())?;
    result_file("recorded", &path);
    outln!("{}", record_table(&compared).trim_end());
    if is_verbose() {
        outln!("\n{}", cell_table(&compared).trim_end());
    }
    let replayed = counted(cells.len(), "cell", "cells");
    errln!(
        "replayed {replayed}, {fitted} of them fitted; written: {}; took {:.0} s",
        path.display(),
        started.elapsed().as_secs_f64()
    );
    if is_given_costs {
        return Ok(());
    }
    if accepts {
        write_baseline(folder, &provenance, &compared)?;
        errln!("accepted: {}", folder.join(BASELINE).display());
        return Ok(());
    }
    if !contradictions.is_empty() {
        return Err(Failure::failed(format!("forecasts contradict capacities:\n{}", contradictions.join("\n"))));
    }
    let Some(baseline) = baseline else {
        errln!("no errors were accepted yet: `--set accept=true` writes {}", folder.join(BASELINE).display());
        return Ok(());
    };
    let worse = worsened(&baseline, &compared);
    if worse.is_empty() {
        return Ok(());
    }
    Err(Failure::failed(format!("predictions are worse than those accepted last:\n{}", worse.join("\n"))))
}
