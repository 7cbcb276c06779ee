//! `--machine`: the costs of serving beyond the queries' own service times.

use std::path::{Path, PathBuf};

use crate::Failure;
use tandem_core::cost::MachineFile;
use tandem_core::files::this_machine;

/// The default path of the machine file.
pub(crate) const MACHINE_FILE: &str = "out/machine.json";
/// The value of `--machine` for no machine file.
const NONE: &str = "none";

/// The machine file that predictions use.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MachineFileArgument {
    /// Machine file, written by `profile --machine`: the costs of serving beyond the queries' own service times; or `none`
    /// [default: out/machine.json, if it was measured on this machine]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
}

impl MachineFileArgument {
    /// The file and its name; `None` if there is none or none is wanted. `costs_are_of_here`: query costs were measured on
    /// this machine, so that its own file applies to them.
    pub(crate) fn read(&self, costs_are_of_here: bool) -> Result<Option<(String, MachineFile)>, Failure> {
        match &self.machine {
            Some(path) if path.as_os_str() == NONE => Ok(None),
            Some(path) => Ok(Some((path.display().to_string(), MachineFile::read(path)?))),
            None if costs_are_of_here && Path::new(MACHINE_FILE).exists() => {
                let file = MachineFile::read(Path::new(MACHINE_FILE))?;
                let is_of_here = file.provenance.get("machine").is_some_and(|machine| *machine == this_machine());
                Ok(is_of_here.then(|| (MACHINE_FILE.to_owned(), file)))
            }
            None => Ok(None),
        }
    }

    /// Checks that the named file can be read, before work that would be lost.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.read(false).map(|_| ())
    }
}
