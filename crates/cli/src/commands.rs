//! Lists of commands.

/// Makes `Command` of a list of commands, each with the module that has its `Arguments` and its `run`.
macro_rules! commands {
    ($($command:ident: $($module:ident)::+;)+) => {
        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($command($($module)::+::Arguments),)+
        }

        impl Command {
            fn run(&self) -> Result<(), Failure> {
                match self {
                    $(Self::$command(arguments) => $($module)::+::run(arguments),)+
                }
            }
        }
    };
}
