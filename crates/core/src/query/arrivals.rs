//! When queries arrive: one **unit-rate** sequence a seed, stretched to every rate.
//!
//! A sequence is drawn once, in units of the mean gap, and divided by the rate to get times. All rates and all policies
//! of an experiment so share the same luck, and the differences between them are due to rate and policy alone (common
//! random numbers). Which query arrives is drawn from a separate stream of the same seed.
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
//! | bursty | a two-state Markov-modulated Poisson process ([`Burstiness`]): calm, then a rush |
//! | uniform | all equal to 1: a metronome, the least variable arrivals there are |
//! | recorded | those of a file ([`Recording`]), played in one of several ways ([`Replay`]) |

use std::path::Path;

use rand_distr::Exp1;

use super::recording::{Intensified, Recording, Replay, Windows};
use crate::base::random::Random;
use crate::base::time::Nanos;
use crate::files::InputError;

/// Stream numbers of [`Random`]: arrivals and queries never share one.
const ARRIVAL_STREAM: u64 = 1;
const QUERY_STREAM: u64 = 2;

/// How gaps between arrivals are distributed.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalProcess {
    /// Independent exponential gaps.
    Poisson,
    /// Rushes and calms.
    Bursty(Burstiness),
    /// Equal gaps.
    Uniform,
    /// Those of a recording; where that is played end to end the seed chooses queries only.
    Recorded(Recording),
}

impl ArrivalProcess {
    /// What an option names: `poisson`, `bursty`, `uniform`, or else a file of recorded arrivals.
    ///
    /// Recordings are played in the way that `replay` says.
    ///
    /// # Errors
    /// Those of [`Recording::read`].
    pub fn named(name: &str, replay: Replay) -> Result<Self, InputError> {
        Ok(match name {
            "poisson" => Self::Poisson,
            "bursty" => Self::Bursty(Burstiness::default()),
            "uniform" => Self::Uniform,
            file if Path::new(file).exists() => Self::Recorded(Recording::read(Path::new(file), replay)?),
            other => {
                let message = "no such file, and none of poisson, bursty, uniform";
                return Err(InputError::file(Path::new(other), message));
            }
        })
    }

    /// The recording, if it is one.
    #[must_use]
    pub fn recording(&self) -> Option<&Recording> {
        match self {
            Self::Recorded(recording) => Some(recording),
            _ => None,
        }
    }

    /// The recording whose course of the rate is kept, if one is.
    fn intensified(&self) -> Option<&Recording> {
        self.recording().filter(|recording| recording.replay() == Replay::Intensify)
    }

    /// Whether arrivals at one rate are those at another, nearer to each other.
    #[must_use]
    pub fn stretches_evenly(&self) -> bool {
        self.intensified().is_none()
    }
}

/// A two-state Markov-modulated Poisson process with mean rate 1.
///
/// A hidden state is calm or in a rush; how long it stays is exponential. In a rush, arrivals come
/// [`ratio`](Self::ratio) times as fast. The defaults (a fifth of the time in rushes, five times the calm rate, 100
/// mean gaps long on average) give calm 0.56 and rush 2.78 times the mean rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burstiness {
    ratio: f64,
    share: f64,
    length: f64,
}

impl Default for Burstiness {
    fn default() -> Self {
        Self { ratio: 5.0, share: 0.2, length: 100.0 }
    }
}

impl Burstiness {
    /// Rushes at `ratio` times the calm rate that last for `length` mean gaps on average and take `share` of the time.
    ///
    /// `None` unless `ratio` and `length` are finite, `ratio` at least 1, `length` above 0 and `share` between 0
    /// and 1, ends excluded.
    #[must_use]
    pub fn new(ratio: f64, share: f64, length: f64) -> Option<Self> {
        let sound =
            ratio.is_finite() && ratio >= 1.0 && length.is_finite() && length > 0.0 && share > 0.0 && share < 1.0;
        sound.then_some(Self { ratio, share, length })
    }

    /// How many times faster arrivals come in a rush.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// The rate in the calm state, where the mean rate is 1.
    #[must_use]
    pub fn calm_rate(&self) -> f64 {
        1.0 / (1.0 - self.share + self.share * self.ratio)
    }
}

/// The state of a [`Burstiness`] process.
#[derive(Clone, Debug)]
struct Modulated {
    process: Burstiness,
    in_rush: bool,
    /// Time left in this state.
    left: f64,
}

impl Modulated {
    /// Starts in the long run's distribution of states.
    fn new(process: Burstiness, random: &mut Random) -> Self {
        let in_rush = random.unit() <= process.share;
        let mut modulated = Self { process, in_rush: !in_rush, left: 0.0 };
        modulated.switch(random);
        modulated
    }

    fn switch(&mut self, random: &mut Random) {
        self.in_rush = !self.in_rush;
        let Burstiness { share, length, .. } = self.process;
        let mean = if self.in_rush { length } else { length * (1.0 - share) / share };
        self.left = mean * random.draw::<f64>(&Exp1);
    }

    fn gap(&mut self, random: &mut Random) -> f64 {
        let mut gap = 0.0;
        loop {
            let rate = self.process.calm_rate() * if self.in_rush { self.process.ratio } else { 1.0 };
            let next = random.draw::<f64>(&Exp1) / rate;
            if next < self.left {
                self.left -= next;
                return gap + next;
            }
            // The state ends first. Exponential gaps have no memory, so the next state simply draws anew.
            gap += self.left;
            self.switch(random);
        }
    }
}

/// Times of arrival at a mean rate of 1, without end: ascending, in units of the mean gap, made as they are asked for.
#[derive(Clone, Debug)]
pub struct UnitTimes<'a> {
    gaps: Gaps<'a>,
    random: Random,
    time: f64,
}

/// What gaps are drawn from, and where it is.
#[derive(Clone, Debug)]
enum Gaps<'a> {
    Poisson,
    Bursty(Modulated),
    /// So many have come: a sum of ones is exact.
    Uniform,
    Recorded(&'a Recording, usize),
    Windows(Windows<'a>),
}

impl<'a> UnitTimes<'a> {
    /// The times of `process` that `seed` draws: the first comes one gap after time 0.
    #[must_use]
    pub fn of(process: &'a ArrivalProcess, seed: u64) -> Self {
        let mut random = Random::new(seed, ARRIVAL_STREAM);
        let gaps = match process {
            ArrivalProcess::Poisson => Gaps::Poisson,
            ArrivalProcess::Bursty(burstiness) => Gaps::Bursty(Modulated::new(*burstiness, &mut random)),
            ArrivalProcess::Uniform => Gaps::Uniform,
            ArrivalProcess::Recorded(recording) => match recording.replay() {
                // Its course of the rate is laid over these by `Stretch`.
                Replay::Intensify => Gaps::Poisson,
                Replay::Windows => Gaps::Windows(Windows::new(recording, seed)),
                Replay::Repeat | Replay::Compress => Gaps::Recorded(recording, 0),
            },
        };
        Self { gaps, random, time: 0.0 }
    }
}

impl Iterator for UnitTimes<'_> {
    type Item = f64;

    #[inline]
    fn next(&mut self) -> Option<f64> {
        self.time += match &mut self.gaps {
            Gaps::Poisson => self.random.draw::<f64>(&Exp1),
            Gaps::Bursty(modulated) => modulated.gap(&mut self.random),
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

/// Which query arrives each time, without end: positions below `num_rows`, uniform, with replacement.
#[derive(Clone, Debug)]
pub struct QueryDraws {
    random: Random,
    bound: u32,
}

impl QueryDraws {
    /// The positions that `seed` draws.
    ///
    /// # Panics
    /// If `num_rows` is 0 or past 2^32.
    #[must_use]
    pub fn of(seed: u64, num_rows: usize) -> Self {
        let bound = u32::try_from(num_rows).expect("fewer than 2^32 queries");
        assert!(bound > 0, "nothing to draw from");
        Self { random: Random::new(seed, QUERY_STREAM), bound }
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
/// The first comes one gap after time 0. The same `seed` gives the same times, and a longer sequence
/// begins with the shorter one.
#[must_use]
pub fn unit_arrivals(process: &ArrivalProcess, seed: u64, n: usize) -> Vec<f64> {
    UnitTimes::of(process, seed).take(n).collect()
}

/// When the arrivals of a process come at a rate, from when they come at a mean rate of 1.
#[derive(Clone, Copy, Debug)]
pub struct Stretch<'a> {
    mean_gap_us: f64,
    intensified: Option<Intensified<'a>>,
}

impl<'a> Stretch<'a> {
    /// Evenly: all gaps by the same factor.
    ///
    /// # Panics
    /// If the rate is not finite and above 0; options are checked with [`check_rate`] first.
    #[must_use]
    pub fn evenly(rate_qps: f64) -> Self {
        assert!(check_rate(rate_qps).is_ok(), "rate {rate_qps} q/s");
        Self { mean_gap_us: 1e6 / rate_qps, intensified: None }
    }

    /// As the process wants it, whose times are those that `seed` draws.
    ///
    /// # Panics
    /// As [`evenly`](Self::evenly).
    #[must_use]
    pub fn of(process: &'a ArrivalProcess, seed: u64, rate_qps: f64) -> Self {
        let intensified = process.intensified().map(|recording| Intensified::of(recording, seed, rate_qps));
        Self { intensified, ..Self::evenly(rate_qps) }
    }

    /// The time of what comes at `unit` mean gaps.
    #[inline]
    #[must_use]
    pub fn time(&self, unit: f64) -> Nanos {
        match &self.intensified {
            None => Nanos::from_us(unit * self.mean_gap_us),
            Some(intensified) => Nanos::from_secs(intensified.seconds(unit)),
        }
    }
}

/// Whether arrivals can come at `rate_qps` queries a second: finite and above 0.
///
/// # Errors
/// What is wrong with it.
pub fn check_rate(rate_qps: f64) -> Result<f64, String> {
    if rate_qps.is_finite() && rate_qps > 0.0 {
        Ok(rate_qps)
    } else {
        Err(format!("rate is {rate_qps}, expected a number of queries a second above 0"))
    }
}

/// Which query arrives each time: `n` positions below `num_rows`, uniform, with replacement.
///
/// # Panics
/// If `num_rows` is 0 or past 2^32.
#[must_use]
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
        // Five standard errors: the gap's is 1 / sqrt(N), its variance's sqrt(8 / N).
        assert!((mean - 1.0).abs() < 0.012, "{mean}");
        assert!((variation - 1.0).abs() < 0.032, "{variation}");
    }

    #[test]
    fn bursty_gaps_have_mean_one_and_vary_more() {
        // With slow switching 0.56 of the arrivals come at rate 2.78 and 0.44 at 0.56, so E gap² = Σ share · 2 / rate²
        // = 3.02, and the squared coefficient of variation is 2.02.
        let means: Vec<f64> =
            (0..5).map(|seed| moments(&ArrivalProcess::Bursty(Burstiness::default()), seed).0).collect();
        let mean = means.iter().sum::<f64>() / 5.0;
        assert!((mean - 1.0).abs() < 0.03, "{means:?}");
        let (_, variation) = moments(&ArrivalProcess::Bursty(Burstiness::default()), 0);
        assert!((1.8..2.2).contains(&variation), "{variation}");
        assert_eq!(Burstiness::new(0.5, 0.2, 1.0), None);
        assert_eq!(Burstiness::new(2.0, f64::NAN, 1.0), None);
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
        let at_rate = |rate_qps| unit.iter().map(move |&time| Stretch::evenly(rate_qps).time(time));
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
            ("time\n5\n4\n", "r.csv:1:1: the header lacks `arrival_us` or `arrival_s`"),
            ("arrival_s,arrival_us\n5,4\n", "r.csv:1:1: both"),
        ] {
            std::fs::write(&path, text).unwrap();
            let message = Recording::read(&path, Replay::Compress).unwrap_err().to_string();
            assert!(message.contains(expected), "{message}");
        }
    }
}
