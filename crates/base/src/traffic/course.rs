//! The course of a rate in time: stages of constant rate, with Poisson arrivals.
//!
//! A Poisson process of varying rate is one of rate 1 whose time is stretched where the rate is low:
//!
//! ```text
//! rate 1        | ||  | |   ||  |  |||  | |  ||
//! rate          ▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁▁███████▁▁▁▁▁▁▁▁▁▁▁▁▁▁
//! arrivals      |  | |     |    |||||||||   |    | |
//! ```

use super::recording::{Recording, Stage};
use crate::base::random::{Purpose, Random};
use rand_distr::Exp1;

/// A two-state Markov-modulated Poisson process.
///
/// The hidden state is calm or burst, each for an exponential time. In a burst, arrivals come [`ratio`](Self::ratio)
/// times as fast. By default bursts last 0.2 s on average, a fifth of the time, at five times the calm rate: calm has
/// 0.56 and burst 2.78 times the mean rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Burstiness {
    ratio: f64,
    share: f64,
    seconds: f64,
}

impl Default for Burstiness {
    fn default() -> Self {
        Self { ratio: 5.0, share: 0.2, seconds: 0.2 }
    }
}

impl Burstiness {
    /// Bursts at `ratio` times the calm rate that last for `seconds` on average and take `share` of the time.
    ///
    /// `None` unless `ratio` and `seconds` are finite, `ratio` at least 1, `seconds` above 0 and `share` strictly between
    /// 0 and 1.
    pub fn new(ratio: f64, share: f64, seconds: f64) -> Option<Self> {
        let sound =
            ratio.is_finite() && ratio >= 1.0 && seconds.is_finite() && seconds > 0.0 && share > 0.0 && share < 1.0;
        sound.then_some(Self { ratio, share, seconds })
    }

    /// The rate in a burst over the calm rate.
    pub fn ratio(&self) -> f64 {
        self.ratio
    }

    /// The share of time spent in bursts.
    pub fn share(&self) -> f64 {
        self.share
    }

    /// The mean duration of a burst.
    pub fn seconds(&self) -> f64 {
        self.seconds
    }

    /// The mean duration of a burst and the calm after it.
    pub fn cycle_seconds(&self) -> f64 {
        self.seconds / self.share
    }

    /// The rate in the calm state, for a mean rate of 1.
    pub fn calm_rate(&self) -> f64 {
        1.0 / (1.0 - self.share + self.share * self.ratio)
    }
}

/// The course of a rate for a mean rate, followed forwards in time.
#[derive(Clone, Debug)]
pub(super) struct Course<'a> {
    stages: Stages<'a>,
    rate_qps: f64,
    now: Stage,
    began_s: f64,
    /// Arrivals until the stage's start and until its end, over the mean rate.
    before: f64,
    after: f64,
}

/// The endless source of stages.
#[derive(Clone, Debug)]
enum Stages<'a> {
    /// The stages of a recording, end to end, with the index of the next one.
    Recorded(&'a [Stage], usize),
    /// Alternating bursts and calms.
    Bursts { process: Burstiness, in_burst: bool, random: Random },
}

impl<'a> Course<'a> {
    /// The course of a recording at a rate: from its start if it is repeated, else from a start that depends on `seed`.
    pub(super) fn of_recording(recording: &'a Recording, seed: u64, rate_qps: f64) -> Self {
        let stages = recording.stages();
        let start = if recording.replay().has_own_rate() { 0.0 } else { Purpose::Recording.stream(seed).unit() };
        let mut skipped = start * recording.seconds();
        let mut first = 0;
        let arrivals = |stage: &Stage| stage.seconds * stage.factor;
        while first + 1 < stages.len() && skipped >= arrivals(&stages[first]) {
            skipped -= arrivals(&stages[first]);
            first += 1;
        }
        let left = stages[first].seconds - skipped.min(arrivals(&stages[first])) / stages[first].factor;
        let now = Stage { seconds: left, ..stages[first] };
        Self::from_stage(now, Stages::Recorded(stages, first + 1), rate_qps)
    }

    /// Bursts and calms drawn from `seed`, in stationary distribution.
    pub(super) fn of_bursts(process: Burstiness, seed: u64, rate_qps: f64) -> Self {
        let mut random = Purpose::Bursts.stream(seed);
        let in_burst = random.unit() > process.share();
        let mut stages = Stages::Bursts { process, in_burst, random };
        Self::from_stage(stages.next(), stages, rate_qps)
    }

    fn from_stage(now: Stage, stages: Stages<'a>, rate_qps: f64) -> Self {
        Self { stages, rate_qps, now, began_s: 0.0, before: 0.0, after: now.seconds * now.factor }
    }

    /// The time in seconds of `unit` in a stream of rate 1; `unit` must never descend.
    #[inline]
    pub(super) fn seconds(&mut self, unit: f64) -> f64 {
        let arrivals = unit / self.rate_qps;
        while arrivals > self.after {
            self.began_s += self.now.seconds;
            self.before = self.after;
            self.now = self.stages.next();
            self.after += self.now.seconds * self.now.factor;
        }
        self.began_s + (arrivals - self.before) / self.now.factor
    }
}

impl Stages<'_> {
    fn next(&mut self) -> Stage {
        match self {
            Self::Recorded(stages, next) => {
                let stage = stages[*next % stages.len()];
                *next = (*next + 1) % stages.len();
                stage
            }
            Self::Bursts { process, in_burst, random } => {
                *in_burst = !*in_burst;
                let mean = if *in_burst { process.seconds() } else { process.cycle_seconds() - process.seconds() };
                let factor = process.calm_rate() * if *in_burst { process.ratio() } else { 1.0 };
                Stage { seconds: mean * random.draw::<f64>(&Exp1), factor }
            }
        }
    }
}
