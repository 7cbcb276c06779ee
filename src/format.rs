//! `--format` and `--verbose`: the form of printed results, and their number. Commands that print results take both.

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command};

use super::output::{begin_json, begin_verbose};

const FORMAT: &str = "format";
const JSON: &str = "json";
const VERBOSE: &str = "verbose";
/// Commands without results in tables.
const WITHOUT: [&str; 4] = ["report", "settings", "completions", "man"];
/// Commands that print all of their results on one screen.
const SHORT: [&str; 7] = ["plan", "trace", "export", "import", "quantise", "reorder", "synth"];

/// Adds these options to every subcommand that prints results.
pub(super) fn with_format(command: Command) -> Command {
    if command.has_subcommands() {
        return command.mut_subcommands(with_format);
    }
    let name = command.get_name().to_owned();
    if WITHOUT.contains(&name.as_str()) {
        return command;
    }
    let format = Arg::new(FORMAT)
        .long(FORMAT)
        .value_name("FORMAT")
        .value_parser(ValueParser::from(PossibleValuesParser::new(["table", JSON])))
        .default_value("table")
        .help("How results are printed: as tables for people, or all of them as one JSON document");
    let verbose = Arg::new(VERBOSE)
        .short('v')
        .long(VERBOSE)
        .action(ArgAction::SetTrue)
        .help("Print all results; without it, those that fit one screen");
    // `search` has more formats than these. The format of `index import` and `export` is that of the other engine.
    let has_its_own = command.get_arguments().any(|argument| argument.get_id() == FORMAT);
    let options = [(format, !has_its_own), (verbose, !SHORT.contains(&name.as_str()))];
    command.args(options.into_iter().filter(|(_, is_taken)| *is_taken).map(|(option, _)| option))
}

/// Applies both options of the called command: with JSON, text for people goes to standard error; with `--verbose`, all of it
/// is printed.
pub(super) fn begin(matches: &ArgMatches) {
    let mut called = matches;
    while let Some((_, below)) = called.subcommand() {
        called = below;
    }
    let asked = called.try_get_one::<String>(FORMAT).ok().flatten();
    if asked.is_some_and(|format| format == JSON) {
        begin_json(None);
    }
    if called.try_get_one::<bool>(VERBOSE).ok().flatten() == Some(&true) {
        begin_verbose();
    }
}
