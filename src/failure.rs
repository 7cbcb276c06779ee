//! Why a command ended without its result, and with which exit code.

use std::fmt;
use std::io;
use std::process::ExitCode;

use tandem_drive::lab::LabError;
use tandem_drive::live::LiveError;
use tandem_drive::profile::ProfileError;
use tandem_engine::index::IndexError;
use tandem_engine::indexing::BuildError;
use tandem_engine::search::ExecError;
use tandem_engine::search::device::GpuError;
use tandem_model::cost::TrainError;
use tandem_model::files::InputError;
use tandem_model::sched::{LawBroken, PolicyError};
use tandem_model::sim::SimError;
use tandem_model::study::StudyError;

use super::inputs::has_option;
use super::interrupts;

/// The exit code if the question has no answer.
const NO_ANSWER: u8 = 3;

/// Why a command ended without its result.
#[derive(Debug)]
pub struct Failure {
    message: String,
    code: u8,
}

impl Failure {
    /// Bad usage or input: exit code 2.
    pub fn input(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 2 }
    }

    /// A value of `--set` is outside its range.
    pub(crate) fn setting(key: &str, value: impl std::fmt::Display, expected: &str) -> Self {
        Self::input(format!("--set {key}={value}: expected {expected} (see `tandem help settings`)"))
    }

    /// The work itself failed: exit code 1.
    pub fn failed(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: 1 }
    }

    /// A signal ended the work before there were results. The exit code is that of shells for programs ended by a signal.
    pub(super) fn interrupted(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: interrupts::code().unwrap_or(1) }
    }

    /// The question has no answer: exit code 3.
    pub(super) fn no_answer(message: impl Into<String>) -> Self {
        Self { message: message.into(), code: NO_ANSWER }
    }

    /// Whether the question has no answer.
    pub(super) fn is_no_answer(&self) -> bool {
        self.code == NO_ANSWER
    }

    /// Whether the reader of a pipe has gone away, as `head` does, which is no failure.
    pub(super) fn is_unread(&self) -> bool {
        self.code == 0
    }

    /// The exit code of the process.
    pub(super) fn code(&self) -> ExitCode {
        ExitCode::from(self.code)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// Errors of the input: exit code 2.
macro_rules! input {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(e: $error) -> Self {
                Self::input(e.to_string())
            }
        })*
    };
}

input!(InputError, TrainError);

/// Errors of the work itself: exit code 1.
macro_rules! failed {
    ($($error:ty),*) => {
        $(impl From<$error> for Failure {
            fn from(e: $error) -> Self {
                Self::failed(e.to_string())
            }
        })*
    };
}

#[cfg(feature = "papers")]
failed!(tandem_papers::codec::CodecError);
failed!(LawBroken, LiveError);

/// System errors that another path may avoid are errors of the input. A full or broken disk is a failure.
impl From<io::Error> for Failure {
    fn from(e: io::Error) -> Self {
        use io::ErrorKind::{
            AlreadyExists, BrokenPipe, InvalidData, InvalidFilename, InvalidInput, IsADirectory, NotADirectory,
            NotFound, Other, PermissionDenied, ReadOnlyFilesystem,
        };
        match e.kind() {
            AlreadyExists | InvalidData | InvalidFilename | InvalidInput | IsADirectory | NotADirectory | NotFound
            | Other | PermissionDenied | ReadOnlyFilesystem => Self::input(e.to_string()),
            BrokenPipe => Self { message: e.to_string(), code: 0 },
            _ => Self::failed(e.to_string()),
        }
    }
}

impl From<IndexError> for Failure {
    fn from(e: IndexError) -> Self {
        let message = e.to_string();
        match e {
            IndexError::Io { source, .. } => Self { message, ..Self::from(source) },
            IndexError::Damaged { .. } | IndexError::Collection(_) => Self::input(message),
        }
    }
}

/// Adds the options that set the values of a library error.
impl From<PolicyError> for Failure {
    fn from(e: PolicyError) -> Self {
        Self::input(match &e {
            PolicyError::MissingClass { class, .. } => {
                format!("{e} (--{class}s 1)")
            }
            PolicyError::NoProcessors => format!("{e} (--cpus 1, say)"),
            PolicyError::BadOption { option, value, expected } => {
                return Self::setting(&option.replace(' ', "-"), value, expected);
            }
        })
    }
}

impl From<ExecError> for Failure {
    fn from(e: ExecError) -> Self {
        match e {
            ExecError::Gpu(e) => e.into(),
            ExecError::TooLarge { .. }
            | ExecError::BadK(_)
            | ExecError::BadThreads { .. }
            | ExecError::TooManyTerms(_)
            | ExecError::BeyondGpu { .. } => Self::input(e.to_string()),
            ExecError::Panicked | ExecError::NoThread(_) => Self::failed(e.to_string()),
        }
    }
}

impl From<GpuError> for Failure {
    fn from(e: GpuError) -> Self {
        match e {
            GpuError::NoGpu(_) | GpuError::DoesNotFit { .. } | GpuError::BadBudget { .. } => Self::input(e.to_string()),
            GpuError::Failed { .. } | GpuError::OutOfMemory { .. } => Self::failed(e.to_string()),
        }
    }
}

impl From<BuildError> for Failure {
    fn from(e: BuildError) -> Self {
        match e {
            BuildError::Threads(_) | BuildError::Panicked | BuildError::Run { .. } => Self::failed(e.to_string()),
            BuildError::Index(e) => e.into(),
            BuildError::Input(_) => Self::input(e.to_string()),
        }
    }
}

impl From<ProfileError> for Failure {
    fn from(e: ProfileError) -> Self {
        match e {
            ProfileError::Options(message) => Self::input(message),
            ProfileError::Interrupted
            | ProfileError::Search { .. }
            | ProfileError::Batch { .. }
            | ProfileError::Differ { .. } => Self::failed(e.to_string()),
        }
    }
}

impl From<SimError> for Failure {
    fn from(e: SimError) -> Self {
        match e {
            SimError::Policy(e) => e.into(),
            SimError::Law(e) => e.into(),
            SimError::Interrupted => Self::interrupted(e.to_string()),
            SimError::TooLong { .. } => Self::input(e.to_string()),
        }
    }
}

/// Adds the options that avoid an error of a study.
impl From<StudyError> for Failure {
    fn from(e: StudyError) -> Self {
        let way_out = match &e {
            StudyError::NoModel(e) if has_option("estimates") => {
                return Self::input(format!("--estimates model: {e} (or take --estimates oracle)"));
            }
            StudyError::NoModel(_) => " (give a log of more different queries)".to_owned(),
            StudyError::NoEstimate { estimates, query, class, .. } if estimates == "predicted_us" => {
                let message =
                    format!("query {query}: predicted_us has no {class} time (measured times: --estimates oracle)");
                return Self::input(message);
            }
            StudyError::NoEstimate { .. } => return Self::input(format!("--estimates {e}")),
            StudyError::NotMeasured { class, .. } if has_option(&format!("{class}s")) => {
                format!(" (profile it there, or leave the kind out with --{class}s 0)")
            }
            StudyError::NotMeasured { .. } => " (profile it there)".to_owned(),
            StudyError::TooFewArrivals { .. } => " (give a longer trace)".to_owned(),
            StudyError::Input(_)
            | StudyError::Priorities { .. }
            | StudyError::NoQueries { .. }
            | StudyError::NoRate { .. } => String::new(),
            _ => return Self::of_study(e),
        };
        Self::input(format!("{e}{way_out}"))
    }
}

/// Adds the options that avoid an error of the lab.
impl From<LabError> for Failure {
    fn from(e: LabError) -> Self {
        let way_out = match &e {
            LabError::OtherIndex { .. } => " (profile it: `tandem profile`)".to_owned(),
            LabError::NotInLog { .. } if has_option("queries") => {
                "; name the log that was profiled: --queries".to_owned()
            }
            LabError::HasGpuTimes { .. } => "; --gpu replay is for workloads without".to_owned(),
            LabError::NoGpuTimes { .. } => {
                ": measure it on a machine that has one, leave it out (--gpus 0), or take recorded times (--gpu replay)"
                    .to_owned()
            }
            LabError::NothingReal => " (--cpus is 0)".to_owned(),
            LabError::TooManyQueries { .. } => " (shorten it: --live-seconds)".to_owned(),
            LabError::NotInLog { .. } => String::new(),
            _ => return Self::of_work(e),
        };
        Self::input(format!("{e}{way_out}"))
    }
}

impl Failure {
    /// The failure behind an error of the layers below a study.
    fn of_study(e: StudyError) -> Self {
        match e {
            StudyError::Sim(e) => e.into(),
            StudyError::Policy(e) => e.into(),
            StudyError::Io(e) => e.into(),
            StudyError::Interrupted => Self::interrupted(e.to_string()),
            e => Self::failed(e.to_string()),
        }
    }

    /// The failure behind an error of the work, or of the layers below the lab.
    fn of_work(e: LabError) -> Self {
        match e {
            LabError::Study(e) => (*e).into(),
            LabError::Exec(e) => e.into(),
            LabError::Profile(e) => e.into(),
            LabError::Live(e) => e.into(),
            LabError::Index(e) => e.into(),
            e => Self::failed(e.to_string()),
        }
    }
}
