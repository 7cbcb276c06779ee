//! `tandem validate`: predicted and measured capacities of several policies.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use tandem_drive::lab::{Answer, Effort, LabError, Scope, find_answer};
use tandem_drive::live;
use tandem_engine::index::Index;
use tandem_model::base::machine::Class;
use tandem_model::cost::MachineModel;
use tandem_model::sched::{PolicyFactory, PolicyKind};
use tandem_model::study::StudyError;

use super::defaults::{Bars, synthetic_index};
use super::driven::{DrivenArguments, files, record, words};
use super::{interrupts, output};
use crate::failure::Failure;
use crate::options::input::LogForm;
use tandem_report::validation::delay_chart;

/// Compare predictions with live runs: the capacity and delays of each policy.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem validate --gpu replay\n  tandem validate my-index --queries log.tsv --policy mct,stealing -o results"
)]
pub(super) struct Arguments {
    /// Folder of the index, with --queries [default: a synthetic index, made in the output folder]
    #[arg(requires = "queries")]
    index: Option<PathBuf>,
    /// Query log in any common form, plain or compressed
    #[arg(long, value_name = "FILE", requires = "index")]
    queries: Option<PathBuf>,
    #[command(flatten)]
    form: LogForm,
    /// Documents of the synthetic index
    #[arg(long, value_name = "N", default_value_t = 1_000_000, value_parser = clap::value_parser!(u32).range(1000..))]
    docs: u32,
    /// Drive nothing: replay the live runs of this record, compare with what was measured, and fail if errors exceed the
    /// accepted ones (exit code 1)
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = "recorded", conflicts_with_all = ["index", "record"])]
    recorded: Option<PathBuf>,
    /// With --recorded: predict each run with one factor per class between its own work and the predicted work, so that the
    /// error that is left is the simulator's own
    #[arg(long, requires = "recorded")]
    given_costs: bool,
    #[command(flatten)]
    driven: DrivenArguments,
    /// Folder of the results
    #[arg(short, long, value_name = "DIR", default_value = "out/validate")]
    out: PathBuf,
}

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let Arguments { driven, out, .. } = arguments;
    if let Some(folder) = &arguments.recorded {
        if !driven.settings.without.is_empty() {
            return record::ablate(folder, out, &driven.settings.without);
        }
        return record::judge(folder, out, arguments.given_costs, driven.settings.accept);
    }
    if driven.settings.accept {
        return Err(Failure::setting("accept", true, "--recorded, whose errors it accepts"));
    }
    let mut question = driven.check(Effort::quick(), out)?;
    let (index, log, index_name) = open(arguments)?;
    let (mut node, log_queries) = driven.start(&index, (&log, &arguments.form.options()), out)?;
    question.log_queries = log_queries;
    let policies = driven.policies(&node, &usual_policies(node.model()))?;
    let factories: Vec<&dyn PolicyFactory> = policies.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    driven.announce(&node, &question, policies.len());
    // Before this line, an interrupt has no results to keep.
    interrupts::catch();
    let mut found = Answer::default();
    let done = find_answer(&mut node, &factories, &question, Scope::All, &Bars::default(), &mut found);
    driven.add_caveats(&question, &mut found);
    if live::interrupted() && found.driven.is_empty() {
        return Err(Failure::interrupted(format!(
            "interrupted before any live run ended: {} has only the costs of single queries",
            out.display()
        )));
    }
    let provenance = files::provenance(driven, &node, &question, &index_name, &found);
    let criterion = question.objective.within(question.deadline);
    let mut kept = files::write(&found, &criterion, &provenance, out, true);
    kept.files(record::keep(driven, &node, &question, &index_name, &found, &provenance));
    let chart = delay_chart(&found.driven, &criterion, &format!("{index_name}, {}", words::machine(&node)));
    kept.files(chart.write(&out.join("validation")).map(|_| Vec::new()));
    let mut text = words::compared(&found);
    if output::is_verbose() {
        text = format!("{text}\n{}", words::live_runs(&found));
    }
    output::say_screen(&text, "validation_capacity.csv")?;
    words::warnings(&found).iter().for_each(|warning| errln!("warning: {warning}"));
    errln!("{}; took {:.0} s", kept.in_words(), started.elapsed().as_secs_f64());
    kept.finish()?;
    match done {
        Err(LabError::Study(e)) if matches!(*e, StudyError::Interrupted) => {
            errln!("interrupted: the files have the results so far");
            Ok(())
        }
        done => Ok(done?),
    }
}

/// The default policies: two that this machine can run.
fn usual_policies(model: &MachineModel) -> Vec<PolicyKind> {
    let has_gpu = model.machine.count(Class::GPU) > 0;
    match (has_gpu, model.batches[Class::GPU].is_some()) {
        (true, true) => vec![PolicyKind::Stealing, PolicyKind::Combined],
        (true, false) => vec![PolicyKind::BestOf, PolicyKind::Stealing],
        (false, _) => vec![PolicyKind::CpuOnly, PolicyKind::Mct],
    }
}

/// The index, the path of its queries, and the name of the index.
fn open(arguments: &Arguments) -> Result<(Arc<Index>, PathBuf, String), Failure> {
    let named = |path: &Path| path.display().to_string();
    match (&arguments.index, &arguments.queries) {
        (Some(index), Some(queries)) => Ok((Arc::new(Index::open(index)?), queries.clone(), named(index))),
        _ => {
            let (index, queries) = synthetic_index(&arguments.out.join("index"), arguments.docs, 1)?;
            Ok((index, queries, format!("synthetic, {} documents", arguments.docs)))
        }
    }
}
