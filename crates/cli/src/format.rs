//! `--format`: whether results are for people or for programs. Every command that prints results takes it.

use clap::builder::{PossibleValuesParser, ValueParser};
use clap::{Arg, ArgMatches, Command};

use super::output::begin_json;

/// The option's name.
const FORMAT: &str = "format";
/// The value that asks for JSON.
const JSON: &str = "json";
/// Commands whose output is a file's own form.
const WITHOUT: [&str; 4] = ["report", "settings", "completions", "man"];

/// The command, each of those below it that prints results with the option.
pub(super) fn with_format(command: Command) -> Command {
    if command.has_subcommands() {
        return command.mut_subcommands(with_format);
    }
    // `search` has more forms than these, and of `index import` and `export` the format is that of the other engine.
    let has_its_own = command.get_arguments().any(|argument| argument.get_id() == FORMAT);
    if has_its_own || WITHOUT.contains(&command.get_name()) {
        return command;
    }
    command.arg(
        Arg::new(FORMAT)
            .long(FORMAT)
            .value_name("FORMAT")
            .value_parser(ValueParser::from(PossibleValuesParser::new(["table", JSON])))
            .default_value("table")
            .help("How results are printed: as tables for people, or all of them as one JSON document"),
    )
}

/// Sends what is for people to standard error if the command that was called is asked for JSON.
pub(super) fn begin(matches: &ArgMatches) {
    let mut called = matches;
    while let Some((_, below)) = called.subcommand() {
        called = below;
    }
    let asked = called.try_get_one::<String>(FORMAT).ok().flatten();
    if asked.is_some_and(|format| format == JSON) {
        begin_json(None);
    }
}
