//! The files of a capacity that was driven live.

use std::path::Path;

use tandem_drive::lab::{Answer, GpuSource, Node, Question};
use tandem_model::base::machine::Class;
use tandem_model::files::Provenance;
use tandem_model::study::Criterion;

use super::{DrivenArguments, words};
use crate::result_writer::ResultWriter;
use tandem_report::capacity::{CapacityRow, write_capacities};
use tandem_report::validation::{write_live_runs, write_service, write_validation_capacity};

/// The lines at the head of every file.
pub(crate) fn provenance(
    arguments: &DrivenArguments,
    node: &Node,
    question: &Question,
    index: &str,
    found: &Answer,
) -> Provenance {
    let gpu = match node.gpu() {
        GpuSource::Real(device) => device.clone(),
        GpuSource::Replay(source) => format!("replay of {source}"),
        GpuSource::Declined | GpuSource::Missing => String::from("none"),
    };
    let provenance = Provenance::new()
        .with_command_and_machine()
        .with("index", node.workload().provenance.get("index").unwrap_or_default())
        .with("index_name", index)
        .with("mode", arguments.search.mode)
        .with("k", arguments.search.k)
        .with("arrivals", arguments.process.named(&question.process))
        .with("objective", question.objective.within(question.deadline))
        .with("cpu", node.cpu_name())
        .with("cpu_workers", node.machine().count(Class::CPU))
        .with("gpu", gpu);
    let memory = arguments.gpu_memory.named(&arguments.settings);
    let provenance = memory.into_iter().fold(provenance, |all, memory| all.with("gpu memory", memory));
    words::warnings(found).into_iter().fold(provenance, |all, warning| all.with("warning", warning))
}

/// Writes the measurements, `live_runs.csv` and, if query costs were measured, `service.csv`, and the result: `validation_capacity.csv` for a validation,
/// else `capacity.csv` if any rate held.
pub(crate) fn write(
    found: &Answer,
    criterion: &Criterion,
    provenance: &Provenance,
    out: &Path,
    is_validation: bool,
) -> ResultWriter {
    let mut kept = ResultWriter::new();
    let mut provenance = provenance.clone();
    if !is_validation && found.best().is_none() {
        provenance = provenance.with("answer", words::no_answer(found));
    }
    let provenance = &provenance;
    let path = out.join("live_runs.csv");
    kept.rows("live_runs", &path, write_live_runs(&path, provenance, criterion, &found.driven));
    if !found.service.is_empty() {
        let path = out.join("service.csv");
        kept.rows("service", &path, write_service(&path, provenance, &found.service));
    }
    let path = out.join(if is_validation { "validation_capacity.csv" } else { "capacity.csv" });
    if is_validation {
        kept.rows("validation_capacity", &path, write_validation_capacity(&path, provenance, criterion, &found.driven));
    } else if found.driven.iter().any(|driven| driven.held.is_some()) {
        let rows: Vec<CapacityRow> =
            found.capacities.iter().cloned().map(|one| CapacityRow::compared(one, &found.driven)).collect();
        kept.rows("capacity", &path, write_capacities(&path, provenance, &rows));
    }
    kept
}
