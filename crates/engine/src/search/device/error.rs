//! Errors of a GPU or its driver.

/// An error of a GPU or of its driver.
#[derive(Debug, thiserror::Error)]
pub enum GpuError {
    /// No GPU is usable: no driver, no device, one that is too old, or a build without GPU support.
    #[error("no GPU to use: {0}; CPU executors need none")]
    NoGpu(String),
    /// The index exceeds device memory.
    #[error("the index needs {needed_bytes} bytes of device memory, {free_bytes} are free")]
    DoesNotFit {
        /// Bytes that the index needs.
        needed_bytes: u64,
        /// Free bytes.
        free_bytes: u64,
    },
    /// A budget of device memory that is too small for permanent data or exceeds free memory.
    #[error(
        "a budget of {budget_bytes} bytes of device memory for the index, expected {least_bytes} (headers, directories and \
         norms stay there) to {free_bytes} (what is free)"
    )]
    BadBudget {
        /// The requested bytes.
        budget_bytes: u64,
        /// Bytes that are always device-resident.
        least_bytes: u64,
        /// Free bytes.
        free_bytes: u64,
    },
    /// A call found no free device memory.
    #[error("{doing}: no device memory left")]
    OutOfMemory {
        /// The kernel or call, and the query.
        doing: String,
    },
    /// A call or a kernel failed.
    #[error("{doing}: {message}")]
    Failed {
        /// The kernel or call, and the query.
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

        /// No GPU is usable because a call failed.
        pub(crate) fn no_gpu(error: &DriverError) -> Self {
            Self::NoGpu(describe(error))
        }
    }

    fn describe(error: &DriverError) -> String {
        let text = |text: Result<&CStr, DriverError>| text.map(|t| t.to_string_lossy().into_owned());
        match (text(error.error_name()), text(error.error_string())) {
            (Ok(name), Ok(explanation)) => format!("{name} ({explanation})"),
            _ => format!("CUDA error {}", error.0 as u32),
        }
    }
}
