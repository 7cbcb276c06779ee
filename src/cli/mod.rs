//! The command line: one subcommand a file.
//!
//! Options are parsed to plain structs by `clap`, then checked into the types that the library uses. Exit codes: 0
//! done, 1 failed, 2 bad usage or input, 130 ended by Ctrl-C and 143 by `kill` (what was measured is kept and printed).

#[macro_use]
mod output;

mod bench;
mod capacity;
mod defaults;
mod failure;
mod format;
mod index;
mod interrupts;
mod kept;
mod live;
mod manual;
mod options;
mod origin;
mod profile;
mod recalibrate;
mod report;
mod reproduce;
mod run_logs;
mod search;
mod simulate;
mod sweep;
mod trace;
mod train;
mod validate;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

pub use failure::Failure;

/// A scheduling lab for search nodes with CPUs and GPUs.
#[derive(Debug, Parser)]
#[command(name = "tandem", version, about, infer_subcommands = false, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// The rate that this machine sustains on an index within a deadline: one number, its interval, and whether it held.
    Capacity(capacity::Arguments),
    /// Make, exchange, renumber and describe an index.
    Index(index::Arguments),
    /// Answer queries: print the best documents.
    Search(search::Arguments),
    /// Draw arrivals over a query log or workload.
    Trace(trace::Arguments),
    /// Measure what every query costs on each processor present.
    Profile(profile::Arguments),
    /// Fit cost models to a workload and report their error.
    Train(train::Arguments),
    /// Bring a model up to date with what queries took in a live run's log.
    Recalibrate(recalibrate::Arguments),
    /// Play arrivals through policies: delay against rate, and the capacity within a deadline.
    Simulate(simulate::Arguments),
    /// Simulate a product of parameters (machines, policies, deadlines, errors, clusters), in parts that any machine plays.
    Sweep(sweep::Arguments),
    /// Drive the real executors with the same scheduler code.
    Live(live::Arguments),
    /// Measure the parts of the lab: index, codecs, operators, estimates, simulator, dispatcher, GPU.
    Bench(bench::Arguments),
    /// The whole loop: index, profile, train, simulate, drive live, compare.
    Validate(validate::Arguments),
    /// Make one HTML page from folders of results: the story in words, figures, tables.
    Report(report::Arguments),
    /// Re-run a table or figure of the papers here: their numbers beside ours.
    Reproduce(reproduce::Arguments),
    /// Print what completes `tandem` in a shell.
    Completions(manual::CompletionArguments),
    /// Write the manual's pages, one a command.
    Man(manual::ManArguments),
}

/// Lets options take `-1`, so that their own checks can say what they expected: it would be "unexpected" otherwise.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let takes_values = argument.get_action().takes_values();
        if takes_values { argument.allow_negative_numbers(true) } else { argument }
    });
    command.mut_subcommands(with_negative_numbers)
}

/// All commands with all their options.
fn command() -> clap::Command {
    format::with_format(with_negative_numbers(Arguments::command()))
}

/// Runs the command line and gives the exit code.
pub fn run() -> ExitCode {
    let matches = command().get_matches();
    format::begin(&matches);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let result = match arguments.command {
        Command::Capacity(arguments) => capacity::run(&arguments),
        Command::Index(arguments) => index::run(&arguments),
        Command::Search(arguments) => search::run(&arguments),
        Command::Trace(arguments) => trace::run(&arguments),
        Command::Profile(arguments) => profile::run(&arguments),
        Command::Train(arguments) => train::run(&arguments),
        Command::Recalibrate(arguments) => recalibrate::run(&arguments),
        Command::Simulate(arguments) => simulate::run(&arguments),
        Command::Sweep(arguments) => sweep::run(&arguments),
        Command::Live(arguments) => live::run(&arguments),
        Command::Bench(arguments) => bench::run(&arguments),
        Command::Validate(arguments) => validate::run(&arguments),
        Command::Report(arguments) => report::run(&arguments),
        Command::Reproduce(arguments) => reproduce::run(&arguments),
        Command::Completions(arguments) => manual::completions(&arguments),
        Command::Man(arguments) => manual::pages(&arguments),
    };
    match result.and_then(|()| output::finish()) {
        Ok(()) => interrupts::code().map_or(ExitCode::SUCCESS, ExitCode::from),
        Err(failure) => {
            errln!("error: {failure}");
            failure.code()
        }
    }
}
