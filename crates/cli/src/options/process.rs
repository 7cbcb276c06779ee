//! `--arrivals`, `--replay`: how queries arrive.

use super::names::choice;
use crate::Failure;
use crate::settings::Settings;
use tandem_core::query::{ArrivalProcess, Replay};
use tandem_report::number;

/// How queries arrive.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct ProcessArguments {
    /// Arrival process: poisson, bursty, uniform, a shipped trace (smooth-100qps, bursty-100qps), or a CSV file of recorded
    /// arrivals with a column `arrival_us` (microseconds) or `arrival_s` (seconds)
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

/// The arrivals' own rate, if they have one. Rates that are asked for must equal it.
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

/// Refuses arrivals with a rate of their own if a capacity is searched.
pub(crate) fn any_rate(process: &ArrivalProcess) -> Result<(), Failure> {
    match process.recording().map(tandem_core::query::Recording::replay).filter(|replay| replay.has_own_rate()) {
        Some(replay) => Err(Failure::input(format!(
            "--replay {} plays at the recorded rate only, and a capacity is searched at many: take intensify or compress \
             (or `tandem simulate --what delays`)",
            replay.name()
        ))),
        None => Ok(()),
    }
}
