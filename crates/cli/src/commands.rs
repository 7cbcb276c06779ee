//! Lists of commands.

/// Makes `Command` of a list of commands, each with the module that has its `Arguments` and its `run`.
macro_rules! commands {
    ($($(#[$attribute:meta])* $command:ident: $($module:ident)::+;)+) => {
        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($(#[$attribute])* $command($($module)::+::Arguments),)+
        }

        impl Command {
            fn run(&self) -> Result<(), Failure> {
                match self {
                    $($(#[$attribute])* Self::$command(arguments) => $($module)::+::run(arguments),)+
                }
            }
        }
    };
}
