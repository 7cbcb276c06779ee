//! Why a GPU could not be used, or failed.

/// An error of a GPU or of its driver.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// There is no GPU to use: no driver, no device, one too old, or a build that knows none.
    #[error("no GPU to use: {0}; CPU executors need none")]
    NoGpu(String),
    /// What is asked for does not fit into device memory.
    #[error("the index needs {needed_bytes} bytes of device memory, {free_bytes} are free")]
    DoesNotFit {
        /// What it takes there.
        needed_bytes: u64,
        /// What is free.
        free_bytes: u64,
    },
    /// A budget of device memory that can't be kept to, or is not there.
    #[error(
        "a budget of {budget_bytes} bytes of device memory for the index, expected {least_bytes} (headers, directories and \
         norms stay there) to {free_bytes} (what is free)"
    )]
    BadBudget {
        /// What was asked for.
        budget_bytes: u64,
        /// What stays on the device in any case.
        least_bytes: u64,
        /// What is free.
        free_bytes: u64,
    },
    /// There was no device memory left for what a call needed.
    #[error("{doing}: no device memory left")]
    OutOfMemory {
        /// The kernel or call, and the query at hand.
        doing: String,
    },
    /// A call or a kernel failed.
    #[error("{doing}: {message}")]
    Failed {
        /// The kernel or call, and the query at hand.
        doing: String,
        /// The driver's name for the error.
        message: String,
    },
}

#[cfg(feature = "gpu")]
mod of_the_driver {
    use std::ffi::CStr;

    use cudarc::driver::{DriverError, sys};

    use super::GpuError;

    impl GpuError {
        /// The error of a failed call. `doing` names the call, the kernels and the query.
        pub fn of(doing: impl Into<String>, error: &DriverError) -> Self {
            if error.0 == sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY {
                return Self::OutOfMemory { doing: doing.into() };
            }
            Self::Failed { doing: doing.into(), message: describe(error) }
        }

        /// There is no GPU to use, because a call failed.
        pub(crate) fn no_gpu(error: &DriverError) -> Self {
            Self::NoGpu(describe(error))
        }
    }

    /// The driver's name for an error, and its explanation.
    fn describe(error: &DriverError) -> String {
        let text = |text: Result<&CStr, DriverError>| text.map(|t| t.to_string_lossy().into_owned());
        match (text(error.error_name()), text(error.error_string())) {
            (Ok(name), Ok(explanation)) => format!("{name} ({explanation})"),
            _ => format!("CUDA error {}", error.0 as u32),
        }
    }
}
