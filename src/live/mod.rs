//! Driving real executors with the same scheduler code.
