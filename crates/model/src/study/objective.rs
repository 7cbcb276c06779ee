//! The objective of a capacity: all commands share this definition.
//!
//! ```text
//!   bound                  a query is late after                          late queries allowed of n
//!   no-miss                the deadline                                   none
//!   miss-share <= x        the deadline                                   ⌊x n⌋
//!   pN <= y ms             y ms                                           ⌊(1 − N / 100) n⌋: the nearest rank is not late
//!   tail                   the larger of ten deadlines and twice p99.9    ⌊n / 1000⌋
//!                          at a tenth of the rate
//! ```
//!
//! An objective has one bound or several, as in `p99=50,p99.9=500`, or `interactive:p99=50,batch:p95=2000` by priority. Each of them limits a *count* and needs no quantile. A
//! judge counts late queries exactly, and may give up as soon as there are too many. With priorities, each bound that names none must
//! hold for the queries of each priority. A rate is *sustained* if its runs meet the objective and are
//! [stationary](Verdict::unsteady), because a longer run would fail otherwise.
//!
//! The default objective is p99 within the deadline, and `tail`. Without the second bound, a policy could let 1 % of the
//! queries starve. Runs with fewer than 5,000 queries do not test it.
//!
//! The limit for no miss at all depends on the length of the run: the longest delay of twice as many queries is longer.
//! Reports therefore add the number of queries to it.

use std::fmt;

use crate::base::stats::significant;
use crate::base::time::Nanos;
use crate::traffic::Priorities;

/// Most bounds of an objective.
pub(super) const MOST_BOUNDS: usize = 4;
/// A bound after the first one is tested in runs that allow this number of late queries.
const LEAST_ALLOWED: usize = 5;
/// The limit of the tail: multiples of the deadline, and of the value at a tenth of the rate.
const TAIL_LIMIT: (u64, u64) = (10, 2);

/// A limit for the delays of a run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bound {
    /// No query is later than its deadline.
    NoMiss,
    /// At most this share of the queries is later than its deadline.
    MissShare(f64),
    /// This share of the queries finishes within a time.
    Percentile {
        /// The share, between 0 and 1 exclusive: 0.99 for p99.
        share: f64,
        /// The time limit; `None` for the deadline.
        within: Option<Nanos>,
    },
    /// p99.9 is within the larger of ten deadlines and twice its value at a tenth of the rate.
    Tail,
}

/// The requirement on the delays of a run: some bounds, which must all hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Objective {
    /// The first bound is always there. The others follow without gaps.
    bounds: [Option<Bound>; MOST_BOUNDS],
    /// The priority whose queries a bound is about; `None` for all.
    of: [Option<OfPriority>; MOST_BOUNDS],
}

/// The name of a priority, in place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct OfPriority {
    bytes: [u8; 32],
    len: usize,
}

impl OfPriority {
    fn new(name: &str) -> Option<Self> {
        let mut bytes = [0; 32];
        bytes.get_mut(..name.len()).filter(|place| !place.is_empty())?.copy_from_slice(name.as_bytes());
        Some(Self { bytes, len: name.len() })
    }

    fn name(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

impl Default for Objective {
    /// p99 within the deadline, and the tail.
    fn default() -> Self {
        Self { bounds: [Some(Bound::P99), Some(Bound::Tail), None, None], of: [None; MOST_BOUNDS] }
    }
}

impl From<Bound> for Objective {
    fn from(bound: Bound) -> Self {
        Self { bounds: [Some(bound), None, None, None], of: [None; MOST_BOUNDS] }
    }
}

impl Objective {
    /// Parses bounds: `no-miss`, `miss-share=0.01`, `p99`, `p99.9=20` (milliseconds), `tail`, or several of them, as
    /// `p99=50,p99.9=500`; `<=` may replace `=`. A bound may name its priority, as `interactive:p99=50`.
    ///
    /// # Errors
    /// A text that says which forms are expected.
    pub fn from_text(text: &str) -> Result<Self, String> {
        let (mut bounds, mut of) = ([None; MOST_BOUNDS], [None; MOST_BOUNDS]);
        for (i, bound) in text.split(',').enumerate() {
            let place = bounds.get_mut(i).ok_or_else(|| format!("{text:?}: expected at most {MOST_BOUNDS} bounds"))?;
            let (priority, bound) = bound.split_once(':').map_or((None, bound), |(name, bound)| (Some(name), bound));
            let too_long = || format!("{text:?}: a priority has a name of 1 to 32 bytes");
            of[i] = priority.map(|name| OfPriority::new(name.trim()).ok_or_else(too_long)).transpose()?;
            *place = Some(Bound::from_text(bound)?);
        }
        if bounds.contains(&Some(Bound::NoMiss)) && bounds[1].is_some() {
            return Err(format!("{text:?}: no-miss includes every other bound"));
        }
        Ok(Self { bounds, of })
    }

    /// Whether the bound at this place is about the queries of a priority.
    pub(super) fn is_about(&self, place: usize, priority: &str) -> bool {
        self.of[place].is_none_or(|of| of.name() == priority)
    }

    /// Checks that each named priority is one of these.
    ///
    /// # Errors
    /// A text that names the first one that is not.
    pub fn check_priorities(&self, priorities: Option<&Priorities>) -> Result<(), String> {
        let names = || priorities.into_iter().flat_map(Priorities::levels).map(|level| level.name.as_str());
        let unknown = self.of.iter().flatten().find(|of| !names().any(|name| name == of.name()));
        unknown.map_or(Ok(()), |of| match names().collect::<Vec<_>>() {
            known if known.is_empty() => Err(format!("{}: there are no priorities (--priority)", of.name())),
            known => Err(format!("{}: no such priority, expected {}", of.name(), known.join(", "))),
        })
    }

    /// Its bounds, in order.
    pub fn bounds(&self) -> impl Iterator<Item = Bound> + use<> {
        self.bounds.into_iter().flatten()
    }

    /// The objective with each time of its own changed by `change`; deadlines are not.
    #[must_use]
    pub fn with_times(self, change: impl Fn(Nanos) -> Nanos) -> Self {
        let changed = |bound| match bound {
            Bound::Percentile { share, within: Some(within) } => {
                Bound::Percentile { share, within: Some(change(within)) }
            }
            bound => bound,
        };
        Self { bounds: self.bounds.map(|bound| bound.map(&changed)), ..self }
    }

    /// The criterion for this deadline. Its tail is within ten deadlines until [the value at a tenth of the
    /// rate](Criterion::p999_at_a_tenth) is known.
    #[must_use]
    pub fn within(self, deadline: Nanos) -> Criterion {
        let mut criterion = Criterion { objective: self, deadline, limit: deadline, p999_at_a_tenth: None };
        criterion.limit = criterion.bounds().next().map_or(deadline, |(_, limit)| limit);
        criterion
    }
}

impl Bound {
    /// p99 within the deadline.
    const P99: Self = Self::Percentile { share: 0.99, within: None };
    /// Shares below this would need runs of more than a hundred million queries.
    const LEAST_SHARE: f64 = 1e-6;

    fn from_text(text: &str) -> Result<Self, String> {
        let (name, value) = match text.split_once('=') {
            Some((name, value)) => (name.trim_end_matches('<').trim(), Some(value.trim())),
            None => (text.trim(), None),
        };
        let number = |value: &str| {
            let value = value.strip_suffix("ms").unwrap_or(value).trim();
            value.parse::<f64>().map_err(|_| format!("{value:?} is not a number"))
        };
        match (name, value) {
            ("no-miss", None) => Ok(Self::NoMiss),
            ("tail", None) => Ok(Self::Tail),
            ("miss-share", Some(share)) => Self::miss_share(number(share)?),
            (name, value) => {
                let percent = name.strip_prefix('p').and_then(|percent| percent.parse::<f64>().ok());
                let expected =
                    || format!("{text:?}: expected no-miss, miss-share=0.01, p99, p99=20 (milliseconds) or tail");
                let percent = percent.ok_or_else(expected)?;
                Self::percentile(percent, value.map(number).transpose()?)
            }
        }
    }

    fn miss_share(share: f64) -> Result<Self, String> {
        if (Self::LEAST_SHARE..=0.5).contains(&share) {
            Ok(Self::MissShare(share))
        } else {
            let instead = if share == 0.0 { " (no miss at all is --objective no-miss)" } else { "" };
            Err(format!("share {share}, expected {} to 0.5{instead}", Self::LEAST_SHARE))
        }
    }

    fn percentile(percent: f64, within_ms: Option<f64>) -> Result<Self, String> {
        let most = 100.0 * (1.0 - Self::LEAST_SHARE);
        if !(50.0..=most).contains(&percent) {
            // Tables name the column of p99.9 `p999`.
            let digits = percent.to_string();
            let instead = match digits.split_at_checked(2) {
                Some((whole, rest)) if percent > 100.0 && digits.starts_with("99") && !digits.contains('.') => {
                    format!(": write p{whole}.{rest}")
                }
                _ if percent >= 100.0 => String::from(": for all queries in time write no-miss"),
                _ => String::new(),
            };
            return Err(format!("p{percent}, expected p50 to p{most}{instead}"));
        }
        let within = within_ms.map(Nanos::from_ms);
        if within == Some(Nanos::ZERO) || within_ms.is_some_and(|ms| !ms.is_finite()) {
            return Err(format!("p{percent} within {} ms, expected more than 0", within_ms.unwrap_or_default()));
        }
        Ok(Self::Percentile { share: percent / 100.0, within })
    }

    /// The share of the queries that may be late.
    #[must_use]
    pub fn late_share(self) -> f64 {
        match self {
            Self::NoMiss => 0.0,
            Self::MissShare(share) => share,
            // Rounding removes the error of doubles: 0.001 for p99.9.
            Self::Percentile { share, .. } => significant(1.0 - share, 9),
            Self::Tail => 0.001,
        }
    }

    /// The number of `queries` that may be late. For a percentile, its nearest rank is then not late.
    #[must_use]
    pub fn allowed(self, queries: usize) -> usize {
        significant(self.late_share() * queries as f64, 12).floor() as usize
    }
}

/// An objective with a deadline: the criterion that judges runs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Criterion {
    /// The objective.
    pub objective: Objective,
    /// Delay after which a query has missed.
    pub deadline: Nanos,
    /// Delay after which a query is late under the first bound: the deadline, unless the bound has its own time.
    pub limit: Nanos,
    /// p99.9 at a tenth of the rate, once it is known.
    pub p999_at_a_tenth: Option<Nanos>,
}

impl Criterion {
    /// The bounds, each with the delay after which a query is late.
    pub fn bounds(&self) -> impl Iterator<Item = (Bound, Nanos)> + use<> {
        let criterion = *self;
        self.objective.bounds().map(move |bound| (bound, criterion.limit_of(bound, criterion.deadline)))
    }

    /// The delay after which a query with this deadline is late under a bound.
    #[must_use]
    pub fn limit_of(&self, bound: Bound, deadline: Nanos) -> Nanos {
        let (deadlines, idle) = TAIL_LIMIT;
        match bound {
            Bound::NoMiss | Bound::MissShare(_) | Bound::Percentile { within: None, .. } => deadline,
            Bound::Percentile { within: Some(within), .. } => within,
            Bound::Tail => {
                let slowest = self.p999_at_a_tenth.unwrap_or_default().0.saturating_mul(idle);
                Nanos(deadline.0.saturating_mul(deadlines).max(slowest))
            }
        }
    }

    /// Whether its tail is limited by twice the value at a tenth of the rate, and not by ten deadlines.
    #[must_use]
    pub fn tail_is_of_idle(&self) -> bool {
        let ten_deadlines = Self { p999_at_a_tenth: None, ..*self }.limit_of(Bound::Tail, self.deadline);
        self.has_tail() && self.limit_of(Bound::Tail, self.deadline) > ten_deadlines
    }

    /// Whether one of its bounds depends on [the value at a tenth of the rate](Self::p999_at_a_tenth).
    #[must_use]
    pub fn has_tail(&self) -> bool {
        self.objective.bounds().any(|bound| bound == Bound::Tail)
    }

    /// The share of the queries that may be late under the first bound.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        self.objective.bounds().next().map_or(0.0, Bound::late_share)
    }

    /// The number of `queries` that may be late under the first bound.
    #[must_use]
    pub fn allowed(&self, queries: usize) -> usize {
        self.objective.bounds().next().map_or(0, |bound| bound.allowed(queries))
    }

    /// The number of `queries` that may be late by bound; all of them under a bound that they do not test.
    #[must_use]
    pub(super) fn allowed_by_bound(&self, queries: usize) -> [usize; MOST_BOUNDS] {
        let mut allowed = [usize::MAX; MOST_BOUNDS];
        for (i, bound) in self.objective.bounds().enumerate().filter(|&(i, _)| self.is_tested(i, queries)) {
            allowed[i] = bound.allowed(queries);
        }
        allowed
    }

    /// Whether a run of this number of queries tests the bound at this place. The first one is always tested.
    #[must_use]
    pub fn is_tested(&self, place: usize, queries: usize) -> bool {
        let bound = self.objective.bounds().nth(place);
        bound.is_some_and(|bound| place == 0 || bound.allowed(queries) >= LEAST_ALLOWED)
    }

    /// The bounds that a run of this number of queries does not test, as in `p99.9 not tested`; empty if there are none.
    #[must_use]
    pub fn untested(&self, queries: usize) -> String {
        let untested = self.objective.bounds().enumerate().filter(|&(place, _)| !self.is_tested(place, queries));
        let names: Vec<String> = untested.map(|(_, bound)| bound.name()).collect();
        if names.is_empty() { String::new() } else { format!("{} not tested", names.join(", ")) }
    }
}

impl Bound {
    /// The measured quantity: `p99`, `share of misses`.
    fn name(self) -> String {
        match self {
            Self::NoMiss | Self::MissShare(_) => String::from("misses"),
            Self::Percentile { share, .. } => format!("p{}", percent(share)),
            Self::Tail => String::from("p99.9"),
        }
    }
}

impl fmt::Display for Bound {
    /// Writes the form of options.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoMiss => f.write_str("no-miss"),
            Self::MissShare(share) => write!(f, "miss-share={share}"),
            Self::Percentile { within: Some(within), .. } => write!(f, "{}={}", self.name(), within.as_ms()),
            Self::Percentile { within: None, .. } => f.write_str(&self.name()),
            Self::Tail => f.write_str("tail"),
        }
    }
}

impl fmt::Display for Objective {
    /// Writes the form of options; [`Criterion`] writes it in full.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bounds = self.bounds().zip(self.of).map(|(bound, of)| match of {
            Some(of) => format!("{}:{bound}", of.name()),
            None => bound.to_string(),
        });
        let bounds: Vec<String> = bounds.collect();
        f.write_str(&bounds.join(","))
    }
}

impl fmt::Display for Criterion {
    /// The same words at every rate: the tail has its ten deadlines, even if the value at a tenth of the rate allows more.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words =
            Self { p999_at_a_tenth: None, ..*self }.bounds().zip(self.objective.of).map(|((bound, limit), of)| {
                let limit_ms = limit.as_ms();
                let whole = match bound {
                    Bound::NoMiss => format!("no miss of {limit_ms} ms"),
                    Bound::MissShare(share) => format!("at most {} % miss {limit_ms} ms", percent(share)),
                    Bound::Percentile { .. } | Bound::Tail => format!("{} <= {limit_ms} ms", bound.name()),
                };
                of.map_or(whole.clone(), |of| format!("{}: {whole}", of.name()))
            });
        f.write_str(&words.collect::<Vec<_>>().join(" and "))
    }
}

/// A share in percent, without the rounding error of doubles.
fn percent(share: f64) -> f64 {
    significant(share * 100.0, 9)
}

/// The reason why a run is not stationary: a longer one would have longer delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsteady {
    /// The work offered reaches all that the lanes can do.
    Overloaded,
    /// The age of the oldest unanswered query grows.
    AgeGrows,
    /// The mean delay grows.
    MeanGrows,
    /// Lanes were hardly ever idle, so that the run does not tell whether its backlog stays bounded.
    NotSettled,
}

impl fmt::Display for Unsteady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Overloaded => "the load reaches 1",
            Self::AgeGrows => "the oldest query gets older",
            Self::MeanGrows => "delays grow",
            Self::NotSettled => "not settled",
        })
    }
}

/// The verdict on a run, simulated or live.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Number of planned queries.
    pub planned: usize,
    /// Number of queries sent: all, unless the run was cut short.
    pub sent: usize,
    /// Whether some planned queries were not sent or not answered.
    pub is_cut_short: bool,
    /// Number of late queries under the [bound](Self::bound); unanswered ones count with their age at the end.
    pub late: usize,
    /// Number of planned queries that may be late under this bound.
    pub allowed: usize,
    /// The bound that the run breaks, and if it breaks none, the first one; with its limit.
    pub bound: (Bound, Nanos),
    /// Number of queries that missed the deadline; unanswered ones count with their age at the end.
    pub missed: usize,
    /// 99th percentile of the delays, at most 1/4096 too long.
    pub p99: Nanos,
    /// 99.9th percentile of the delays, at most 1/4096 too long.
    pub p999: Nanos,
    /// The longest delay, or age of an unanswered query.
    pub longest: Nanos,
    /// The work offered over the work that all lanes can do, where it is known.
    pub utilisation: Option<f64>,
    /// The reason why the run is not stationary; `None` if it is.
    pub unsteady: Option<Unsteady>,
}

impl Verdict {
    /// Whether the run meets the objective and is stationary.
    #[must_use]
    pub fn holds(&self) -> bool {
        !self.is_cut_short && self.late <= self.allowed && self.unsteady.is_none()
    }

    /// Whether the run was cut short before it could fail or hold.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.is_cut_short && self.late <= self.allowed
    }

    /// The share of the sent queries that were late.
    #[must_use]
    pub fn late_share(&self) -> f64 {
        self.late as f64 / self.sent.max(1) as f64
    }

    /// `held`, or the reason: `missed: 2.3 % late`, `missed: delays grow`, `undecided: cut short`.
    #[must_use]
    pub fn words(&self) -> String {
        if self.holds() {
            return String::from("held");
        }
        if self.is_undecided() {
            return String::from("undecided: cut short");
        }
        let late = format!("missed: {} % late", significant(100.0 * self.late_share(), 2));
        match (self.unsteady, self.bound) {
            (Some(unsteady), _) if self.late <= self.allowed => format!("missed: {unsteady}"),
            (_, (bound @ Bound::Tail, limit)) => format!("{late} by {}, {} ms", bound.name(), limit.as_ms()),
            _ => late,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::quantile::select_nearest_rank;

    #[test]
    fn objectives_read_back_from_their_names_and_say_what_they_ask() {
        let deadline = Nanos::from_ms(50.0);
        for (text, name, words) in [
            ("no-miss", "no-miss", "no miss of 50 ms"),
            ("miss-share=0.001", "miss-share=0.001", "at most 0.1 % miss 50 ms"),
            ("miss-share <= 0.02", "miss-share=0.02", "at most 2 % miss 50 ms"),
            ("p99", "p99", "p99 <= 50 ms"),
            ("p99.9", "p99.9", "p99.9 <= 50 ms"),
            ("p95<=20ms", "p95=20", "p95 <= 20 ms"),
            ("p99=50ms, p99.9=500ms", "p99=50,p99.9=500", "p99 <= 50 ms and p99.9 <= 500 ms"),
            ("p95,tail", "p95,tail", "p95 <= 50 ms and p99.9 <= 500 ms"),
            ("fast:p99=9ms, slow : p95", "fast:p99=9,slow:p95", "fast: p99 <= 9 ms and slow: p95 <= 50 ms"),
        ] {
            let objective = Objective::from_text(text).unwrap();
            assert_eq!(
                (objective.to_string().as_str(), objective.within(deadline).to_string().as_str()),
                (name, words)
            );
            assert_eq!(Objective::from_text(&objective.to_string()), Ok(objective));
        }
        let told = |text: &str| Objective::from_text(text).unwrap_err();
        assert!(told("p999").ends_with(": write p99.9"), "{}", told("p999"));
        assert!(told("miss-share=0").contains("no-miss") && told("p100").contains("no-miss"));
        for bad in [
            "",
            "p",
            "p100",
            "p12",
            "p99=0",
            "p99=x",
            "p99=inf",
            "miss-share",
            "miss-share=0",
            "no-miss=1",
            "q99",
            "p99,",
            "p99,no-miss",
            ":p99",
            "p50,p60,p70,p80,p90",
        ] {
            assert!(Objective::from_text(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn few_queries_may_be_late_and_of_no_miss_none() {
        let allowed = |text: &str, n| Objective::from_text(text).unwrap().within(Nanos(1)).allowed(n);
        assert_eq!([0, 1, 99, 100, 199, 200, 1000].map(|n| allowed("p99", n)), [0, 0, 0, 1, 1, 2, 10]);
        assert_eq!([0, 99, 100, 250].map(|n| allowed("miss-share=0.01", n)), [0, 0, 1, 2]);
        // In doubles, 99.9 / 100 of 1000 is slightly above 999, and 0.29 of 100 slightly below 29.
        assert_eq!([999, 1000, 2000, 1_000_000].map(|n| allowed("p99.9", n)), [0, 1, 2, 1000]);
        assert_eq!(allowed("miss-share=0.29", 100), 29);
        assert_eq!(allowed("no-miss", 1_000_000), 0);
    }

    #[test]
    fn the_default_bounds_the_tail_by_deadlines_or_by_the_idle_machine_and_only_in_long_runs() {
        let objective = Objective::default();
        assert_eq!(Objective::from_text("p99,tail"), Ok(objective));
        let criterion = objective.within(Nanos(100));
        let slow = Criterion { p999_at_a_tenth: Some(Nanos(700)), ..criterion };
        let fast = Criterion { p999_at_a_tenth: Some(Nanos(500)), ..criterion };
        let limits = |of: Criterion| of.bounds().map(|(_, limit)| limit.0).collect::<Vec<_>>();
        assert_eq!([criterion, fast, slow].map(limits), [vec![100, 1000], vec![100, 1000], vec![100, 1400]]);
        assert_eq!([criterion, fast, slow].map(|of| of.tail_is_of_idle()), [false, false, true]);
        assert_eq!([4_999, 5_000].map(|n| criterion.untested(n)), ["p99.9 not tested", ""]);
        assert_eq!(
            [4_999, 5_000].map(|n| (criterion.is_tested(0, n), criterion.is_tested(1, n))),
            [(true, false), (true, true)]
        );
        assert_eq!((criterion.is_tested(2, 5_000), criterion.late_share(), criterion.allowed(1000)), (false, 0.01, 10));
    }

    proptest! {
        #[test]
        fn a_percentile_is_within_its_time_exactly_if_no_more_are_late_than_may_be(
            mut delays in prop::collection::vec(0u64..100, 1..400),
            percent in 50.0..99.9f64,
            limit in 1u64..100,
        ) {
            let share = percent / 100.0;
            let bound = Bound::Percentile { share, within: Some(Nanos(limit)) };
            let criterion = Objective::from(bound).within(Nanos(1000));
            let late = delays.iter().filter(|&&delay| delay > limit).count();
            let found = select_nearest_rank(&mut delays, share).unwrap();
            prop_assert_eq!(late <= criterion.allowed(delays.len()), found <= limit);
        }
    }
}
