//! `--machine`: the costs of serving beyond the queries' own service times.

use std::path::{Path, PathBuf};

use crate::Failure;
use tandem_core::cost::MachineProfile;
use tandem_core::files::this_machine;

/// The default path of the machine profile.
pub(crate) const MACHINE_PROFILE: &str = "out/machine.json";
/// The value of `--machine` for no machine profile.
const NONE: &str = "none";

/// The machine profile that predictions use.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct MachineProfileArgument {
    /// Machine profile, written by `profile --machine`: the costs of serving beyond the queries' own service times; or `none`
    /// [default: out/machine.json, if it was measured on this machine]
    #[arg(long, value_name = "FILE")]
    machine: Option<PathBuf>,
}

impl MachineProfileArgument {
    /// The profile and the name of its file; `None` without one. `costs_are_of_here` says that the queries were measured on
    /// this machine, so that its own profile applies to them.
    pub(crate) fn read(&self, costs_are_of_here: bool) -> Result<Option<(String, MachineProfile)>, Failure> {
        match &self.machine {
            Some(path) if path.as_os_str() == NONE => Ok(None),
            Some(path) => Ok(Some((path.display().to_string(), MachineProfile::read(path)?))),
            None if costs_are_of_here && Path::new(MACHINE_PROFILE).exists() => {
                let file = MachineProfile::read(Path::new(MACHINE_PROFILE))?;
                let is_of_here = file.provenance.get("machine").is_some_and(|machine| *machine == this_machine());
                Ok(is_of_here.then(|| (MACHINE_PROFILE.to_owned(), file)))
            }
            None => Ok(None),
        }
    }

    /// Reads the named file, so that a fault shows before any work.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        self.read(false).map(|_| ())
    }
}
