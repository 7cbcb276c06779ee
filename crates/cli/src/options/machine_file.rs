//! `--machine`: what serving costs on this machine beyond what queries take alone.

use std::path::{Path, PathBuf};

use crate::Failure;
use tandem_core::cost::MachineFile;
use tandem_core::files::this_machine;

/// Where the machine file is looked for where none is named, and written.
pub(crate) const MACHINE_FILE: &str = "out/machine.json";
/// What to name for none.
const NONE: &str = "none";

/// Which machine file is reckoned with.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MachineFileArgument {
    /// What serving costs beyond what queries take alone: the file that `profile --machine` wrote, or `none` [default:
    /// out/machine.json, if it is there and of this machine]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
}

impl MachineFileArgument {
    /// The file and its name; `None` where none is to be had or wanted. `costs_are_of_here`: what queries cost was measured
    /// on this machine, so that its own file holds of them.
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

    /// Whether the file that is named can be read, before work that would be lost.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.read(false).map(|_| ())
    }
}
