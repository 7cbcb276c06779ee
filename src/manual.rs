//! `tandem completions` and `tandem man`: shell completions and manual pages.

pub(super) mod completions {
    use clap_complete::Shell;

    use crate::command;
    use crate::failure::Failure;
    use crate::output::say_bytes;

    /// Print the completions of a shell.
    #[derive(Debug, clap::Args)]
    #[command(after_help = "Example:\n  tandem completions bash > ~/.local/share/bash-completion/completions/tandem")]
    pub(crate) struct Arguments {
        /// Shell that reads the completions
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

    use clap::Command;
    use clap_mangen::Man;

    use crate::failure::Failure;
    use crate::help::Purposes;
    use crate::output::say_bytes;
    use crate::{PURPOSES, command, index};
    use tandem_model::files::write_atomically;

    /// Write the manual pages, one per command.
    #[derive(Debug, clap::Args)]
    #[command(after_help = "Example:\n  tandem man ~/.local/share/man/man1")]
    pub(crate) struct Arguments {
        /// Folder for the pages tandem.1, tandem-simulate.1 and so on [default: the first is printed]
        #[arg(value_name = "DIR")]
        folder: Option<PathBuf>,
    }

    pub(crate) fn run(arguments: &Arguments) -> Result<(), Failure> {
        // The commands that only print help need no pages.
        let mut program = without_help(command());
        program.build();
        let Some(folder) = &arguments.folder else { return say_bytes(&page(&program)?) };
        write_pages(&program, folder)?;
        outln!("written: {}", folder.display());
        Ok(())
    }

    fn without_help(command: Command) -> Command {
        command.disable_help_subcommand(true).mut_subcommands(without_help)
    }

    /// Writes the page of a command and of those below it.
    fn write_pages(command: &Command, folder: &std::path::Path) -> Result<(), Failure> {
        let text = page(command)?;
        let name = command.get_display_name().unwrap_or_else(|| command.get_name());
        write_atomically(&folder.join(format!("{name}.1")), |file| std::io::Write::write_all(file, &text))?;
        command.get_subcommands().try_for_each(|below| write_pages(below, folder))
    }

    /// A page with the headings of `--help`.
    fn page(command: &Command) -> Result<Vec<u8>, Failure> {
        let purposes: Purposes = match command.get_name() {
            "tandem" => PURPOSES,
            "index" => index::PURPOSES,
            _ => &[],
        };
        let man = Man::new(command.clone());
        let (mut head, mut examples) = (Vec::new(), Vec::new());
        man.render_title(&mut head)?;
        man.render_name_section(&mut head)?;
        man.render_synopsis_section(&mut head)?;
        man.render_description_section(&mut head)?;
        man.render_options_section(&mut head)?;
        for (purpose, paths) in purposes {
            let is_of = |below: &Command| paths.iter().any(|path| path.ends_with(below.get_name()));
            let group = command.clone().subcommand_help_heading(purpose.to_uppercase());
            let group = group.mut_subcommands(|below| if is_of(&below) { below } else { below.hide(true) });
            Man::new(group).render_subcommands_section(&mut head)?;
        }
        man.render_extra_section(&mut examples)?;
        let text = String::from_utf8_lossy(&examples).replace(".SH EXTRA", ".SH EXAMPLES");
        head.extend(text.replace("\nExamples:\n", "\n").replace("\nExample:\n", "\n").bytes());
        Ok(head)
    }
}
