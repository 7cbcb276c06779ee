//! `--rate`, `--num-queries`, `--seeds`, `--trace`: how many queries arrive in each run, and when.

use std::path::PathBuf;

use super::process::ProcessArguments;
use super::rates::parse_rates;
use crate::Failure;
use tandem_core::base::ids::QueryId;
use tandem_core::query::{ArrivalProcess, Mode};

/// The largest accepted number of seeds.
const MAX_SEEDS: u64 = 1000;

/// How many queries arrive in each run, and when.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ArrivalArguments {
    /// Arrival rates in queries per second: numbers and FROM:TO:COUNT, separated by commas [default: from light load to the
    /// highest stable rate, or the rate of --trace]
    #[arg(long, value_name = "QPS")]
    rate: Option<String>,
    /// Queries in each run; the runs of a capacity search have at least this many
    #[arg(long, value_name = "N")]
    pub(crate) num_queries: Option<usize>,
    /// Random seeds of arrivals and queries, separated by commas, or FIRST:LAST; each seed is one run at every rate [default:
    /// 1:10; live: 1]
    #[arg(long, value_name = "SEEDS")]
    seeds: Option<String>,
    #[command(flatten)]
    pub(crate) process: ProcessArguments,
    /// Trace file, written by `trace`, whose arrivals and queries are played
    #[arg(long, value_name = "FILE", conflicts_with_all = ["num_queries", "arrivals", "replay", "seeds"])]
    pub(crate) trace: Option<PathBuf>,
}

impl ArrivalArguments {
    /// The rates that are named.
    pub(crate) fn rates(&self) -> Result<Option<Vec<f64>>, Failure> {
        let rates = self.rate.as_deref().map(parse_rates).transpose();
        rates.map_err(|why| Failure::input(format!("--rate: {why}")))
    }

    /// The number of queries in a run, if it is given.
    pub(crate) fn num_queries(&self) -> Result<Option<usize>, Failure> {
        match self.num_queries {
            Some(0) => Err(Failure::input("--num-queries is 0, expected at least 1")),
            given => Ok(given),
        }
    }

    /// The trace or this process, as result files name it.
    pub(crate) fn named(&self, process: &ArrivalProcess) -> String {
        match &self.trace {
            Some(trace) => format!("trace {}", trace.display()),
            None => self.process.named(process),
        }
    }

    /// The seeds, each once; `usual` by default.
    pub(crate) fn seeds(&self, usual: &str) -> Result<Vec<u64>, Failure> {
        parse_seeds(self.seeds.as_deref().unwrap_or(usual))
    }
}

/// The error for a query of a trace that the workload lacks.
pub(crate) fn not_in(mode: Mode) -> impl Fn(QueryId) -> String {
    move |query| {
        let what = format!("`query_id` is {query}, and the workload has no such query in mode {mode}");
        format!("{what} (`tandem trace --mode {mode}` draws from those that it has)")
    }
}

/// The error if no rate is named and there is no default.
pub(crate) fn no_rates() -> Failure {
    Failure::input("all queries of the workload cost nothing: name rates with --rate")
}

/// `3`, `1,2,5` or `1:20`, both ends included.
pub(crate) fn parse_seeds(text: &str) -> Result<Vec<u64>, Failure> {
    let number = |text: &str| {
        let fault = || Failure::input(format!("--seeds {text:?} is not a whole number from 0 to 18446744073709551615"));
        text.trim().parse::<u64>().map_err(|_| fault())
    };
    let mut seeds = Vec::new();
    for part in text.split(',') {
        let (first, last) = match part.split_once(':') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if first > last || last - first >= MAX_SEEDS || seeds.len() as u64 + (last - first) >= MAX_SEEDS {
            return Err(Failure::input(format!("--seeds {text}: expected 1 to {MAX_SEEDS} seeds, ascending")));
        }
        for seed in first..=last {
            // A run played twice would count twice, and make an interval narrower than it is.
            if seeds.contains(&seed) {
                return Err(Failure::input(format!("--seeds {text}: {seed} is given twice")));
            }
            seeds.push(seed);
        }
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_numbers_lists_and_ranges_without_repeats() {
        let seeds = |text: &str| parse_seeds(text).ok();
        assert_eq!(seeds("7"), Some(vec![7]));
        assert_eq!(seeds("1,5:7"), Some(vec![1, 5, 6, 7]));
        for bad in ["", "-1", "3:1", "0:18446744073709551615", "x", "1:", "0:999,5", "1,1", "1:3,2"] {
            assert_eq!(seeds(bad), None, "{bad:?}");
        }
    }
}
