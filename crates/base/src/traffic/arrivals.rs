//! Times of arrival: one **unit-rate** sequence for each seed, stretched to every rate.
//!
//! A sequence is drawn once, in units of the mean gap, and divided by the rate to get times. All rates and policies of an
//! experiment therefore share all random draws, and differences between them are due to rate and policy alone (common
//! random numbers). The query of each arrival comes from a separate stream of the seed.
//!
//! ```text
//! unit rate      |--|----|-|-|------|--|         mean gap 1
//! 500 q/s        |--|----|-|-|------|--|         mean gap 2 ms
//! 1000 q/s       |-|--||-|---|-|                 mean gap 1 ms
//! ```
//!
//! | process | gaps |
//! | --- | --- |
//! | Poisson | independent, exponential: many independent users |
//! | bursty | a two-state Markov-modulated Poisson process ([`Burstiness`]): calm, then a burst |
//! | uniform | all equal to 1: a metronome, the least variable arrivals there are |
//! | recorded | those of a file ([`Recording`]), played in one of several ways ([`Replay`]) |
//!
//! Bursts last for seconds, at any rate. [`Stretch`] applies their course, or that of an intensified recording, to
//! Poisson arrivals of the unit rate.

use std::fmt;
use std::path::Path;

use rand_distr::Exp1;

use super::course::{Burstiness, Course};

use super::recording::{Recording, Replay, Windows};
use super::shipped;
use crate::base::random::{Purpose, Random};
use crate::base::stats::significant;
use crate::base::time::Nanos;
use crate::files::InputError;

/// The distribution of gaps between arrivals.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalProcess {
    /// Independent exponential gaps.
    Poisson,
    /// Bursts and calms.
    Bursty(Burstiness),
    /// Equal gaps.
    Uniform,
    /// The gaps of a recording. If that is played end to end, the seed only chooses queries.
    Recorded(Recording),
}

impl ArrivalProcess {
    /// The process that an option names: `poisson`, `bursty`, `uniform`, or else recorded arrivals: a file, or a shipped trace.
    ///
    /// `replay` chooses how recordings are played. Fails as [`Recording::read`] does.
    pub fn named(name: &str, replay: Replay) -> Result<Self, InputError> {
        Ok(match name {
            "poisson" => Self::Poisson,
            "bursty" => Self::Bursty(Burstiness::default()),
            "uniform" => Self::Uniform,
            file if Path::new(file).exists() => Self::Recorded(Recording::read(Path::new(file), replay)?),
            other => match shipped::trace(other) {
                Some(trace) => Self::Recorded(Recording::parse(Path::new(other), trace?, replay)?),
                None => {
                    let traces = shipped::trace_names().collect::<Vec<_>>().join(", ");
                    let message = format!("no such file, and none of poisson, bursty, uniform, {traces}");
                    return Err(InputError::file(Path::new(other), message));
                }
            },
        })
    }

    /// The name of its kind.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Poisson => "poisson",
            Self::Bursty(_) => "bursty",
            Self::Uniform => "uniform",
            Self::Recorded(_) => "recorded",
        }
    }

    /// The recording, if the process is one.
    pub fn recording(&self) -> Option<&Recording> {
        match self {
            Self::Recorded(recording) => Some(recording),
            _ => None,
        }
    }

    /// The course of the rate in real time, if the process has one.
    fn course(&self, seed: u64, rate_qps: f64) -> Option<Course<'_>> {
        match self {
            Self::Bursty(process) => Some(Course::of_bursts(*process, seed, rate_qps)),
            Self::Recorded(recording) if recording.varies_in_time() => {
                Some(Course::of_recording(recording, seed, rate_qps))
            }
            _ => None,
        }
    }

    /// The time after which arrivals are typical, which is the least length of a simulated run. `None` if any run is
    /// typical.
    pub fn time_scale(&self) -> Option<TimeScale> {
        match self {
            Self::Poisson | Self::Uniform => None,
            Self::Bursty(process) => Some(TimeScale::Seconds(BURST_CYCLES * process.cycle_seconds())),
            Self::Recorded(recording) if recording.varies_in_time() => Some(TimeScale::Seconds(recording.seconds())),
            Self::Recorded(recording) if recording.replay() == Replay::Intensify => None,
            Self::Recorded(recording) => Some(TimeScale::Arrivals(recording.len())),
        }
    }
}

/// Cycles of bursts and calms that make a run typical.
const BURST_CYCLES: f64 = 20.0;

/// The duration of the slowest change in arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TimeScale {
    /// Seconds, at any rate.
    Seconds(f64),
    /// A number of arrivals, at any rate.
    Arrivals(usize),
}

impl fmt::Display for TimeScale {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Seconds(seconds) => write!(f, "{} s", significant(*seconds, 4)),
            Self::Arrivals(arrivals) => write!(f, "{arrivals} arrivals"),
        }
    }
}

impl TimeScale {
    /// The arrivals in this time at a rate.
    pub fn arrivals(self, rate_qps: f64) -> f64 {
        match self {
            Self::Seconds(seconds) => seconds * rate_qps,
            Self::Arrivals(arrivals) => arrivals as f64,
        }
    }

    /// The length of a run, by its arrivals and rate, as a share of this time; at most 1.
    pub fn covered_share(self, arrivals: usize, rate_qps: f64) -> f64 {
        (arrivals as f64 / self.arrivals(rate_qps)).min(1.0)
    }
}

/// Times of arrival at a mean rate of 1, without end: ascending, in units of the mean gap, computed on demand.
#[derive(Clone, Debug)]
pub struct UnitTimes<'a> {
    gaps: Gaps<'a>,
    random: Random,
    time: f64,
}

#[derive(Clone, Debug)]
enum Gaps<'a> {
    Poisson,
    /// Counts the arrivals so far; a sum of ones is exact.
    Uniform,
    Recorded(&'a Recording, usize),
    Windows(Windows<'a>),
}

impl<'a> UnitTimes<'a> {
    /// The times of `process` for `seed`; the first arrival comes one gap after time 0.
    pub fn of(process: &'a ArrivalProcess, seed: u64) -> Self {
        let gaps = match process {
            // [`Stretch`] applies the course of the rate to these gaps.
            ArrivalProcess::Poisson | ArrivalProcess::Bursty(_) => Gaps::Poisson,
            ArrivalProcess::Recorded(recording) if recording.has_counts_only() => Gaps::Poisson,
            ArrivalProcess::Uniform => Gaps::Uniform,
            ArrivalProcess::Recorded(recording) => match recording.replay() {
                Replay::Intensify => Gaps::Poisson,
                Replay::Windows => Gaps::Windows(Windows::new(recording, seed)),
                Replay::Repeat | Replay::Compress => Gaps::Recorded(recording, 0),
            },
        };
        Self { gaps, random: Purpose::Arrivals.stream(seed), time: 0.0 }
    }
}

impl Iterator for UnitTimes<'_> {
    type Item = f64;

    #[inline]
    fn next(&mut self) -> Option<f64> {
        self.time += match &mut self.gaps {
            Gaps::Poisson => self.random.draw::<f64>(&Exp1),
            Gaps::Uniform => 1.0,
            Gaps::Recorded(recording, next) => {
                *next += 1;
                recording.gap(*next - 1)
            }
            Gaps::Windows(windows) => windows.gap(),
        };
        Some(self.time)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

/// The query of each arrival, without end: positions below `num_rows`, uniform, with replacement.
#[derive(Clone, Debug)]
pub struct QueryDraws {
    random: Random,
    bound: u32,
}

impl QueryDraws {
    /// The positions for `seed`. Panics if `num_rows` is 0 or past 2^32.
    pub fn of(seed: u64, num_rows: usize) -> Self {
        let bound = u32::try_from(num_rows).expect("fewer than 2^32 queries");
        assert!(bound > 0, "nothing to draw from");
        Self { random: Purpose::Queries.stream(seed), bound }
    }
}

impl Iterator for QueryDraws {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        Some(self.random.below(self.bound))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (usize::MAX, None)
    }
}

/// The first `n` arrivals of `process` at a mean rate of 1: ascending times in units of the mean gap.
///
/// The first comes one gap after time 0. A `seed` always gives equal times, and a longer sequence begins with the shorter
/// one.
pub fn unit_arrivals(process: &ArrivalProcess, seed: u64, n: usize) -> Vec<f64> {
    UnitTimes::of(process, seed).take(n).collect()
}

/// Maps times of arrival at a mean rate of 1 to times at another rate.
#[derive(Clone, Debug)]
pub struct Stretch<'a> {
    mean_gap_us: f64,
    course: Option<Course<'a>>,
}

impl<'a> Stretch<'a> {
    /// Multiplies all gaps by one factor. Panics if the rate is not finite and above 0; options are checked with
    /// [`check_rate`] first.
    pub fn evenly(rate_qps: f64) -> Self {
        assert!(check_rate(rate_qps).is_ok(), "rate {rate_qps} q/s");
        Self { mean_gap_us: 1e6 / rate_qps, course: None }
    }

    /// Stretches as the process requires, with the random course of `seed`. Panics: as [`evenly`](Self::evenly).
    pub fn of(process: &'a ArrivalProcess, seed: u64, rate_qps: f64) -> Self {
        Self { course: process.course(seed, rate_qps), ..Self::evenly(rate_qps) }
    }

    /// The time at this rate of `unit` mean gaps; `unit` must not be less than in earlier calls.
    #[inline]
    pub fn time(&mut self, unit: f64) -> Nanos {
        match &mut self.course {
            None => Nanos::from_us(unit * self.mean_gap_us),
            Some(course) => Nanos::from_secs(course.seconds(unit)),
        }
    }
}

/// Checks that a rate is finite and above 0. Fails with the problem, in words.
pub fn check_rate(rate_qps: f64) -> Result<f64, String> {
    if rate_qps.is_finite() && rate_qps > 0.0 {
        Ok(rate_qps)
    } else {
        Err(format!("rate is {rate_qps}, expected a number of queries per second above 0"))
    }
}

/// The query of each of `n` arrivals: positions below `num_rows`, uniform, with replacement. Panics if `num_rows` is 0
/// or past 2^32.
pub fn draw_queries(seed: u64, n: usize, num_rows: usize) -> Vec<u32> {
    QueryDraws::of(seed, num_rows).take(n).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const N: usize = 200_000;

    fn moments(process: &ArrivalProcess, seed: u64) -> (f64, f64) {
        let times = unit_arrivals(process, seed, N);
        let mean = times[N - 1] / N as f64;
        let square = std::iter::once(times[0])
            .chain(times.windows(2).map(|pair| pair[1] - pair[0]))
            .map(|gap| (gap - mean).powi(2))
            .sum::<f64>();
        (mean, square / N as f64 / mean.powi(2))
    }

    #[test]
    fn poisson_gaps_have_mean_and_variance_one() {
        let (mean, variation) = moments(&ArrivalProcess::Poisson, 5);
        // The tolerance is five standard errors: 1 / sqrt(N) for the gap, sqrt(8 / N) for its variance.
        assert!((mean - 1.0).abs() < 0.012, "{mean}");
        assert!((variation - 1.0).abs() < 0.032, "{variation}");
    }

    fn at_rate(process: &ArrivalProcess, seed: u64, rate_qps: f64, n: usize) -> Vec<f64> {
        let mut stretch = Stretch::of(process, seed, rate_qps);
        UnitTimes::of(process, seed).take(n).map(|unit| stretch.time(unit).as_secs()).collect()
    }

    #[test]
    fn bursts_last_as_long_at_any_rate_and_come_as_often() {
        let process = Burstiness::new(5.0, 0.2, 0.5).unwrap();
        assert_eq!((process.cycle_seconds(), process.calm_rate()), (2.5, 1.0 / 1.8));
        let process = ArrivalProcess::Bursty(process);
        assert_eq!(process.time_scale(), Some(TimeScale::Seconds(50.0)));
        for rate_qps in [1000.0, 4000.0] {
            let times = at_rate(&process, 3, rate_qps, (1000.0 * rate_qps) as usize);
            let seconds = times[times.len() - 1];
            // In 400 cycles, bursts and calms deviate as much as they last: the mean rate deviates by 8 %.
            assert!((seconds / 1000.0 - 1.0).abs() < 0.25, "{seconds} s");
            let mut counts = vec![0.0; (seconds / 0.05) as usize + 1];
            times.iter().for_each(|time| counts[(time / 0.05) as usize] += 1.0 / (0.05 * rate_qps));
            // The threshold is between 0.56 and 2.78 times the mean rate.
            let busy: Vec<bool> = counts.iter().map(|&count| count > 1.67).collect();
            let share = busy.iter().filter(|&&busy| busy).count() as f64 / busy.len() as f64;
            let begins = busy.windows(2).filter(|pair| pair[1] && !pair[0]).count() as f64;
            assert!((share - 0.2).abs() < 0.05, "{share} of the time");
            assert!((begins / (seconds / 2.5) - 1.0).abs() < 0.25, "{begins} bursts");
        }
        assert_eq!(Burstiness::new(0.5, 0.2, 1.0), None);
        assert_eq!(Burstiness::new(2.0, f64::NAN, 1.0), None);
    }

    #[test]
    fn a_run_covers_seconds_or_arrivals() {
        let scale = TimeScale::Seconds(600.0);
        assert_eq!((scale.arrivals(50.0), scale.covered_share(15_000, 50.0)), (30_000.0, 0.5));
        assert_eq!(scale.covered_share(90_000, 50.0), 1.0);
        assert_eq!(TimeScale::Arrivals(100).covered_share(25, 7.0), 0.25);
        assert_eq!(ArrivalProcess::Poisson.time_scale(), None);
    }

    #[test]
    fn a_longer_sequence_begins_with_the_shorter_and_seeds_differ() {
        for process in [ArrivalProcess::Poisson, ArrivalProcess::Bursty(Burstiness::default())] {
            let long = unit_arrivals(&process, 1, 1000);
            assert_eq!(long[..100], unit_arrivals(&process, 1, 100));
            assert_ne!(long, unit_arrivals(&process, 2, 1000));
            assert!(long.is_sorted());
        }
        assert_eq!(draw_queries(1, 1000, 7)[..10], draw_queries(1, 10, 7));
    }

    #[test]
    fn rates_stretch_one_sequence() {
        let unit = unit_arrivals(&ArrivalProcess::Poisson, 9, 100);
        let at_rate = |rate_qps: f64| unit.iter().map(move |&time| Stretch::evenly(rate_qps).time(time));
        let (slow, fast): (Vec<_>, Vec<_>) = (at_rate(10.0).collect(), at_rate(1000.0).collect());
        for (slow, fast) in slow.iter().zip(&fast) {
            assert!((slow.0 as f64 / 100.0 - fast.0 as f64).abs() <= 0.51, "{slow:?} {fast:?}");
        }
        assert!(check_rate(0.0).is_err() && check_rate(f64::INFINITY).is_err() && check_rate(-1.0).is_err());
    }

    #[test]
    fn a_recording_repeats_end_to_end_with_one_mean_gap_between() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.csv");
        std::fs::write(&path, "size,arrival_s\n1,10\n1,11\n1,14\n").unwrap();
        let process = ArrivalProcess::named(path.to_str().unwrap(), Replay::Compress).unwrap();
        assert_eq!(unit_arrivals(&process, 0, 7), [1.0, 1.5, 3.0, 4.0, 4.5, 6.0, 7.0]);
        let ArrivalProcess::Recorded(recording) = process else { panic!("not a recording") };
        assert_eq!((recording.len(), recording.rate_qps()), (3, 0.5));
    }

    #[test]
    fn recordings_that_have_no_rate_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("r.csv");
        for (text, expected) in [
            ("arrival_s\n5\n", "r.csv:2: holds one arrival"),
            ("arrival_s\n5\n5\n", "r.csv:3: all 2 arrivals are at the same time"),
            ("arrival_s\n5\n4\n", "r.csv:3:1: arrivals go backwards: 4 s after 5 s (sort by arrival_s)"),
            ("time\n5\n4\n", "r.csv:3:1: arrivals go backwards: 4 after 5 (sort by time)"),
            ("size\n5\n4\n", "r.csv:1:1: no times in `size`: recorded arrivals need a column of them"),
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Recording::read(&path, Replay::Compress).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
