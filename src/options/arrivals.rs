//! Options of arrivals: `--rate`, `--num-queries`, `--seeds`, `--trace`, `--arrivals`, `--replay`.

use std::path::PathBuf;

use tandem_model::base::ids::QueryId;
use tandem_model::traffic::{ArrivalProcess, Mode, Recording, Replay};

use super::lists::parse_rates;
use super::names::choice;
use crate::failure::Failure;
use crate::settings::Settings;
use tandem_report::number;

/// The largest accepted number of seeds.
const MAX_SEEDS: u64 = 1000;

/// The number of queries in each run, and their arrivals.
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
    /// The named rates.
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
            // A seed that is played twice would count twice and narrow the interval.
            if seeds.contains(&seed) {
                return Err(Failure::input(format!("--seeds {text}: {seed} is given twice")));
            }
            seeds.push(seed);
        }
    }
    Ok(seeds)
}

/// How queries arrive.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ProcessArguments {
    /// Arrival process: poisson, bursty, uniform, a shipped trace (smooth-100qps, bursty-100qps), or a table of recorded
    /// arrivals with a column such as `arrival_s` or `timestamp`, or of intervals with `time` and `qps` or `count`
    #[arg(long, value_name = "PROCESS|FILE", default_value = "poisson")]
    pub(crate) arrivals: String,
    /// How recorded arrivals are played [default: intensify]
    #[arg(long, value_name = "HOW", value_parser = choice::<Replay>())]
    replay: Option<Replay>,
}

impl ProcessArguments {
    /// The process; reads the file if one is named.
    pub(crate) fn process(&self, settings: &Settings) -> Result<ArrivalProcess, Failure> {
        let burstiness = settings.burstiness()?;
        let process = match ArrivalProcess::named(&self.arrivals, self.replay.unwrap_or_default())? {
            ArrivalProcess::Bursty(_) => ArrivalProcess::Bursty(burstiness),
            process => process,
        };
        process
            .recording()
            .and_then(Recording::found)
            .into_iter()
            .for_each(|found| errln!("{}: {found}", self.arrivals));
        match (self.replay, process.recording()) {
            (Some(replay), None) => Err(Failure::input(format!(
                "--replay {}: arrivals are {}, expected a file of recorded ones (--arrivals FILE)",
                replay.name(),
                self.arrivals
            ))),
            _ => Ok(process),
        }
    }

    /// The process as result files name it: `poisson`, bursts with their duration, or a file and its replay.
    pub(crate) fn named(&self, process: &ArrivalProcess) -> String {
        match process {
            ArrivalProcess::Recorded(recording) => format!("{}, {}", self.arrivals, recording.replay().name()),
            ArrivalProcess::Bursty(bursts) => {
                let [seconds, ratio] = [bursts.seconds(), bursts.ratio()].map(|value| number::text(value, 6));
                format!("bursty, {seconds} s at {ratio} times the calm rate, {} of the time", bursts.share())
            }
            ArrivalProcess::Poisson | ArrivalProcess::Uniform => self.arrivals.clone(),
        }
    }

    /// The warning about results for a recording that is compressed to these rates.
    pub(crate) fn caveat(&self, process: &ArrivalProcess, rates: &[f64]) -> Option<String> {
        let recording = process.recording().filter(|recording| recording.replay() == Replay::Compress)?;
        let least = rates.iter().copied().min_by(f64::total_cmp)? / recording.rate_qps();
        Some(format!(
            "the recorded arrivals were COMPRESSED {} times: a second becomes {} ms, so that bursts are too short to matter \
             (--replay intensify keeps their duration)",
            number::text(least, 3),
            number::text(1e3 / least, 3)
        ))
    }

    /// How a recording is played at these rates; `None` for other arrivals.
    pub(crate) fn note(&self, process: &ArrivalProcess, rates: &[f64]) -> Option<String> {
        let recording = process.recording()?;
        let least = rates.iter().copied().min_by(f64::total_cmp)? / recording.rate_qps();
        let most = rates.iter().copied().max_by(f64::total_cmp)? / recording.rate_qps();
        let three = |number: f64| number::text(number, 3);
        let factor = if least == most { three(most) } else { format!("{} to {}", three(least), three(most)) };
        let played = match recording.replay() {
            Replay::Repeat => String::from("in real time, end to end"),
            Replay::Windows => String::from("in real time, by windows of a twentieth of it"),
            Replay::Intensify => format!("intensified {factor} times: bursts last as long as they did"),
            Replay::Compress => format!("compressed {factor} times"),
        };
        let seconds = number::text(recording.seconds(), 4);
        let recorded = number::text(recording.rate_qps(), 3);
        Some(format!("arrivals: {}, {recorded} q/s over {seconds} s, {played}", self.arrivals))
    }
}

/// The rate of the arrivals, if it is fixed. A requested rate must equal it.
pub(crate) fn own_rate(process: &ArrivalProcess, asked: Option<&[f64]>) -> Result<Option<f64>, Failure> {
    let Some(recording) = process.recording().filter(|recording| recording.replay().has_own_rate()) else {
        return Ok(None);
    };
    let own_qps = recording.rate_qps();
    match asked.into_iter().flatten().find(|&&asked| (asked / own_qps - 1.0).abs() > 1e-3) {
        Some(asked) => Err(Failure::input(format!(
            "--rate {asked}: --replay {} plays at the recorded rate, {} q/s (intensify and compress play at any)",
            recording.replay().name(),
            number::text(own_qps, 6)
        ))),
        None => Ok(Some(own_qps)),
    }
}

/// Refuses arrivals with a fixed rate if a capacity is searched.
pub(crate) fn any_rate(process: &ArrivalProcess) -> Result<(), Failure> {
    match process.recording().map(Recording::replay).filter(|replay| replay.has_own_rate()) {
        Some(replay) => Err(Failure::input(format!(
            "--replay {} plays at the recorded rate only, and a capacity is searched at many: take intensify or compress \
             (or `tandem simulate --what delays`)",
            replay.name()
        ))),
        None => Ok(()),
    }
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
