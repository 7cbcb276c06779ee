//! The `tandem` program: one subcommand per file or folder.
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
mod demo;
mod driven;
mod failure;
mod format;
mod help;
mod index;
mod inputs;
mod interrupts;
mod live;
mod manual;
mod options;
mod origin;
mod pairs;
mod plan;
mod profile;
mod report;
#[cfg(feature = "papers")]
mod reproduce;
mod result_writer;
mod run_logs;
mod search;
#[cfg(feature = "http")]
mod serve;
mod settings;
mod simulate;
mod sweep;
#[cfg(feature = "http")]
mod target;
mod trace;
mod train;
mod validate;

use std::process::ExitCode;
use std::sync::LazyLock;

use clap::{CommandFactory, FromArgMatches, Parser};

use failure::Failure;
use tandem_model::files::{commit, set_commit};

/// A scheduling lab for search nodes with CPUs and GPUs: which query rate does a machine sustain within a deadline?
#[derive(Debug, Parser)]
#[command(name = "tandem", after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

const EXAMPLES: &str = "Examples:
  tandem demo                                      all of it in a minute
  tandem simulate                                  policies on recorded costs
  tandem index build articles.jsonl -o my-index    an index of your text
  tandem capacity my-index --queries log.tsv       the rate that it sustains

`tandem COMMAND --help` explains a command, `tandem help settings` rare tuning.";

// The commands by purpose. A new one is a module with its `Arguments`, whose comment is its help, and a function `run`, and
// a line here.
commands! {
    "Answer a question" {
        Demo: demo;
        Simulate: simulate;
        Capacity: capacity;
        Validate: validate;
        Plan: plan;
        Sweep: sweep;
    }
    "Index and search" {
        Index: index;
        Search: search;
    }
    "Measure and learn costs" {
        Profile: profile;
        Train: train;
    }
    "Drive and examine" {
        Live: live;
        #[cfg(feature = "http")]
        Target: target;
        #[cfg(feature = "http")]
        Serve: serve;
        Trace: trace;
        Bench: bench;
        #[cfg(feature = "papers")]
        Reproduce: reproduce;
    }
    "Show and set up" {
        Report: report;
        Settings: settings;
        Completions: manual::completions;
        Man: manual::man;
    }
}

/// Lets options take `-1`, so that their checks can name the expected values. Otherwise clap calls the value unexpected.
fn with_negative_numbers(command: clap::Command) -> clap::Command {
    let command = command.mut_args(|argument| {
        let takes_values = argument.get_action().takes_values();
        if takes_values { argument.allow_negative_numbers(true) } else { argument }
    });
    command.mut_subcommands(with_negative_numbers)
}

/// The version with its commit, if that is known.
static VERSION: LazyLock<String> = LazyLock::new(|| {
    let commit = commit().map_or(String::new(), |commit| format!(" (commit {commit})"));
    format!("{}{commit}", env!("CARGO_PKG_VERSION"))
});

/// All commands with all their options.
fn command() -> clap::Command {
    let command = help::with_headings(format::with_format(with_negative_numbers(Arguments::command())));
    let command =
        command.version(VERSION.as_str()).mut_subcommand("index", |index| help::by_purpose(index, index::PURPOSES));
    help::by_purpose(command, PURPOSES)
}

fn main() -> ExitCode {
    if let Some(commit) = option_env!("TANDEM_COMMIT") {
        set_commit(commit);
    }
    interrupts::survive_file_limit();
    let arguments: Vec<_> = std::env::args_os().collect();
    if arguments.len() < 2 {
        errln!("{}", demo::welcome());
        return ExitCode::from(2);
    }
    #[cfg(feature = "http")]
    let arguments = target::expanded(arguments);
    let matches = command().try_get_matches_from(arguments).unwrap_or_else(|e| settings::explained(e).exit());
    format::begin(&matches);
    let locked = inputs::protect(&command(), &matches).inspect_err(|message| errln!("error: {message}"));
    let Ok(folder) = locked else { return ExitCode::from(2) };
    let arguments = match Arguments::from_arg_matches(&matches) {
        Ok(arguments) => arguments,
        Err(e) => {
            drop(folder);
            e.exit()
        }
    };
    let done = arguments.command.run();
    // For programs, the lack of an answer is a result.
    let printed = if done.as_ref().is_err_and(|failure| !failure.is_no_answer()) { Ok(()) } else { output::finish() };
    drop(folder);
    match done.and(printed) {
        Ok(()) => interrupts::code().map_or(ExitCode::SUCCESS, ExitCode::from),
        Err(failure) => {
            if !failure.is_unread() {
                errln!("error: {failure}");
            }
            failure.code()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::command;

    fn check_help(command: &clap::Command, path: &str) {
        let path = format!("{path}{} ", command.get_name());
        let options: Vec<_> = command.get_arguments().filter(|argument| !argument.is_positional()).collect();
        assert!(options.len() <= 30, "{path}has {} options", options.len());
        for option in &options {
            assert!(option.get_help_heading().is_some(), "{path}--{} has no heading", option.get_id());
        }
        let examples = command.get_after_help().map_or(String::new(), ToString::to_string);
        let is_listing = path.contains("settings");
        assert!(is_listing || examples.starts_with("Example"), "{path}has no example");
        assert!(is_listing || examples.lines().all(|line| line.len() <= 80), "{path}{examples}");
        command.get_subcommands().for_each(|below| check_help(below, &path));
    }

    #[test]
    fn commands_have_headings_an_example_and_few_options() {
        check_help(&command(), "");
    }
}

#[cfg(test)]
#[path = "../tests/skipped/mod.rs"]
mod skipped;
