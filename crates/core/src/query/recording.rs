//! Arrivals that were recorded somewhere, and the ways to play them at other rates than their own.
//!
//! ```text
//! recorded     |||  |     |        ||||    a burst lasts a second
//! repeat       the same, end to end                              at its own rate
//! windows      stretches of it, in an order that a seed draws    at its own rate
//! intensify    |||||||  || |    ||  |     |||||||||              at any rate: a burst lasts as long, and is denser
//! compress     |||  | |  |||||||  | |  ||||                      at any rate: a burst lasts the shorter, the higher
//! ```
//!
//! Compressing keeps the shape of gaps (their squared coefficient of variation) and loses what a burst does: an hour's
//! bursts that pass in microseconds are over before a queue has felt them. Intensifying keeps the recorded course of the
//! rate second by second, and within it draws arrivals as of many independent users.

use std::path::Path;

use super::arrival_csv::read_arrivals;
use crate::base::random::Random;
use crate::files::{InputError, open_text};

/// How a recording is played at a rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Replay {
    /// In real time, end to end.
    Repeat,
    /// In real time, stretches of it drawn at random.
    Windows,
    /// With its course of the rate kept in real time, raised or lowered.
    Intensify,
    /// With all gaps divided by one factor.
    #[default]
    Compress,
}

impl Replay {
    /// All ways, from the most faithful on.
    pub const ALL: [Self; 4] = [Self::Repeat, Self::Windows, Self::Intensify, Self::Compress];

    /// What it is called in options and files.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Repeat => "repeat",
            Self::Windows => "windows",
            Self::Intensify => "intensify",
            Self::Compress => "compress",
        }
    }

    /// Whether it plays a recording at its own rate only.
    #[must_use]
    pub fn has_own_rate(self) -> bool {
        matches!(self, Self::Repeat | Self::Windows)
    }
}

/// A window is this share of a recording.
const WINDOWS: f64 = 20.0;
/// The stream of [`Random`] that windows and beginnings are drawn from.
const RECORDING_STREAM: u64 = 4;

/// Arrivals that were recorded somewhere, with their mean gap made 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// When each came, in mean gaps: the first one gap after 0, the last at their number.
    times: Vec<f64>,
    rate_qps: f64,
    replay: Replay,
}

impl Recording {
    /// Reads the column `arrival_us` or `arrival_s` of a CSV file (also `.gz` or `.zst`); other columns are passed
    /// over, so that our own `*.trace.csv` files and recordings from elsewhere both serve.
    ///
    /// # Errors
    /// With line and column: no such column, times that are not numbers, negative, or go backwards; fewer than two
    /// arrivals, or all at the same time.
    pub fn read(path: &Path, replay: Replay) -> Result<Self, InputError> {
        let rows = read_arrivals(path, open_text(path)?)?;
        let (Some(&(first_line, first)), Some(&(last_line, last))) = (rows.first(), rows.last()) else {
            return Err(InputError::file(path, "holds no arrivals"));
        };
        if rows.len() < 2 {
            return Err(InputError::line(
                path,
                first_line,
                "holds one arrival, expected at least two: no gap, no rate",
            ));
        }
        let span = last.since(first).as_us();
        if span == 0.0 {
            let message = format!("all {} arrivals are at the same time: no gap, no rate", rows.len());
            return Err(InputError::line(path, last_line, message));
        }
        let mean_us = span / (rows.len() - 1) as f64;
        let times = rows.iter().map(|&(_, at)| 1.0 + at.since(first).as_us() / mean_us).collect();
        Ok(Self { times, rate_qps: 1e6 / mean_us, replay })
    }

    /// How many arrivals were recorded.
    #[must_use]
    pub fn len(&self) -> usize {
        self.times.len()
    }

    /// Never: a recording has at least two arrivals.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The mean rate at which they were recorded.
    #[must_use]
    pub fn rate_qps(&self) -> f64 {
        self.rate_qps
    }

    /// How long it lasts, in seconds.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        self.len() as f64 / self.rate_qps
    }

    /// The mean rates of consecutive windows of `seconds`, in queries per second. The last one may be shorter; it counts only
    /// if it is the only one.
    #[must_use]
    pub fn rates_qps(&self, seconds: f64) -> Vec<f64> {
        let windows = ((self.seconds() / seconds) as usize).max(1);
        let length = self.seconds().min(seconds) * self.rate_qps;
        let mut counts = vec![0_usize; windows];
        for time in &self.times {
            if let Some(count) = counts.get_mut(((time - 1.0) / length) as usize) {
                *count += 1;
            }
        }
        counts.into_iter().map(|count| count as f64 / length * self.rate_qps).collect()
    }

    /// How it is played.
    #[must_use]
    pub fn replay(&self) -> Replay {
        self.replay
    }

    /// The gap before arrival number `i`; the recording repeats end to end, one mean gap between.
    pub(super) fn gap(&self, i: usize) -> f64 {
        let i = i % self.len();
        self.times[i] - i.checked_sub(1).map_or(0.0, |before| self.times[before])
    }

    /// When so many have come, in mean gaps: between two arrivals as evenly as can be.
    fn when(&self, arrivals: f64) -> f64 {
        let len = self.len() as f64;
        let (round, within) = ((arrivals / len).floor(), arrivals.rem_euclid(len));
        let i = (within as usize).min(self.len() - 1);
        let before = i.checked_sub(1).map_or(0.0, |before| self.times[before]);
        round * len + before + (within - i as f64) * (self.times[i] - before)
    }
}

/// The course of a recorded rate at another one: when a steady stream's arrivals come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intensified<'a> {
    recording: &'a Recording,
    /// Of the recording, for each of the stream.
    share: f64,
    /// Where in the recording it begins, and when that was.
    begin: f64,
    began: f64,
}

impl<'a> Intensified<'a> {
    /// At a rate, from where `seed` says.
    pub(super) fn of(recording: &'a Recording, seed: u64, rate_qps: f64) -> Self {
        let begin = Random::new(seed, RECORDING_STREAM).unit() * recording.len() as f64;
        Self { recording, share: recording.rate_qps / rate_qps, begin, began: recording.when(begin) }
    }

    /// In seconds, the time of what comes at `unit` in a stream of rate 1.
    #[inline]
    pub(super) fn seconds(&self, unit: f64) -> f64 {
        (self.recording.when(self.begin + unit * self.share) - self.began) / self.recording.rate_qps
    }
}

/// Windows of a recording, one after the other, without end.
#[derive(Clone, Debug)]
pub(super) struct Windows<'a> {
    recording: &'a Recording,
    random: Random,
    /// Where the window ends, in the recording's time; past its end it begins again.
    end: f64,
    /// The next arrival.
    next: usize,
    /// How far the stream is behind the recording's time.
    behind: f64,
    last: f64,
}

impl<'a> Windows<'a> {
    pub(super) fn new(recording: &'a Recording, seed: u64) -> Self {
        let random = Random::new(seed, RECORDING_STREAM);
        let mut windows = Self { recording, random, end: 0.0, next: 0, behind: 0.0, last: 0.0 };
        windows.open(0.0);
        windows
    }

    /// A window whose beginning is played at `now`.
    fn open(&mut self, now: f64) {
        let len = self.recording.len() as f64;
        let begin = self.random.unit() * len;
        self.end = begin + len / WINDOWS;
        self.next = self.recording.times.partition_point(|&time| time < begin);
        self.behind = now - begin;
    }

    pub(super) fn gap(&mut self) -> f64 {
        let len = self.recording.len();
        loop {
            let time = (self.next / len * len) as f64 + self.recording.times[self.next % len];
            if time < self.end {
                self.next += 1;
                let now = time + self.behind;
                let gap = (now - self.last).max(0.0);
                self.last = now;
                return gap;
            }
            // It may have held no arrival at all.
            self.open(self.end + self.behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ArrivalProcess, Stretch, unit_arrivals};
    use super::*;

    /// Bursts of a second in which forty come, and calms of nine in which ten do.
    fn bursts(replay: Replay) -> Recording {
        let burst = |second: u32| {
            (0..50u32).map(move |i| {
                let within = if i < 40 { f64::from(i) / 40.0 } else { 1.0 + 0.9 * f64::from(i - 40) };
                10.0 * f64::from(second) + within
            })
        };
        let seconds: Vec<f64> = (0..60).flat_map(burst).collect();
        let mean = (seconds[seconds.len() - 1] - seconds[0]) / (seconds.len() - 1) as f64;
        let times = seconds.iter().map(|at| 1.0 + at / mean).collect();
        Recording { times, rate_qps: 1.0 / mean, replay }
    }

    /// Arrivals in seconds, at so many times the recorded rate.
    fn played(replay: Replay, factor: f64, n: usize) -> Vec<f64> {
        let recording = bursts(replay);
        let rate_qps = recording.rate_qps() * factor;
        let process = ArrivalProcess::Recorded(recording);
        let stretch = Stretch::of(&process, 3, rate_qps);
        unit_arrivals(&process, 3, n).into_iter().map(|unit| stretch.time(unit).as_secs()).collect()
    }

    /// The squared coefficient of variation of gaps, and of counts in stretches of so many seconds.
    fn variations(times: &[f64], seconds: f64) -> (f64, f64) {
        let squared = |values: &[f64]| {
            let mean = values.iter().sum::<f64>() / values.len() as f64;
            values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64 / mean.powi(2)
        };
        let gaps: Vec<f64> = times.windows(2).map(|pair| pair[1] - pair[0]).collect();
        let last = times[times.len() - 1];
        let mut counts = vec![0.0; (last / seconds) as usize + 1];
        times.iter().for_each(|time| counts[(time / seconds) as usize] += 1.0);
        counts.pop();
        (squared(&gaps), squared(&counts))
    }

    #[test]
    fn in_real_time_gaps_and_bursts_are_as_recorded() {
        let recorded = variations(&played(Replay::Compress, 1.0, 3000), 1.0);
        assert!(recorded.0 > 2.5 && recorded.1 > 2.0, "{recorded:?}");
        for replay in [Replay::Repeat, Replay::Windows] {
            let of = variations(&played(replay, 1.0, 30_000), 1.0);
            // Windows are cut where they are cut: a sixtieth of the gaps.
            assert!((of.0 / recorded.0 - 1.0).abs() < 0.1 && (of.1 / recorded.1 - 1.0).abs() < 0.1, "{of:?}");
        }
    }

    #[test]
    fn intensified_bursts_last_as_long_and_compressed_ones_pass() {
        let (_, recorded) = variations(&played(Replay::Compress, 1.0, 3000), 1.0);
        let factor = 200.0;
        let (gaps, counts) = variations(&played(Replay::Intensify, factor, 600_000), 1.0);
        // A fifth of the arrivals come at 10/9 a second, the others at 40, times the factor: within each as Poisson's.
        assert!((counts / recorded - 1.0).abs() < 0.1, "{counts}, recorded {recorded}");
        assert!(gaps > 5.0, "{gaps}");
        let (gaps, counts) = variations(&played(Replay::Compress, factor, 600_000), 1.0);
        let (of_recorded, _) = variations(&played(Replay::Compress, 1.0, 3000), 1.0);
        assert!((gaps / of_recorded - 1.0).abs() < 0.01, "{gaps}");
        assert!(counts < 0.01, "second by second it is as even as can be: {counts}");
    }

    #[test]
    fn every_way_has_the_rate_that_is_asked_and_a_name_of_its_own() {
        for replay in Replay::ALL {
            let factor = if replay.has_own_rate() { 1.0 } else { 7.0 };
            let times = played(replay, factor, 60_000);
            assert!(times.is_sorted());
            let rate_qps = times.len() as f64 / times[times.len() - 1];
            let asked = bursts(replay).rate_qps() * factor;
            assert!((rate_qps / asked - 1.0).abs() < 0.05, "{replay:?}: {rate_qps}, asked {asked}");
        }
        let names: std::collections::HashSet<&str> = Replay::ALL.iter().map(|replay| replay.name()).collect();
        assert_eq!(names.len(), 4);
    }
}
