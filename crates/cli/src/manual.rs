//! `tandem completions` and `tandem man`: what shells and `man` know of the commands, made from the commands themselves.

pub(super) mod completions {
    use clap_complete::Shell;

    use crate::output::say_bytes;
    use crate::{Failure, command};

    /// Print what completes `tandem` in a shell.
    #[derive(Debug, clap::Args)]
    pub(crate) struct Arguments {
        /// The shell; where its file goes: `tandem completions bash > ~/.local/share/bash-completion/completions/tandem`
        shell: Shell,
    }

    pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(arguments.shell, &mut command(), "tandem", &mut script);
        say_bytes(&script)
    }
}

pub(super) mod man {
    use std::path::PathBuf;

    use crate::output::say_bytes;
    use crate::{Failure, command};

    /// Write the manual's pages, one a command.
    #[derive(Debug, clap::Args)]
    pub(crate) struct Arguments {
        /// Folder for the pages, tandem.1, tandem-simulate.1 and so on; left out, the first of them is printed
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    }

    pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
        // The commands that only print help need no pages.
        let command = without_help(command());
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
}
