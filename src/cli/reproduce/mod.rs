//! `tandem reproduce`: the papers' tables and figures, measured again on today's machine.
//!
//! [`registry`] names every table and figure of the five papers, and what can be re-run in this version. An experiment
//! is one file with a function from a [`Context`] to [`Findings`]; what it finds is printed with the paper's numbers
//! beside ours, written as `OUT/NAME.csv`, and drawn where the paper drew it:
//!
//! ```text
//! registry ──▶ tatikonda_fig4::run(&Context) ──▶ Findings ──▶ table on the terminal
//!                       │                          ├────────▶ NAME.csv (quantity, unit, paper, ours)
//!                 index, queries                   └────────▶ NAME-CHART.csv, .svg, .png (paper dashed, ours solid)
//! ```
//!
//! The papers' collections are not ours to ship, and their machines are gone. By default experiments run on a synthetic
//! index (`corpus::synth`, fitted to the same collection statistics); `INDEX` and `--queries` name a real one. Ratios
//! between methods are what can be compared; absolute times tell of the fifteen years between.

mod ding_fig3;
mod ding_fig4;
mod ding_fig6;
mod ding_lists;
mod ding_table1;
mod ding_table2;
mod ding_table3;
mod findings;
mod input;
mod registry;
mod tatikonda;
mod tatikonda_fig4;
mod tatikonda_fig5;
mod tatikonda_fig6;
mod tatikonda_fig7;

use std::path::PathBuf;

use super::Failure;
use super::options::{check_k, check_seconds};
use super::output::say;
use crate::files::check_writable;
use crate::query::Mode;
use crate::report::table::Table;
use findings::Findings;
use input::Context;
use registry::{EXPERIMENTS, Experiment, Here};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
pub(super) struct Arguments {
    /// Table or figure to re-run, such as tatikonda-fig4
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// Name all tables and figures of the papers, and which of them this version can re-run; asked for another, it says
    /// why not, and what comes nearest
    #[arg(long, conflicts_with = "name")]
    list: bool,
    /// Folder of the index to run on, with --queries; left out, a synthetic one, made in the output folder
    #[arg(requires = "queries")]
    index: Option<PathBuf>,
    /// Query log: one query a line, `id<TAB>query`, or JSON lines
    #[arg(long, value_name = "FILE", requires = "index")]
    queries: Option<PathBuf>,
    /// Documents of the synthetic index; each experiment has a default of its own
    #[arg(long, value_name = "N", conflicts_with = "index", value_parser = clap::value_parser!(u32).range(1000..))]
    docs: Option<u32>,
    /// Queries to use, from the beginning of the log; each experiment has a default of its own
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    limit: Option<u32>,
    /// CPU cores to use at most; all of the machine unless given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    /// How the terms of a query combine; as in the paper unless given
    #[arg(long, value_enum)]
    mode: Option<Mode>,
    /// Documents that a query asks for
    #[arg(short, value_name = "K", default_value_t = 10)]
    k: usize,
    /// How long one measurement lasts, of the many that a figure is made of
    #[arg(long, value_name = "S", default_value_t = 0.3)]
    seconds: f64,
    /// Draws the index, the queries and the arrivals
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Where results go, and the synthetic index
    #[arg(short, long, value_name = "DIR", default_value = "out/reproduce")]
    out: PathBuf,
}

/// The longest measurement, an hour.
const MAX_SECONDS: f64 = 3600.0;

pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let Some(name) = &arguments.name else {
        return say(&list());
    };
    let experiment = EXPERIMENTS.iter().find(|experiment| experiment.name == name).ok_or_else(|| unknown(name))?;
    let run = match experiment.here {
        Here::Measured(run) => run,
        Here::Lacks(reason) => {
            return Err(Failure::input(format!("{name} cannot be re-run in this version: {reason}")));
        }
    };
    check_k(arguments.k)?;
    check_seconds(arguments.seconds, MAX_SECONDS)?;
    check_writable(&arguments.out.join(format!("{name}.csv")))?;
    let context = Context::new(arguments);
    say(&format!("{name}: {}\n{}\non {}\n\n", experiment.what, experiment.paper, context.machine()))?;
    let findings: Findings = run(&context)?;
    say(&findings.to_string())?;
    let written = findings.write(&arguments.out, name, &context.provenance())?;
    say(&format!("\nwritten: {}\n", written.join(", ")))
}

fn unknown(name: &str) -> Failure {
    let alike =
        EXPERIMENTS.iter().find(|experiment| experiment.name.starts_with(name) || name.starts_with(experiment.name));
    let hint = alike.map(|experiment| format!(" (did you mean {}?)", experiment.name)).unwrap_or_default();
    Failure::input(format!("no table or figure is called {name:?}{hint}; see `tandem reproduce --list`"))
}

/// All experiments, as a table.
fn list() -> String {
    let mut table = Table::new(["name", "here", "what the paper shows"]);
    for Experiment { name, what, here, .. } in &EXPERIMENTS {
        table.row([*name, if matches!(here, Here::Measured(_)) { "yes" } else { "no" }, what]);
    }
    table.to_string()
}
