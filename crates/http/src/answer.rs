//! The capacity of a server: open-loop runs between a rate that holds and a higher rate that misses.
//!
//! The search starts at the prediction. It is the same as for the lab's own executors, with the same objective, verdicts
//! and interval. A run that a punctual client might not have missed proves nothing: it leads the search to lower rates, but is no
//! upper bound. What an overloaded run serves is the next rate to try.

use std::time::{Duration, Instant};

use tandem_drive::lab::{Calibration, Driven, DrivenRun, LiveSearch, Prediction, Question, Side, SystemLoad, Vote};
use tandem_drive::live;
use tandem_model::base::time::Nanos;
use tandem_model::sim::Arrivals;
use tandem_model::study::{Capacity, Progress};

use crate::files::RunReport;
use crate::predict::Simulated;
use crate::run::{Ending, Judged, Outcome, Run};
use crate::{Client, HttpError, ServerProfile};

/// Warm-up before each run, as a share of it and at most, in seconds.
const WARM_UP_SHARE: f64 = 0.1;
const WARM_UP_S: f64 = 1.0;
/// An overloaded run serves less than this share of its rate.
const OVERLOADED: f64 = 0.9;
/// Most runs of a gate, as its majority may need after pauses.
const MOST_GATE_RUNS: usize = 5;

/// The answer with its evidence.
#[derive(Clone, Debug)]
pub struct ServerAnswer {
    /// Predictions and live runs.
    pub driven: Driven,
    /// Statistics of the runs in order; rejected ones included.
    pub runs: Vec<RunReport>,
    /// The last run.
    pub last: Option<Run>,
    /// Number of runs that were rejected because the client was late.
    pub rejected: usize,
    /// Number of answers, and of those without a hit.
    pub answers: (usize, usize),
    /// Limits of the answer, in words.
    pub caveats: Vec<String>,
}

impl ServerAnswer {
    /// No runs yet.
    #[must_use]
    pub fn new(dialect: &str, predicted: Capacity, profile: &ServerProfile, log_queries: usize) -> Self {
        // The rows of a capacity are found by this name.
        let predicted = Capacity { policy: dialect.to_owned(), ..predicted };
        let driven = Driven {
            policy: dialect.to_owned(),
            predicted: Prediction { speed_sd: profile.drift, ..Prediction::by_profile(predicted) },
            hindsight_qps: None,
            runs: Vec::new(),
            held: None,
            missed: None,
            pause_limited: None,
            sampled: sampled(profile, log_queries),
            precision: None,
            gpu: "none",
        };
        Self { driven, runs: Vec::new(), last: None, rejected: 0, answers: (0, 0), caveats: Vec::new() }
    }
}

/// The relative standard error of the mean service time, if runs draw from more queries than were profiled.
fn sampled(profile: &ServerProfile, log_queries: usize) -> f64 {
    let us: Vec<f64> = profile.queries.iter().map(|query| query.median_us).collect();
    let count = us.len() as f64;
    let mean = us.iter().sum::<f64>() / count;
    let variance = us.iter().map(|us| (us - mean).powi(2)).sum::<f64>() / (count - 1.0).max(1.0);
    let rest = (1.0 - count / log_queries.max(us.len()).max(1) as f64).max(0.0);
    if mean > 0.0 { (rest * variance / count).sqrt() / mean } else { 0.0 }
}

/// Drives `shares` of the predicted capacity, then searches around it. `answer` keeps all runs in any case.
///
/// # Errors
/// If a socket or the simulation fails, or an interrupt came.
pub fn find_answer(
    client: &Client<'_>,
    simulated: &Simulated,
    question: &Question,
    shares: &[f64],
    progress: &dyn Progress,
    answer: &mut ServerAnswer,
) -> Result<(), HttpError> {
    let predicted_qps = answer.driven.predicted.qps();
    if predicted_qps <= 0.0 {
        answer.caveats.push(String::from("no rate is low enough in simulation"));
        return Ok(());
    }
    answer.driven.precision = question.effort.precision;
    let until = Instant::now() + question.effort.budget;
    let criterion = question.objective.within(question.deadline);
    let mut search = LiveSearch::new(predicted_qps, question.effort);
    let longest = simulated.longest();
    let mut shares = shares.iter();
    let mut seed = question.seeds.last().map_or(0, |seed| seed.wrapping_add(1));
    // The search sees all runs; sides are proven by those that count.
    let mut proven = search.clone();
    let mut served = None;
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let runs_left = (left.as_secs_f64() / question.effort.seconds(&criterion, predicted_qps)) as u32;
        let share = shares.next().map(|share| share * predicted_qps);
        if search.is_pause_limited() || answer.driven.pause_limited.is_some() {
            answer.driven.pause_limited = Some(answer.driven.kept_qps());
            search = answer.driven.throughput_search(question.effort);
        }
        let next = share.or_else(|| served.take().filter(|_| runs_left > 0)).or_else(|| search.next(runs_left));
        let Some(qps) = next else { break };
        let run = drive(client, question, qps, seed, progress)?;
        seed = seed.wrapping_add(1);
        let ending = run.ending;
        let done = driven_run((&run, longest), simulated, &answer.driven.predicted, question, (qps, seed))?;
        let (vote, words) = (done.vote(), done.words());
        let is_rejected = run.is_rejected(&criterion, &done.verdict);
        let served_qps = run.throughput_qps();
        answer.answers = (answer.answers.0 + run.count(Outcome::Answered), answer.answers.1 + run.empty());
        answer.runs.push(RunReport::of(&run, &criterion));
        if let Some(failure) = &run.failure
            && !answer.caveats.iter().any(|told| told.starts_with(FIRST_FAILURE))
        {
            answer.caveats.push(format!("{FIRST_FAILURE}, at {qps:.0} q/s: {failure}"));
        }
        answer.last = Some(run);
        if ending == Ending::Interrupted {
            return Err(HttpError::Interrupted);
        }
        if is_rejected {
            answer.rejected += 1;
            progress.told(&format!("{qps:.0} q/s: rejected, the client was late by {} us (p99)", done.lag_p99.as_us()));
        } else {
            progress.told(&format!("{qps:.0} q/s: {words}"));
            proven.note(qps, vote);
            answer.driven.runs.push(done);
        }
        if ending == Ending::ServerGone {
            answer.caveats.push(format!("the server stopped answering in the run at {qps:.0} q/s"));
            break;
        }
        if share.is_none() && answer.driven.pause_limited.is_none() {
            search.note(qps, vote);
            (answer.driven.held, answer.driven.missed) = proven.sides();
            let is_new =
                |lower: &f64| !answer.runs.is_empty() && search.sides().0.is_none_or(|held| *lower > 1.02 * held.qps);
            served = (vote == Vote::Missed && served_qps > 0.0 && served_qps < OVERLOADED * qps)
                .then_some(served_qps)
                .filter(is_new);
        }
    }
    if answer.rejected > 0 && answer.driven.missed.is_none() {
        let what = "at higher rates, the client was too late to tell what the server can do (its processor is too busy, or the rate too high)";
        answer.caveats.push(what.to_owned());
    }
    progress.end();
    Ok(())
}

/// The words before the reason of the first failure.
const FIRST_FAILURE: &str = "the first failure";

/// Whether a server keeps an objective at one rate.
#[derive(Clone, Debug, Default)]
pub struct Gate {
    /// The runs that count.
    pub side: Side,
    /// Whether it held; `None` if too few runs agree.
    pub holds: Option<bool>,
    /// Statistics of all runs in order.
    pub runs: Vec<RunReport>,
    /// The last run.
    pub last: Option<Run>,
}

/// Drives one rate until as many runs agree as the effort asks for.
///
/// # Errors
/// If a socket fails, or an interrupt came.
pub fn check_rate(
    client: &Client<'_>,
    question: &Question,
    qps: f64,
    progress: &dyn Progress,
) -> Result<Gate, HttpError> {
    let criterion = question.objective.within(question.deadline);
    let (mut gate, mut votes) = (Gate::default(), LiveSearch::new(qps, question.effort));
    let first = question.seeds.last().map_or(0, |seed| seed.wrapping_add(1));
    while gate.holds.is_none() && gate.runs.len() < MOST_GATE_RUNS {
        let seed = first.wrapping_add(gate.runs.len() as u64);
        let run = drive(client, question, qps, seed, progress)?;
        let Judged { verdict, is_paused, .. } = run.judged(&criterion, Nanos::MAX);
        let is_rejected = run.is_rejected(&criterion, &verdict);
        let ending = run.ending;
        let late = run.lateness_p99().unwrap_or_default().as_us();
        let words =
            if is_rejected { format!("rejected, the client was late by {late} us (p99)") } else { verdict.words() };
        progress.told(&format!("{qps:.0} q/s: {words}"));
        gate.runs.push(RunReport::of(&run, &criterion));
        gate.last = Some(run);
        if ending == Ending::Interrupted {
            return Err(HttpError::Interrupted);
        }
        if !is_rejected {
            votes.note(
                qps,
                if verdict.holds() {
                    Vote::Held
                } else if is_paused {
                    Vote::Paused
                } else {
                    Vote::Missed
                },
            );
        }
        gate.side = votes.bounds().into_iter().flatten().next().unwrap_or_default();
        gate.holds = match votes.sides() {
            (Some(_), _) => Some(true),
            (_, Some(_)) => Some(false),
            _ => None,
        };
    }
    progress.end();
    Ok(gate)
}

/// Drives one run, with a warm-up before it.
fn drive(
    client: &Client<'_>,
    question: &Question,
    qps: f64,
    seed: u64,
    progress: &dyn Progress,
) -> Result<Run, HttpError> {
    let seconds = question.effort.seconds(&question.objective.within(question.deadline), qps);
    let warm_up = (WARM_UP_SHARE * seconds).min(WARM_UP_S);
    progress.lasts(&format!("open loop at {qps:.0} q/s"), Duration::from_secs_f64(seconds + warm_up));
    let count = ((seconds + warm_up) * qps).ceil() as usize;
    let arrivals = Arrivals::drawn(&question.process, seed, count.max(1), client.requests.len());
    let run = client.drive(&arrivals, qps, warm_up)?;
    if live::interrupted() {
        return Ok(Run { ending: Ending::Interrupted, ..run });
    }
    Ok(run)
}

fn driven_run(
    (run, longest): (&Run, Nanos),
    simulated: &Simulated,
    predicted: &Prediction,
    question: &Question,
    (qps, seed): (f64, u64),
) -> Result<DrivenRun, HttpError> {
    let Judged { verdict, kept_up, is_paused, course } =
        run.judged(&question.objective.within(question.deadline), longest);
    Ok(DrivenRun {
        qps,
        seed,
        seconds: run.planned as f64 / qps,
        verdict,
        kept_up,
        is_paused,
        course,
        summary: run.summary(&verdict),
        covered_share: Arrivals::drawn(&question.process, seed, run.planned, 1).covered_share(qps),
        predicted: simulated.run(question, (qps, run.planned), (seed, predicted.speed_sd))?,
        rehearsed: None,
        // The server is one of the other processes.
        load: SystemLoad::default(),
        fixed_loop: [Nanos::ZERO; 2],
        lag_p99: run.lateness_p99().unwrap_or_default(),
        service: Calibration::default(),
        pair: None,
    })
}
