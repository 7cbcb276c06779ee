//! [SimPy](https://simpy.readthedocs.io), a discrete-event simulator in Python, asked what the simulator is asked: one server that
//! takes queries as they come.
//!
//! It runs as a child process, `python3`, whichever the user's `PATH` leads to; `simpy.py` is the whole script. It draws arrivals
//! and queries of its own, so that answers agree within what chance allows, and no better.

use std::io::Write;
use std::process::{Command, Stdio};

use serde::{Deserialize, Serialize};

use super::simulator::BATCHES;
use super::single_server::SingleServerTime;
use crate::machine::Class;
use crate::sim::SimQuery;

/// What runs scripts.
const PYTHON: &str = "python3";
const SCRIPT: &str = include_str!("simpy.py");

/// SimPy on this machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimPy {
    /// Its version.
    pub version: String,
}

/// Why SimPy has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SimPyError {
    /// There is no Python.
    #[error("not installed: no python3")]
    NoPython,
    /// Python does not know SimPy.
    #[error("not installed: pip install simpy")]
    NotInstalled,
    /// Something else; the last line that Python said.
    #[error("python3: {0}")]
    Failed(String),
}

impl SimPyError {
    /// Whether all that is missing is SimPy, or Python: nothing has failed.
    #[must_use]
    pub fn is_absence(&self) -> bool {
        matches!(self, Self::NoPython | Self::NotInstalled)
    }
}

/// What `simpy.py` reads,
#[derive(Serialize)]
struct Asked {
    queries: usize,
    rate_qps: f64,
    seed: u64,
    parts: usize,
    services_us: Vec<f64>,
}

/// and what it writes.
#[derive(Deserialize)]
struct Answered {
    seconds: f64,
    peak_bytes: Option<u64>,
    means_ms: Vec<f64>,
}

impl SimPy {
    /// The one that `python3` imports.
    ///
    /// # Errors
    /// If there is no Python, or it does not import SimPy.
    pub fn find() -> Result<Self, SimPyError> {
        Self::find_with(PYTHON)
    }

    fn find_with(python: &str) -> Result<Self, SimPyError> {
        let mut asked = Command::new(python);
        asked.args(["-c", "import simpy; print(simpy.__version__)"]).stdin(Stdio::null());
        let output = asked.output().map_err(not_started)?;
        if output.status.success() {
            return Ok(Self { version: String::from_utf8_lossy(&output.stdout).trim().to_owned() });
        }
        let said = last_line(&output.stderr);
        Err(if said.starts_with("ModuleNotFoundError") { SimPyError::NotInstalled } else { SimPyError::Failed(said) })
    }

    /// Plays so many arrivals at random, of `workload`'s queries on one processor of `class`.
    ///
    /// # Errors
    /// If Python fails.
    pub fn time_single_server(
        &self,
        workload: &[SimQuery],
        class: Class,
        queries: usize,
        rate_qps: f64,
        seed: u64,
    ) -> Result<SingleServerTime, SimPyError> {
        let services_us = workload.iter().map(|query| query.service[class].alone.as_us()).collect();
        let asked = Asked { queries, rate_qps, seed, parts: BATCHES, services_us };
        let Answered { seconds, peak_bytes, means_ms } = run(&asked)?;
        Ok(SingleServerTime { ns_a_query: seconds * 1e9 / queries.max(1) as f64, peak_bytes, means_ms })
    }
}

fn run(asked: &Asked) -> Result<Answered, SimPyError> {
    let failed = |e: &dyn std::fmt::Display| SimPyError::Failed(e.to_string());
    let mut python = Command::new(PYTHON);
    python.args(["-c", SCRIPT]).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = python.spawn().map_err(not_started)?;
    let question = serde_json::to_vec(asked).map_err(|e| failed(&e))?;
    // A script that ends before it has read says why on its standard error.
    let written = child.stdin.take().map(|mut stdin| stdin.write_all(&question));
    let output = child.wait_with_output().map_err(|e| failed(&e))?;
    if !output.status.success() {
        return Err(SimPyError::Failed(last_line(&output.stderr)));
    }
    written.transpose().map_err(|e| failed(&e))?;
    serde_json::from_slice(&output.stdout).map_err(|e| failed(&e))
}

fn not_started(e: std::io::Error) -> SimPyError {
    if e.kind() == std::io::ErrorKind::NotFound { SimPyError::NoPython } else { SimPyError::Failed(e.to_string()) }
}

/// The last line of what Python said: in a traceback, what went wrong.
fn last_line(said: &[u8]) -> String {
    let said = String::from_utf8_lossy(said);
    said.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("it failed, and did not say why").to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_is_told_apart_from_what_fails() {
        let missing = SimPy::find_with("no-such-python").unwrap_err();
        assert!(missing.is_absence() && missing.to_string() == "not installed: no python3");
        // Programs that take any arguments: one fails without a word, the other says what is no traceback's end.
        let failing = SimPy::find_with("false").unwrap_err();
        assert!(!failing.is_absence(), "{failing}");
        assert_eq!(
            last_line(b"Traceback\n  File\nModuleNotFoundError: No module\n\n"),
            "ModuleNotFoundError: No module"
        );
    }
}
