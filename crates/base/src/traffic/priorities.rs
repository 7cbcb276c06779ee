//! Priorities of queries: each has its own deadline, and an importance by its place in the list.
//!
//! ```text
//!   interactive=50ms:0.8,batch=2s:0.2      most important first: name = time to the deadline : share of the queries
//! ```
//!
//! The priority of an arrival depends on the seed of the run and on the number of the arrival only, so that all policies and
//! rates, simulated and live, share it. A trace may name the priority of each arrival instead.

use std::fmt;

use crate::base::random::{Purpose, mix};
use crate::base::time::Nanos;

/// Most priorities of a run.
const MOST: usize = 16;
/// Shares may miss a sum of 1 by this rounding error.
const ROUNDING: f64 = 1e-6;

/// A kind of query, with the service that it is promised.
#[derive(Clone, Debug, PartialEq)]
pub struct Priority {
    /// The name in tables and files.
    pub name: String,
    /// Time from arrival to deadline.
    pub allowance: Nanos,
    /// The share of the queries that have this priority; `None` if a trace must name priorities.
    pub share: Option<f64>,
}

/// The priorities of a run, the most important first.
#[derive(Clone, Debug, PartialEq)]
pub struct Priorities {
    levels: Vec<Priority>,
    /// By level, the end of its part of the range of random numbers.
    ends: Vec<u64>,
    /// The level of each arrival, if a trace names it.
    given: Option<Vec<u8>>,
}

impl Priorities {
    /// Parses `interactive=50ms:0.8,batch=2s:0.2`. Shares are all given or all missing. Fails with a text that says
    /// what is wrong, and what is expected.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let levels = text.split(',').map(level).collect::<Result<Vec<_>, _>>()?;
        if levels.len() > MOST {
            return Err(format!("{} priorities, expected at most {MOST}", levels.len()));
        }
        for (i, level) in levels.iter().enumerate() {
            if levels[..i].iter().any(|other| other.name == level.name) {
                return Err(format!("{} is given twice", level.name));
            }
        }
        let with_share = levels.iter().filter(|level| level.share.is_some()).count();
        let sum: f64 = levels.iter().filter_map(|level| level.share).sum();
        if with_share > 0 && (with_share < levels.len() || (sum - 1.0).abs() > ROUNDING) {
            return Err(format!("the shares sum to {sum}, expected one of each priority, and 1 in all"));
        }
        Ok(Self { ends: ends(&levels), levels, given: None })
    }

    /// These priorities for the arrivals of a trace, which names the priority of each. Fails if the trace has a name
    /// that is not in the list.
    pub fn of_trace(mut self, names: &[String]) -> Result<Self, String> {
        let mut counts = vec![0_usize; self.levels.len()];
        let mut given = Vec::with_capacity(names.len());
        for name in names {
            let found = self.levels.iter().position(|level| level.name == *name);
            let level =
                found.ok_or_else(|| format!("the trace has queries of priority {name:?}, which is not given"))?;
            counts[level] += 1;
            given.push(level as u8);
        }
        for (level, count) in self.levels.iter_mut().zip(counts) {
            level.share = Some(count as f64 / names.len().max(1) as f64);
        }
        self.given = Some(given);
        Ok(self)
    }

    /// The levels, the most important first.
    pub fn levels(&self) -> &[Priority] {
        &self.levels
    }

    /// Whether the priority of every arrival is known, from shares or from a trace.
    pub fn are_assigned(&self) -> bool {
        self.levels.iter().all(|level| level.share.is_some())
    }

    /// The longest time to a deadline.
    pub fn longest(&self) -> Nanos {
        self.levels.iter().map(|level| level.allowance).max().unwrap_or_default()
    }

    /// The priorities of a run's arrivals.
    pub fn of_run(&self, seed: u64) -> RunPriorities<'_> {
        RunPriorities { priorities: self, salt: Purpose::Priorities.stream(seed).bits() }
    }
}

impl fmt::Display for Priorities {
    /// Writes the form of options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, Priority { name, allowance, share }) in self.levels.iter().enumerate() {
            let comma = if i > 0 { "," } else { "" };
            write!(f, "{comma}{name}={}ms", allowance.as_ms())?;
            share.iter().try_for_each(|share| write!(f, ":{share}"))?;
        }
        Ok(())
    }
}

/// The priority of each arrival of one run.
#[derive(Clone, Copy, Debug)]
pub struct RunPriorities<'a> {
    priorities: &'a Priorities,
    salt: u64,
}

impl RunPriorities<'_> {
    /// The level of the arrival of this number, from 0, the most important, and the time to its deadline.
    #[inline]
    pub fn of(&self, number: u32) -> (u8, Nanos) {
        let Priorities { levels, ends, given } = self.priorities;
        let level = match given {
            Some(given) => usize::from(given.get(number as usize).copied().unwrap_or_default()),
            None => {
                let drawn = mix(self.salt ^ u64::from(number));
                ends.iter().position(|&end| drawn <= end).unwrap_or(levels.len() - 1)
            }
        };
        (level as u8, levels[level].allowance)
    }
}

/// Parses `interactive=50ms:0.8`.
fn level(text: &str) -> Result<Priority, String> {
    let expected = || format!("{text:?}: expected NAME=TIME or NAME=TIME:SHARE, as interactive=50ms:0.8");
    let (name, rest) = text.trim().split_once('=').ok_or_else(expected)?;
    let is_named = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || "-_".contains(c));
    if !is_named {
        return Err(expected());
    }
    let (time, share) = rest.split_once(':').map_or((rest, None), |(time, share)| (time, Some(share)));
    // `ms` and `us` also end with `s`.
    let units = [("ms", 1e6), ("us", 1e3), ("s", 1e9)];
    let number = |(unit, ns): (&str, f64)| Some(time.strip_suffix(unit)?.trim().parse::<f64>().ok()? * ns);
    let ns = units.into_iter().find_map(number).ok_or_else(expected)?;
    if !(1.0..=8.64e13).contains(&ns) {
        return Err(format!("{text:?}: the time to the deadline must be above 0 and at most a day"));
    }
    let share = share.map(|share| share.parse::<f64>().map_err(|_| expected())).transpose()?;
    if share.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
        return Err(format!("{text:?}: the share must be above 0 and at most 1"));
    }
    Ok(Priority { name: name.to_owned(), allowance: Nanos(ns.round() as u64), share })
}

fn ends(levels: &[Priority]) -> Vec<u64> {
    let mut sum = 0.0;
    let end = |level: &Priority| {
        sum += level.share.unwrap_or_default();
        // A float that is too large saturates.
        (sum * u64::MAX as f64) as u64
    };
    levels.iter().map(end).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn priorities_read_back_and_faults_are_named() {
        let text = "interactive=50ms:0.8,batch=2s:0.2";
        let priorities = Priorities::from_text(text).unwrap();
        assert_eq!(priorities.to_string(), "interactive=50ms:0.8,batch=2000ms:0.2");
        assert_eq!(Priorities::from_text(&priorities.to_string()), Ok(priorities.clone()));
        assert_eq!((priorities.longest(), priorities.are_assigned()), (Nanos::from_ms(2000.0), true));
        assert!(!Priorities::from_text("a=1ms,b=3us").unwrap().are_assigned());
        for (bad, why) in [
            ("", "expected NAME=TIME"),
            ("a=5", "expected NAME=TIME"),
            ("a b=5ms", "expected NAME=TIME"),
            ("a=5ms:x", "expected NAME=TIME"),
            ("a=0s", "above 0"),
            ("a=NaNs", "above 0"),
            ("a=5ms:0,b=1s:1", "above 0 and at most 1"),
            ("a=5ms:0.5,b=1s", "expected one of each"),
            ("a=5ms:0.5,b=1s:0.4", "sum to 0.9"),
            ("a=5ms:0.5,a=1s:0.5", "a is given twice"),
        ] {
            let message = Priorities::from_text(bad).expect_err(bad);
            assert!(message.contains(why), "{bad}: {message}");
        }
    }

    #[test]
    fn shares_hold_and_a_trace_names_each_arrival() {
        let priorities = Priorities::from_text("a=1ms:0.7,b=2ms:0.3").unwrap();
        let run = priorities.of_run(5);
        let n = 100_000;
        let important = (0..n).filter(|&number| run.of(number) == (0, Nanos::from_ms(1.0))).count();
        // Five standard errors.
        assert!((important as f64 / f64::from(n) - 0.7).abs() < 0.0073, "{important}");
        assert!((0..100).any(|number| run.of(number) != priorities.of_run(6).of(number)));
        let names = ["b", "a", "b", "b"].map(String::from);
        let traced = priorities.clone().of_trace(&names).unwrap();
        assert_eq!([0, 1, 2, 3].map(|number| traced.of_run(5).of(number).0), [1, 0, 1, 1]);
        assert_eq!(traced.levels()[0].share, Some(0.25));
        assert!(priorities.of_trace(&[String::from("c")]).unwrap_err().contains("\"c\""));
    }
}
