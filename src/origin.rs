//! The origin of costs, an index and a machine: costs do not apply to others.

use tandem_drive::lab::LabError;
use tandem_model::cost::Workload;
use tandem_model::files::{Provenance, this_machine};
use tandem_model::study::{Estimates, named_workload_in};
use tandem_model::traffic::Mode;

use crate::failure::Failure;

/// Keys of a workload file that describe its machine.
const MACHINE: [&str; 3] = ["machine", "cpu", "gpu"];

/// The rows of `mode` of the workload of this name; says what was found in a file of service times.
pub(super) fn workload_in(name: Option<&str>, mode: Option<Mode>) -> Result<(String, Workload), LabError> {
    let (name, workload) = named_workload_in(name, mode)?;
    workload.found().into_iter().for_each(|found| errln!("{name}: {found}; {} queries", workload.rows.len()));
    Ok((name, workload))
}

/// Warns if the model of estimates was fitted on another index or machine than the workload's.
pub(super) fn warn_of_another(estimates: &Estimates, name: &str, workload: &Workload) {
    let Estimates::Model(model_name, model) = estimates else { return };
    for key in ["index", "cpu", "gpu"] {
        let of_model = model.provenance.get(&format!("workload_{key}")).map(String::as_str);
        let of_workload = workload.provenance.get(key);
        if let (Some(of_model), Some(of_workload)) = (of_model, of_workload)
            && of_model != of_workload
        {
            errln!(
                "warning: the model {model_name} is of another {key} ({of_model}) than {name} ({of_workload}): its \
                 estimates may be far off"
            );
        }
    }
}

/// Whether the workload was measured on this machine.
pub(super) fn is_of_here(workload: &Workload) -> bool {
    workload.provenance.get("machine").is_some_and(|machine| machine == this_machine())
}

/// Refuses workloads of different machines, which one model cannot learn.
pub(super) fn check_same_machine(workloads: &[(String, Workload)]) -> Result<(), Failure> {
    let Some(((first_name, first), others)) = workloads.split_first() else { return Ok(()) };
    for (name, workload) in others {
        for key in MACHINE {
            let (one, other) = (first.provenance.get(key), workload.provenance.get(key));
            if let (Some(one), Some(other)) = (one, other)
                && one != other
            {
                let what = format!(
                    "{first_name} and {name} were measured on different machines ({key}: {one}; {other}): train a model \
                     for each"
                );
                return Err(Failure::input(what));
            }
        }
    }
    Ok(())
}

/// The origin in a figure's note: workload, mode, k, machine, and whether GPU times are replayed.
pub(super) fn in_words(name: &str, provenance: &Provenance, mode: Mode, is_replayed: bool) -> String {
    let last = name.rsplit('/').next().unwrap_or(name);
    let mut words = vec![last.split(".workload.csv").next().unwrap_or(last).to_owned(), format!("mode {mode}")];
    words.extend(provenance.get("k").map(|k| format!("top {k}")));
    words.extend(provenance.get("cpu").or_else(|| provenance.get("machine")).map(str::to_owned));
    match provenance.get("gpu") {
        _ if is_replayed => words.push(String::from("GPU: replay")),
        Some("none") | None => {}
        Some(gpu) => words.push(gpu.to_owned()),
    }
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(machine: &str) -> Workload {
        Workload { provenance: Provenance::default().with("machine", machine).with("k", 10), ..Workload::default() }
    }

    #[test]
    fn workloads_of_two_machines_are_not_one() {
        let both = |machine: &str| [(String::from("a.csv"), of("x")), (String::from("b.csv"), of(machine))];
        assert!(check_same_machine(&both("x")).is_ok());
        let message = check_same_machine(&both("y")).unwrap_err().to_string();
        assert!(message.contains("a.csv and b.csv") && message.contains("machine: x; y"), "{message}");
    }

    #[test]
    fn a_plot_says_what_its_numbers_are_of() {
        let words =
            |is_replayed| in_words("traces/enwiki.workload.csv.zst", &of("x").provenance, Mode::Or, is_replayed);
        assert_eq!(words(false), "enwiki, mode or, top 10, x");
        assert_eq!(words(true), "enwiki, mode or, top 10, x, GPU: replay");
    }
}
