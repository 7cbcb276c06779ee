//! Protection of input files, and the options of the called command.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use clap::{Arg, ArgMatches, Command};

use tandem_engine::index::FILE_NAME;
use tandem_model::files::{FolderLock, protect_input};

/// Arguments of all commands that name outputs.
const OUTPUTS: [&str; 7] = ["out", "perfetto", "samples", "report", "folder", "permutation_out", "queries_out"];
/// Arguments whose folders are collections: every file in them is read.
const COLLECTIONS: [&str; 2] = ["inputs", "text"];

/// The command that was called.
static CALLED: OnceLock<ArgMatches> = OnceLock::new();

/// Whether the command that was called has this option, so that a message may advise it.
pub(super) fn has_option(id: &str) -> bool {
    CALLED.get().is_some_and(|called| called.try_contains_id(id).is_ok())
}

/// Protects the inputs of the command that was called from being replaced by its outputs. Every value that names a file counts as an
/// input unless its argument names an output, so that no new option can be forgotten.
///
/// Locks the folder of results, if the command has one. Parts of a sweep share theirs, and an index is locked by its writer.
pub(super) fn protect(program: &Command, matches: &ArgMatches) -> Result<Option<FolderLock>, String> {
    let (mut command, mut called, mut name) = (program, matches, "");
    while let Some((below_name, below)) = called.subcommand() {
        command = command.find_subcommand(below_name).unwrap_or(command);
        (called, name) = (below, below_name);
    }
    CALLED.get_or_init(|| called.clone());
    // The matches also have groups, whose values are names of arguments.
    for id in command.get_arguments().map(|argument| argument.get_id().as_str()) {
        let is_output = OUTPUTS.contains(&id) || (name, id) == ("profile", "machine");
        let values = if is_output { None } else { called.try_get_raw(id).ok().flatten() };
        for value in values.into_iter().flatten() {
            // A setting is written as KEY=FILE.
            let text = value.to_string_lossy();
            let path = if id == "set" {
                Path::new(text.split_once('=').map_or("", |(_, file)| file))
            } else {
                Path::new(value)
            };
            match path.is_dir() {
                true if COLLECTIONS.contains(&id) => protect_input(path),
                true => protect_input(&path.join(FILE_NAME)),
                false => protect_input(path),
            }
        }
    }
    let is_folder =
        |argument: &Arg| argument.get_id() == "out" && argument.get_value_names().is_some_and(|name| name == ["DIR"]);
    let has_results =
        command.get_arguments().any(|argument| is_folder(argument) && !argument.get_default_values().is_empty());
    let has_results = has_results && name != "sweep";
    let Some(folder) = has_results.then(|| called.get_one::<PathBuf>("out")).flatten() else { return Ok(None) };
    let lock = FolderLock::take(folder);
    lock.map_err(|e| format!("{}: {e}", folder.display()))
}
