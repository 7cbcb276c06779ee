//! CPU executors, one algorithm a file.
