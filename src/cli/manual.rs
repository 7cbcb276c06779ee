//! `tandem completions` and `tandem man`: what shells and `man` know of the commands, made from the commands themselves.

use std::path::PathBuf;

use clap_complete::Shell;

use super::Failure;
use super::output::say_bytes;

/// Options of `completions`.
#[derive(Debug, clap::Args)]
pub(super) struct CompletionArguments {
    /// The shell; where its file goes: `tandem completions bash > ~/.local/share/bash-completion/completions/tandem`
    shell: Shell,
}

/// Options of `man`.
#[derive(Debug, clap::Args)]
pub(super) struct ManArguments {
    /// Folder for the pages, tandem.1, tandem-simulate.1 and so on; left out, the first of them is printed
    #[arg(value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(super) fn completions(arguments: &CompletionArguments) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(arguments.shell, &mut super::command(), "tandem", &mut script);
    say_bytes(&script)
}

pub(super) fn pages(arguments: &ManArguments) -> Result<(), Failure> {
    // The commands that only print help need no pages.
    let command = without_help(super::command());
    let Some(folder) = &arguments.folder else {
        let mut page = Vec::new();
        clap_mangen::Man::new(command).render(&mut page)?;
        return say_bytes(&page);
    };
    let path = folder.display();
    let whole = std::fs::create_dir_all(folder).and_then(|()| clap_mangen::generate_to(command, folder));
    whole.map_err(|e| Failure::input(format!("cannot write {path}: {e}")))?;
    outln!("written: {path}");
    Ok(())
}

fn without_help(command: clap::Command) -> clap::Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}
