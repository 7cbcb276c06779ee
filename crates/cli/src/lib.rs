//! The command line: one subcommand a file.
//!
//! Options are parsed to plain structs by `clap`, then checked into the types that the library uses. Exit codes: 0
//! done, 1 failed, 2 bad usage or input, 3 no answer; 129, 130 and 143 ended by a closed terminal, Ctrl-C and `kill` (what was
//! measured is kept and printed).

#[macro_use]
mod commands;
#[macro_use]
mod output;

mod bench;
mod capacity;
mod defaults;
mod driven;
mod failure;
mod format;
mod index;
mod inputs;
mod interrupts;
mod kept;
mod live;
mod manual;
mod options;
mod origin;
mod plan;
mod profile;
mod recalibrate;
mod report;
mod reproduce;
mod run_logs;
mod search;
mod settings;
mod simulate;
mod sweep;
#[cfg(feature = "http")]
mod target;
mod trace;
mod train;
mod validate;

use std::process::ExitCode;

use clap::{CommandFactory, FromArgMatches, Parser};

pub use failure::Failure;

/// A scheduling lab for search nodes with CPUs and GPUs.
#[derive(Debug, Parser)]
#[command(name = "tandem", version, about, infer_subcommands = false, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

// The commands, in the order of `tandem help`. A new one is a module with its `Arguments`, whose comment is its help, and a
// function `run`, and a line here.
commands! {
    Capacity: capacity;
    Plan: plan;
    Index: index;
    Search: search;
    Trace: trace;
    Profile: profile;
    Train: train;
    Recalibrate: recalibrate;
    Simulate: simulate;
    Sweep: sweep;
    Live: live;
    Bench: bench;
    Validate: validate;
    #[cfg(feature = "http")] Target: target;
    Report: report;
    Reproduce: reproduce;
    Settings: settings;
    Completions: manual::completions;
    Man: manual::man;
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
    let arguments: Vec<_> = std::env::args_os().collect();
    #[cfg(feature = "http")]
    let arguments = target::expanded(arguments);
    let matches = command().try_get_matches_from(arguments).unwrap_or_else(|e| settings::explained(e).exit());
    format::begin(&matches);
    inputs::protect(&command(), &matches);
    let arguments = Arguments::from_arg_matches(&matches).unwrap_or_else(|e| e.exit());
    let done = arguments.command.run();
    // That there is no answer is one, for programs.
    let printed = if done.as_ref().is_err_and(|failure| !failure.is_no_answer()) { Ok(()) } else { output::finish() };
    match done.and(printed) {
        Ok(()) => interrupts::code().map_or(ExitCode::SUCCESS, ExitCode::from),
        Err(failure) => {
            errln!("error: {failure}");
            failure.code()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::command;

    /// What `--help` lists of the command and of those below it, without `--help` itself and `--version`.
    fn check_options(command: &clap::Command, path: &str) {
        let path = format!("{path}{} ", command.get_name());
        let options = command.get_arguments().filter(|argument| !argument.is_positional());
        let count = options.filter(|option| !["help", "version"].contains(&option.get_id().as_str())).count();
        assert!(count <= 30, "{path}has {count} options");
        command.get_subcommands().for_each(|below| check_options(below, &path));
    }

    #[test]
    fn no_command_has_more_than_thirty_options() {
        check_options(&command(), "");
    }
}

#[cfg(test)]
#[path = "../../../tests/skipped/mod.rs"]
mod skipped;
