//! The macro behind the list of commands.

/// Makes `Command` and `PURPOSES` from a list of commands by purpose, each with the module that has its `Arguments` and its
/// `run`.
macro_rules! commands {
    ($($purpose:literal { $($(#[$attribute:meta])* $command:ident: $($module:ident)::+;)+ })+) => {
        #[derive(Debug, clap::Subcommand)]
        enum Command {
            $($($(#[$attribute])* $command($($module)::+::Arguments),)+)+
        }

        /// The modules of the commands by purpose. The last part of a path is the command's name.
        pub(crate) const PURPOSES: $crate::help::Purposes = &[$(($purpose, &[$(stringify!($($module)::+)),+])),+];

        impl Command {
            fn run(&self) -> Result<(), Failure> {
                match self {
                    $($($(#[$attribute])* Self::$command(arguments) => $($module)::+::run(arguments),)+)+
                }
            }
        }
    };
}
