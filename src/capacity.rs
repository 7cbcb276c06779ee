//! `tandem capacity`: the rate that this machine sustains, confirmed by live runs.

use std::path::PathBuf;
use std::time::Instant;

use tandem_drive::lab::{Answer, Effort, GpuChoice, LabError, Scope, find_answer};
use tandem_drive::live;
use tandem_model::base::machine::Class;
use tandem_model::sched::PolicyFactory;
use tandem_model::study::{StudyError, usual_policies};

use super::driven::{DrivenArguments, files, record, words};
use super::{interrupts, output};
use crate::defaults::Bars;
use crate::failure::Failure;
use crate::options::input::IndexAndLog;

/// Find the rate that this machine sustains within a deadline, by live runs.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tandem capacity my-index --queries log.tsv --deadline-ms 100 -o results\n  tandem capacity my-index --queries log.tsv --objective no-miss --proof"
)]
pub(super) struct Arguments {
    #[command(flatten)]
    log: IndexAndLog,
    #[command(flatten)]
    driven: DrivenArguments,
    /// Folder of the results
    #[arg(short, long, value_name = "DIR", default_value = "out/capacity")]
    out: PathBuf,
}

/// Number of policies that are driven, for the estimate of the time.
const DRIVEN: usize = 1;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let started = Instant::now();
    let Arguments { log, driven, out } = arguments;
    if driven.gpu == GpuChoice::Replay {
        return Err(Failure::input(
            "--gpu replay: recorded times are not of this machine; `tandem simulate --gpu replay` simulates with them, and `tandem \
             validate --gpu replay` drives a replayed GPU together with the CPU",
        ));
    }
    let mut question = driven.check(Effort::usual(), out)?;
    let (index, log_path) = log.open("what to ask of this index")?;
    let (mut node, log_queries) = driven.start(&index, (&log_path, &arguments.log.form()), out)?;
    question.log_queries = log_queries;
    // Without GPUs one policy answers: first come, first served.
    let (answering, compared) = usual_policies(node.machine().num_devices(Class::GPU) > 0);
    let policies = driven.policies(&node, if compared.is_empty() { &[] } else { answering })?;
    let factories: Vec<&dyn PolicyFactory> = policies.iter().map(|policy| policy as &dyn PolicyFactory).collect();
    driven.announce(&node, &question, DRIVEN);
    interrupts::catch();
    let mut found = Answer::default();
    let done = find_answer(&mut node, &factories, &question, Scope::Best, &Bars::default(), &mut found);
    driven.add_caveats(&question, &mut found);
    let index_name = log.index.as_ref().map_or(String::from("synthetic"), |index| index.display().to_string());
    let provenance = files::provenance(driven, &node, &question, &index_name, &found);
    let criterion = question.objective.within(question.deadline);
    let mut kept = files::write(&found, &criterion, &provenance, out, false);
    kept.files(record::keep(driven, &node, &question, &index_name, &found, &provenance));
    output::result("answer", words::JsonAnswer::of(&found));
    let arrivals = driven.process.named(&question.process);
    if let Some((best, capacity)) = found.best() {
        let what = format!("{}, {}", best.policy, words::workers(&node));
        let disturbed = best.load().words();
        outln!("{}", words::answer(best, capacity, [&what, &disturbed], &criterion, &arrivals).trim_end());
        if let Some(note) = driven.process.note(&question.process, &[capacity.qps]) {
            outln!("{note}");
        }
        if output::is_verbose() {
            outln!("\n{}\n{}", words::live_runs(&found), words::simulated(&found));
        }
    } else if output::is_verbose() {
        outln!("{}", words::live_runs(&found));
    }
    words::warnings(&found).iter().for_each(|warning| errln!("warning: {warning}"));
    errln!("{}; took {:.0} s", kept.in_words(), started.elapsed().as_secs_f64());
    kept.finish()?;
    match done {
        Err(LabError::Study(e)) if matches!(*e, StudyError::Interrupted) => {}
        done => done?,
    }
    match found.best() {
        None if !live::interrupted() => Err(Failure::no_answer(words::no_answer(&found))),
        _ => Ok(()),
    }
}
