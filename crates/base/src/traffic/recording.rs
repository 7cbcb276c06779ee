//! Recorded arrivals, with several ways to play them at other rates.
//!
//! ```text
//! recorded     |||  |     |        ||||    a burst lasts a second
//! repeat       the recording, end to end                         at its own rate
//! windows      stretches of it, in an order that a seed draws    at its own rate
//! intensify    |||||||  || |    ||  |     |||||||||              at any rate: a burst lasts as long, and is denser
//! compress     |||  | |  |||||||  | |  ||||                      at any rate: a burst lasts the shorter, the higher
//! ```
//!
//! Compressing keeps the shape of gaps (their squared coefficient of variation) and loses the effect of bursts: an hour's
//! burst that passes in microseconds is over before a queue builds up. Intensifying keeps the recorded course of the
//! rate, and draws arrivals of independent users within it.
//!
//! The course is a row of stages of constant rate with at least fifty arrivals each; fewer arrivals do not determine a
//! rate. The stages maximise the Poisson likelihood less a penalty for each stage ("Bayesian blocks"). A recorded Poisson
//! process therefore has one stage, and stays Poisson when intensified.
//!
//! Counts per interval give the course of the rate only, and no gaps. Arrivals are drawn within each interval then; a run needs
//! no memory for them.
//!
//! Equal timestamps are arrivals of unknown order within the clock's resolution; they are placed at random within it.
//!
//! Source: Scargle, Norris, Jackson, Chiang, "Studies in Astronomical Time Series Analysis. VI. Bayesian Block
//! Representations", Astrophysical Journal 764, 2013.

use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use super::arrival_csv::{Arrived, read_arrivals};
use crate::base::named::named_enum;
use crate::base::random::{Purpose, Random, ln};
use crate::base::time::Nanos;
use crate::files::{InputError, open_text};

named_enum! {
    /// The way in which a recording is played at a rate, the most faithful one first.
    #[derive(Default)]
    pub enum Replay {
        Repeat = "repeat": "In real time at its own rate, from its beginning, repeated if necessary",
        Windows = "windows": "In real time at its own rate: random stretches of a twentieth of its length",
        #[default]
        Intensify = "intensify": "At any rate: its rate second by second is scaled, so that bursts keep their duration; Poisson within",
        Compress = "compress": "At any rate: all gaps are divided by one factor, so that bursts become shorter",
    }
}

impl Replay {
    /// Whether it plays a recording at its own rate only.
    pub fn has_own_rate(self) -> bool {
        matches!(self, Self::Repeat | Self::Windows)
    }
}

/// The length of a recording over the length of a window that is played.
const WINDOWS: f64 = 20.0;
const STAGE_ARRIVALS: f64 = 50.0;
/// Stages are cut between windows of equally many arrivals: of one arrival, or of more in long recordings, since finding
/// the cuts takes time quadratic in the number of windows.
const MOST_WINDOWS: usize = 2048;
/// A stage must add this much to the log-likelihood, besides the logarithm of the number of windows. With stages of one
/// arrival allowed, eleven of 2000 Poisson processes of 50 windows had a second stage, and none of 400 processes of 400
/// windows.
const PENALTY: f64 = 4.0;
/// Resolutions of clocks in nanoseconds, the coarsest first: a minute, a second, and its decimal parts.
const RESOLUTIONS: [u64; 11] =
    [60_000_000_000, 1_000_000_000, 100_000_000, 10_000_000, 1_000_000, 100_000, 10_000, 1_000, 100, 10, 1];

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stage {
    pub(super) seconds: f64,
    /// The rate over the mean rate.
    pub(super) factor: f64,
}

/// Recorded arrivals, scaled to a mean gap of 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Recording {
    /// Times in mean gaps: the first arrival is at 1, the last at the number of arrivals. Empty if only counts are known.
    times: Arc<[f64]>,
    arrivals: usize,
    rate_qps: f64,
    /// The first arrival in the clock of the recording, in seconds.
    first_s: f64,
    replay: Replay,
    /// The course of the rate; a single stage unless the recording is intensified or has counts only.
    stages: Arc<[Stage]>,
    /// The columns of the file in words, unless they are named as in this program's files.
    found: Option<String>,
}

impl Recording {
    /// Reads the times of a CSV file (also `.gz` or `.zst`), or rates or counts in intervals. Other columns are ignored, so that
    /// both our own `*.trace.csv` files and recordings from elsewhere can be read. Fails with line and column: no such
    /// column, times that cannot be read or go backwards, intervals of different lengths; fewer than two arrivals, or
    /// all at one time. If counts are to be played by their gaps.
    pub fn read(path: &Path, replay: Replay) -> Result<Self, InputError> {
        Self::parse(path, open_text(path)?, replay)
    }

    /// Reads a recording from text; `path` is its name in errors, which are those of [`read`](Self::read).
    pub(super) fn parse(path: &Path, text: impl BufRead, replay: Replay) -> Result<Self, InputError> {
        let (arrived, found) = read_arrivals(path, text)?;
        let rows = match arrived {
            Arrived::Times(rows) => rows,
            Arrived::Rates(rates_qps, seconds) => {
                let of_rates =
                    Self::of_rates(&rates_qps, seconds, replay).map_err(|fault| InputError::file(path, fault))?;
                return Ok(Self { found, ..of_rates });
            }
        };
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
        if first == last {
            let message = format!("all {} arrivals are at the same time: no gap, no rate", rows.len());
            return Err(InputError::line(path, last_line, message));
        }
        Ok(Self { found, ..Self::of(&rows.iter().map(|&(_, at)| at).collect::<Vec<_>>(), replay) })
    }

    /// Makes a recording of rates in consecutive intervals of equal length.
    fn of_rates(rates_qps: &[f64], seconds: f64, replay: Replay) -> Result<Self, &'static str> {
        if matches!(replay, Replay::Windows | Replay::Compress) {
            return Err("holds counts, which have no gaps: they are played by repeat or intensify (--replay)");
        }
        let mean_qps = rates_qps.iter().sum::<f64>() / rates_qps.len() as f64;
        let arrivals = (mean_qps * rates_qps.len() as f64 * seconds).round() as usize;
        if arrivals < 2 {
            return Err("holds fewer than two arrivals: no gap, no rate");
        }
        // An interval without arrivals keeps a factor above 0, by which [`Course`](super::course::Course) divides.
        let stage = |qps: &f64| Stage { seconds, factor: (qps / mean_qps).max(f64::MIN_POSITIVE) };
        let stages = rates_qps.iter().map(stage).collect();
        Ok(Self { times: Arc::new([]), arrivals, rate_qps: mean_qps, first_s: 0.0, replay, stages, found: None })
    }

    /// Makes a recording of at least two ascending times, not all equal.
    fn of(arrivals: &[Nanos], replay: Replay) -> Self {
        let seconds = spread_ties(arrivals);
        let (first, last) = (seconds[0], seconds[seconds.len() - 1]);
        let mean_gap_s = (last - first) / (seconds.len() - 1) as f64;
        let times: Arc<[f64]> = seconds.iter().map(|at| 1.0 + (at - first) / mean_gap_s).collect();
        let stages: Arc<[Stage]> = if replay == Replay::Intensify {
            stages(&times).into_iter().map(|stage| Stage { seconds: stage.seconds * mean_gap_s, ..stage }).collect()
        } else {
            Arc::new([Stage { seconds: times.len() as f64 * mean_gap_s, factor: 1.0 }])
        };
        let first_s = arrivals[0].as_secs();
        Self { arrivals: times.len(), times, rate_qps: 1.0 / mean_gap_s, first_s, replay, stages, found: None }
    }

    /// The number of recorded arrivals.
    pub fn len(&self) -> usize {
        self.arrivals
    }

    /// Never: a recording has at least two arrivals.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The mean recorded rate.
    pub fn rate_qps(&self) -> f64 {
        self.rate_qps
    }

    /// The duration in seconds.
    pub fn seconds(&self) -> f64 {
        match self.has_counts_only() {
            true => self.stages.iter().map(|stage| stage.seconds).sum(),
            false => self.len() as f64 / self.rate_qps,
        }
    }

    /// The time in the clock of the recording of a moment in a run that plays it in real time, in seconds.
    pub fn clock_s(&self, seconds: f64) -> f64 {
        self.first_s + seconds - 1.0 / self.rate_qps
    }

    /// The mean rates of consecutive windows of `seconds`, in queries per second. A shorter last window counts only if it
    /// is the only one.
    pub fn rates_qps(&self, seconds: f64) -> Vec<f64> {
        let windows = ((self.seconds() / seconds) as usize).max(1);
        if self.has_counts_only() {
            let per_window = seconds.min(self.seconds()) / self.stages[0].seconds;
            let factor = |window: usize| {
                let (from, to) = (window as f64 * per_window, (window + 1) as f64 * per_window);
                let stages = self.stages.iter().enumerate().take(to.ceil() as usize).skip(from as usize);
                stages.map(|(at, stage)| stage.factor * (to.min(at as f64 + 1.0) - from.max(at as f64))).sum::<f64>()
            };
            return (0..windows).map(|window| factor(window) / per_window * self.rate_qps).collect();
        }
        let length = self.seconds().min(seconds) * self.rate_qps;
        let mut counts = vec![0_usize; windows];
        for time in self.times.iter() {
            if let Some(count) = counts.get_mut(((time - 1.0) / length) as usize) {
                *count += 1;
            }
        }
        counts.into_iter().map(|count| count as f64 / length * self.rate_qps).collect()
    }

    /// The way in which it is played.
    pub fn replay(&self) -> Replay {
        self.replay
    }

    /// The gap before arrival `i`; the recording repeats end to end, with one mean gap between.
    pub(super) fn gap(&self, i: usize) -> f64 {
        let i = i % self.len();
        self.times[i] - i.checked_sub(1).map_or(0.0, |before| self.times[before])
    }

    /// The columns of its file in words, unless they are named as in this program's files.
    pub fn found(&self) -> Option<&str> {
        self.found.as_deref()
    }

    /// Whether it has the course of the rate, and no times.
    pub(super) fn has_counts_only(&self) -> bool {
        self.times.is_empty()
    }

    /// Whether its rate varies in real time when played: it is intensified and not a Poisson process, or has counts only.
    pub(super) fn varies_in_time(&self) -> bool {
        self.stages.len() > 1
    }

    pub(super) fn stages(&self) -> &[Stage] {
        &self.stages
    }
}

/// Times in seconds; equal times are spread at random within the resolution of the clock.
fn spread_ties(arrivals: &[Nanos]) -> Vec<f64> {
    let first = arrivals[0];
    let common = arrivals.iter().fold(0, |common, at| greatest_common_divisor(common, at.since(first).0));
    let resolution = RESOLUTIONS.into_iter().find(|resolution| common % resolution == 0).unwrap_or(1) as f64 / 1e9;
    let mut random = Purpose::Ties.stream(0);
    let mut seconds = Vec::with_capacity(arrivals.len());
    for equal in arrivals.chunk_by(|a, b| a == b) {
        let at = equal[0].since(first).as_secs();
        if equal.len() == 1 {
            seconds.push(at);
            continue;
        }
        let from = seconds.len();
        seconds.extend(equal.iter().map(|_| at + (1.0 - random.unit()) * resolution));
        seconds[from..].sort_by(f64::total_cmp);
    }
    seconds
}

fn greatest_common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// Cuts arrivals of mean gap 1 into stages of constant rate with the greatest likelihood, less a penalty for each stage.
///
/// `best[j]` is the value for the first j windows: the greatest sum of `best[i]` and one stage of the windows from i on.
fn stages(times: &[f64]) -> Vec<Stage> {
    let windows = times.len().min(MOST_WINDOWS);
    let size = times.len() as f64 / windows as f64;
    let least = ((STAGE_ARRIVALS / size).ceil() as usize).min(windows);
    let edges: Vec<f64> = (0..=windows).map(|window| time_of(times, window as f64 * size)).collect();
    let lasts = |from: usize, to: usize| (edges[to] - edges[from]).max(f64::MIN_POSITIVE);
    let penalty = PENALTY + ln(windows as f64);
    let mut best = vec![f64::NEG_INFINITY; windows + 1];
    let mut begins = vec![0; windows + 1];
    best[0] = 0.0;
    for to in least..=windows {
        let likelihood = |from: usize| {
            let arrivals = (to - from) as f64 * size;
            best[from] + arrivals * ln(arrivals / lasts(from, to))
        };
        let cuts = std::iter::once(0).chain(least..=to - least);
        let found = cuts.map(|from| (likelihood(from), from)).max_by(|a, b| a.0.total_cmp(&b.0));
        let (greatest, begin) = found.unwrap_or((0.0, 0));
        (best[to], begins[to]) = (greatest - penalty, begin);
    }
    let mut stages = Vec::new();
    let mut to = windows;
    while to > 0 {
        let (from, arrivals) = (begins[to], (to - begins[to]) as f64 * size);
        stages.push(Stage { seconds: lasts(from, to), factor: arrivals / lasts(from, to) });
        to = from;
    }
    stages.reverse();
    stages
}

/// The time by which this many arrivals have come: the middle of a gap, or a proportional time.
fn time_of(times: &[f64], arrivals: f64) -> f64 {
    if arrivals <= 0.0 {
        return 0.0;
    }
    let (at, last) = (arrivals + 0.5, times.len());
    let i = (at as usize).clamp(1, last);
    if i == last { times[last - 1] } else { times[i - 1] + (at - i as f64) * (times[i] - times[i - 1]) }
}

/// Windows of a recording, drawn one after the other, without end.
#[derive(Clone, Debug)]
pub(super) struct Windows<'a> {
    recording: &'a Recording,
    random: Random,
    /// The end of the window in the recording's time; past the recording's end it wraps around.
    end: f64,
    next: usize,
    /// The time in the stream less the recording's time.
    behind: f64,
    last: f64,
}

impl<'a> Windows<'a> {
    pub(super) fn new(recording: &'a Recording, seed: u64) -> Self {
        let random = Purpose::Recording.stream(seed);
        let mut windows = Self { recording, random, end: 0.0, next: 0, behind: 0.0, last: 0.0 };
        windows.open(0.0);
        windows
    }

    /// Draws a window whose start is played at `now`.
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
            // The window may have held no arrival at all.
            self.open(self.end + self.behind);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{ArrivalProcess, Stretch, unit_arrivals};
    use super::*;

    /// Bursts of a second with 400 arrivals, and calms of nine seconds with 100.
    fn bursts(replay: Replay) -> Recording {
        let burst = |second: u32| {
            (0..500u32).map(move |i| {
                let within = if i < 400 { f64::from(i) / 400.0 } else { 1.0 + 0.09 * f64::from(i - 400) };
                10.0 * f64::from(second) + within
            })
        };
        let arrivals: Vec<Nanos> = (0..60).flat_map(burst).map(Nanos::from_secs).collect();
        Recording::of(&arrivals, replay)
    }

    /// Arrivals in seconds, at a multiple of the recorded rate.
    fn played(replay: Replay, factor: f64, n: usize) -> Vec<f64> {
        let recording = bursts(replay);
        let rate_qps = recording.rate_qps() * factor;
        let process = ArrivalProcess::Recorded(recording);
        let mut stretch = Stretch::of(&process, 3, rate_qps);
        unit_arrivals(&process, 3, n).into_iter().map(|unit| stretch.time(unit).as_secs()).collect()
    }

    /// The squared coefficient of variation of gaps, and of counts in stretches of this many seconds.
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
        let recorded = variations(&played(Replay::Compress, 1.0, 30_000), 0.1);
        assert!(recorded.0 > 2.5 && recorded.1 > 2.0, "{recorded:?}");
        for replay in [Replay::Repeat, Replay::Windows] {
            let of = variations(&played(replay, 1.0, 300_000), 0.1);
            // Windows cut a sixtieth of the gaps.
            assert!((of.0 / recorded.0 - 1.0).abs() < 0.1 && (of.1 / recorded.1 - 1.0).abs() < 0.1, "{of:?}");
        }
    }

    #[test]
    fn intensified_bursts_last_as_long_and_compressed_ones_pass() {
        let (_, recorded) = variations(&played(Replay::Compress, 1.0, 30_000), 0.1);
        let (gaps, counts) = variations(&played(Replay::Intensify, 20.0, 600_000), 0.1);
        // A fifth of the arrivals come at 11.1 a second, the others at 400, times the factor; within each stage they are
        // Poisson.
        assert!((counts / recorded - 1.0).abs() < 0.1, "{counts}, recorded {recorded}");
        assert!(gaps > 5.0, "{gaps}");
        let (gaps, counts) = variations(&played(Replay::Compress, 200.0, 600_000), 1.0);
        let (of_recorded, _) = variations(&played(Replay::Compress, 1.0, 30_000), 0.1);
        assert!((gaps / of_recorded - 1.0).abs() < 0.01, "{gaps}");
        assert!(counts < 0.01, "second by second it is as even as can be: {counts}");
    }

    /// Poisson arrivals at a rate, with timestamps of this resolution.
    fn poisson(seed: u64, rate_qps: f64, n: usize, resolution: u64) -> Recording {
        let unit = unit_arrivals(&ArrivalProcess::Poisson, seed, n);
        let at = |unit: f64| Nanos(Nanos::from_secs(unit / rate_qps).0 / resolution * resolution);
        Recording::of(&unit.into_iter().map(at).collect::<Vec<_>>(), Replay::Intensify)
    }

    /// Variance over mean of counts in windows of this many seconds.
    fn dispersion(times: &[f64], seconds: f64) -> f64 {
        let windows = (times[times.len() - 1] / seconds) as usize;
        let mut counts = vec![0.0_f64; windows + 1];
        times.iter().for_each(|time| counts[(time / seconds) as usize] += 1.0);
        counts.pop();
        let mean = counts.iter().sum::<f64>() / windows as f64;
        counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / windows as f64 / mean
    }

    #[test]
    fn a_recorded_poisson_process_intensified_is_poisson() {
        for seed in 0..6 {
            // The rate is 5 q/s; with whole-second timestamps a second has five equal ones.
            for resolution in [1000, 1_000_000_000] {
                let recording = poisson(seed, 5.0, 1500, resolution);
                assert_eq!(
                    recording.stages.len(),
                    1,
                    "seed {seed}, resolution {resolution} ns: {:?}",
                    recording.stages
                );
                let (rate_qps, process) = (40.0 * recording.rate_qps(), ArrivalProcess::Recorded(recording));
                let mut stretch = Stretch::of(&process, seed, rate_qps);
                let unit = unit_arrivals(&process, seed, 60_000);
                let times: Vec<f64> = unit.into_iter().map(|unit| stretch.time(unit).as_secs()).collect();
                for seconds in [0.1, 0.5, 2.0] {
                    // The tolerance is five standard errors of the dispersion.
                    let windows = times[times.len() - 1] / seconds;
                    let (found, error) = (dispersion(&times, seconds), (2.0 / windows).sqrt());
                    assert!((found - 1.0).abs() < 5.0 * error, "seed {seed}, windows of {seconds} s: {found}");
                }
            }
        }
    }

    #[test]
    fn a_peak_is_a_stage_of_its_height_and_length() {
        // The rate is 1 q/s for 400 s, 2.5 q/s for 60 s, then 1 q/s for 140 s, with even gaps.
        let seconds = (0..400).map(f64::from).chain((0..150).map(|i| 400.0 + f64::from(i) / 2.5));
        let seconds = seconds.chain((0..140).map(|i| 460.0 + f64::from(i)));
        let arrivals: Vec<Nanos> = seconds.map(Nanos::from_secs).collect();
        let recording = Recording::of(&arrivals, Replay::Intensify);
        let peak = recording.stages().iter().max_by(|a, b| a.factor.total_cmp(&b.factor)).unwrap();
        let rate_qps = peak.factor * recording.rate_qps();
        assert!((2.2..2.6).contains(&rate_qps) && (45.0..75.0).contains(&peak.seconds), "{:?}", recording.stages());
        let arrivals: f64 = recording.stages().iter().map(|stage| stage.seconds * stage.factor).sum();
        assert!((arrivals / recording.seconds() - 1.0).abs() < 1e-9);
    }

    #[test]
    fn ties_lie_within_the_resolution_of_their_clock() {
        let at = |us: &[u64]| us.iter().map(|&us| Nanos(us * 1000)).collect::<Vec<_>>();
        for (times, resolution) in [
            (at(&[0, 2_000_000, 2_000_000, 2_000_000, 5_000_000]), 1.0),
            (at(&[0, 60_000_000, 60_000_000, 180_000_000]), 60.0),
            (at(&[0, 1500, 1500, 7000]), 1e-4),
            (at(&[3, 5, 5, 5, 6]), 1e-6),
        ] {
            let spread = spread_ties(&times);
            assert!(spread.is_sorted_by(|a, b| a < b), "{spread:?}");
            for (spread, at) in spread.iter().zip(&times) {
                let later = spread - at.since(times[0]).as_secs();
                assert!((0.0..resolution).contains(&later), "{later} of {resolution}");
            }
        }
    }

    #[test]
    fn every_way_has_the_rate_that_is_asked_and_a_name_of_its_own() {
        for replay in Replay::ALL {
            let factor = if replay.has_own_rate() { 1.0 } else { 7.0 };
            let times = played(replay, factor, 300_000);
            assert!(times.is_sorted());
            let rate_qps = times.len() as f64 / times[times.len() - 1];
            let asked = bursts(replay).rate_qps() * factor;
            assert!((rate_qps / asked - 1.0).abs() < 0.05, "{replay:?}: {rate_qps}, asked {asked}");
        }
        let names: std::collections::HashSet<&str> = Replay::ALL.iter().map(|replay| replay.name()).collect();
        assert_eq!(names.len(), 4);
    }
}
