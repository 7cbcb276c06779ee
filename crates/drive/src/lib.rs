//! What needs both the model and the engine: live runs, measurement of queries and machines, and answers.

pub mod lab;
pub mod live;
pub mod profile;
