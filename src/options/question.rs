//! Options of the question: deadline, objective, and the way queries are answered.

use tandem_drive::lab::Effort;
use tandem_engine::search::cpu::Algorithm;
use tandem_model::base::time::Nanos;
use tandem_model::study::Objective;
use tandem_model::traffic::{Mode, Priorities};

use super::arrivals::parse_seeds;
use super::names::choice;
use crate::failure::Failure;

/// The default deadline: half of the 0.1 s within which an answer feels immediate (Miller, "Response time in man-computer
/// conversational transactions", 1968). The other half is for the network, for merging the nodes' answers and for drawing
/// the page.
pub(crate) const DEFAULT_MS: f64 = 50.0;
/// A deadline of a day.
const MAX_MS: f64 = 86_400_000.0;
/// The longest live run: a day.
const LIVE_SECONDS_MOST: f64 = 86_400.0;

/// The deadline.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct DeadlineArgument {
    /// Time from a query's arrival to its deadline, in milliseconds
    #[arg(long = "deadline-ms", value_name = "MS", default_value_t = DEFAULT_MS)]
    pub(crate) ms: f64,
}

impl Default for DeadlineArgument {
    fn default() -> Self {
        Self { ms: DEFAULT_MS }
    }
}

impl DeadlineArgument {
    /// The deadline, checked.
    pub(crate) fn checked(self) -> Result<Nanos, Failure> {
        let deadline = Nanos::from_ms(self.ms);
        // A deadline has at least a nanosecond; NaN fails both comparisons.
        if !(self.ms <= MAX_MS && deadline > Nanos::ZERO) {
            return Err(Failure::input(format!("--deadline-ms is {}, expected above 0 and at most {MAX_MS}", self.ms)));
        }
        Ok(deadline)
    }
}

/// The condition that a sustained rate meets.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct ObjectiveArguments {
    /// Condition that a sustained rate meets: `p99` (99 % of queries are answered within the deadline), `p99=20` (within
    /// 20 ms), other percentiles likewise, `miss-share=0.001` (at most this share is late), `no-miss`, `tail` (p99.9 is within
    /// the larger of ten deadlines and twice its value at a tenth of the rate), or several, as `p99=50,p99.9=500`; with
    /// priorities also for one of them, as `interactive:p99=50`
    /// [default: p99,tail]
    #[arg(long, value_name = "WHAT")]
    objective: Option<String>,
}

impl ObjectiveArguments {
    /// The objective of a command without priorities, checked.
    pub(crate) fn checked(&self) -> Result<Objective, Failure> {
        self.checked_for(None)
    }

    /// The objective, checked.
    pub(crate) fn checked_for(&self, priorities: Option<&Priorities>) -> Result<Objective, Failure> {
        let named = self.objective.as_deref().map_or(Ok(Objective::default()), Objective::from_text);
        let checked = named.and_then(|objective| objective.check_priorities(priorities).map(|()| objective));
        checked.map_err(|why| Failure::input(format!("--objective: {why}")))
    }
}

/// The effort of a search for an answer.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct EffortArguments {
    /// Random seeds of simulated arrivals, separated by commas, or FIRST:LAST; live runs have other seeds
    #[arg(long, value_name = "SEEDS", default_value = "1:10")]
    seeds: String,
    /// Length of a live run in seconds [default: 10; 30 with --proof; 3 for validate]
    #[arg(long, value_name = "S")]
    live_seconds: Option<f64>,
    /// Drive five runs of 30 s at each of two rates at most 2.5 % apart, of which only the lower one holds
    #[arg(long)]
    proof: bool,
    /// Drive as many runs as a 90 % interval of this half-width needs, as in `10%`, in at most four times the usual time
    #[arg(long, value_name = "SHARE", value_parser = share, conflicts_with = "proof")]
    precision: Option<f64>,
}

/// The widest and the narrowest precision.
const PRECISIONS: std::ops::RangeInclusive<f64> = 0.01..=0.5;

/// A precision as a number or in per cent.
fn share(text: &str) -> Result<f64, String> {
    let share = match text.strip_suffix('%') {
        Some(percent) => percent.trim().parse::<f64>().map(|percent| percent / 100.0),
        None => text.parse(),
    };
    share.ok().filter(|share| PRECISIONS.contains(share)).ok_or_else(|| String::from("expected 1% to 50%"))
}

impl EffortArguments {
    /// The effort, which is `usual` unless options say otherwise.
    pub(crate) fn checked(&self, usual: Effort) -> Result<Effort, Failure> {
        let effort = if self.proof { Effort::proof() } else { usual };
        let effort = self.precision.map_or(effort, |precision| effort.precise(precision));
        let Some(seconds) = self.live_seconds else { return Ok(effort) };
        check_seconds(seconds, LIVE_SECONDS_MOST)
            .map_err(|e| Failure::input(e.to_string().replace("--seconds", "--live-seconds")))?;
        Ok(effort.with_run(seconds))
    }

    /// The seeds, each once.
    pub(crate) fn seeds(&self) -> Result<Vec<u64>, Failure> {
        parse_seeds(&self.seeds)
    }
}

/// The mode, the algorithm and the number of results of all queries in a run.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct SearchArguments {
    /// How the terms of a query combine
    #[arg(long, value_parser = choice::<Mode>(), default_value = Mode::Or.name())]
    pub(crate) mode: Mode,
    /// Algorithm by which the CPU finds the best documents with any of the terms; all give the same result
    #[arg(long, value_parser = choice::<Algorithm>(), default_value = Algorithm::Auto.name())]
    pub(crate) algorithm: Algorithm,
    /// Number of documents that a query asks for
    #[arg(short, value_name = "K", default_value_t = 10)]
    pub(crate) k: usize,
}

/// `-k`, checked.
pub(crate) fn check_k(k: usize) -> Result<(), Failure> {
    Ok(tandem_engine::search::check_k(k)?)
}

/// The checked length of a measurement from `--seconds`: above 0 and at most `most`.
pub(crate) fn check_seconds(seconds: f64, most: f64) -> Result<(), Failure> {
    // NaN fails both comparisons.
    if seconds > 0.0 && seconds <= most {
        return Ok(());
    }
    Err(Failure::input(format!("--seconds is {seconds}, expected above 0 and at most {most}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_precision_is_a_share_or_in_per_cent() {
        assert_eq!(["10%", "0.1", "2.5 %", "50%"].map(share), [Ok(0.1), Ok(0.1), Ok(0.025), Ok(0.5)]);
        assert!(["", "%", "10", "0", "51%", "nan", "-5%"].iter().all(|text| share(text).is_err()));
    }

    #[test]
    fn proof_takes_five_runs_of_30_s() {
        let checked = |proof, live_seconds| {
            EffortArguments { seeds: String::from("1"), live_seconds, proof, precision: None }.checked(Effort::quick())
        };
        let effort = |proof, live_seconds| checked(proof, live_seconds).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(effort(false, None), Effort::quick());
        let proof = effort(true, None);
        assert_eq!((proof.run_s, proof.of, proof.needed, proof.all, proof.apart), (30.0, 5, 3, true, 0.025));
        // Both sides and a search of as many runs fit into the budget, also with longer runs.
        let long = effort(true, Some(600.0));
        assert_eq!((long.run_s, long.of), (600.0, 5));
        for effort in [proof, long] {
            assert!(effort.budget.as_secs_f64() >= 3.0 * f64::from(effort.of) * effort.run_s - 1e-6, "{effort:?}");
        }
        for seconds in [0.0, -1.0, f64::NAN, 86_401.0] {
            let message = checked(true, Some(seconds)).map(|_| ()).unwrap_err().to_string();
            assert!(message.contains("--live-seconds is"), "{message}");
        }
    }
}
