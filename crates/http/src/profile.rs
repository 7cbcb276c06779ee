//! The profile of a server: what its queries cost, how many it serves at once, and how its speed varies.
//!
//! | measured | how |
//! | --- | --- |
//! | service time per query | one client, several rounds over the same queries; the median of each query |
//! | noise | the times of a query over its median, by their quantiles |
//! | moments | mean noise of blocks of 100 ms, resampled as the speed of the server |
//! | pauses | times above four medians and a millisecond, such as garbage collection |
//! | servers, slowdown | a ladder of closed-loop clients: 1, 2, 4 to twice the cores |
//! | queue limit | the first rung of the ladder in which the server rejects |

use std::time::Duration;

use tandem_core::base::quantile::median;
use tandem_core::base::random::{Purpose, Random};
use tandem_core::base::time::Nanos;
use tandem_core::lab::Progress;
use tandem_core::live;

use crate::run::{Outcome, Record, Run};
use crate::source::Closed;
use crate::{Client, HttpError};

/// Least rounds over the queries.
const ROUNDS: usize = 3;
/// A time is a pause if it exceeds this many medians of its query, by at least a millisecond.
const PAUSE_MEDIANS: f64 = 4.0;
const PAUSE_LEAST_US: f64 = 1000.0;
/// Length of a moment.
const MOMENT_NS: u64 = 100_000_000;
/// Fewer moments tell nothing about the variation of the speed.
const LEAST_MOMENTS: usize = 20;
/// Another client must raise the throughput by this share for another server to be assumed.
const GAIN: f64 = 1.05;
/// Queries that are asked before anything is measured.
const FIRST: usize = 3;

/// The effort for a profile.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ProfilePlan {
    /// Time for the service times.
    pub service: Duration,
    /// Time for each rung of the ladder.
    pub rung: Duration,
    /// Most clients.
    pub clients: usize,
    /// Most queries.
    pub queries: usize,
    /// Seed of the sample of queries.
    pub seed: u64,
}

impl ProfilePlan {
    /// A profile of about a minute, for a server with this number of cores.
    #[must_use]
    pub fn usual(cores: usize) -> Self {
        let (service, rung) = (Duration::from_secs(30), Duration::from_secs(6));
        Self { service, rung, clients: 2 * cores.max(1), queries: 2000, seed: 1 }
    }
}

/// The service time of a query at a server, with one client.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryTime {
    /// Position in the log.
    pub query: u32,
    /// Median, in microseconds.
    pub median_us: f64,
    /// Number of hits.
    pub hits: u32,
}

/// A rung of the ladder.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rung {
    /// Clients in a closed loop.
    pub clients: usize,
    /// Answers per second.
    pub qps: f64,
    /// Median latency.
    pub p50_ms: f64,
    /// 99th percentile of the latency.
    pub p99_ms: f64,
    /// Rejected queries.
    pub rejected: usize,
    /// Other queries without an answer.
    pub failed: usize,
}

/// What was measured of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerProfile {
    /// Service times.
    pub queries: Vec<QueryTime>,
    /// Time of a run over the median of its query, ascending, without pauses.
    pub noise: Vec<f64>,
    /// Mean noise of the moments over the mean of all, ascending; empty if there were too few.
    pub moments: Vec<f64>,
    /// Excess of each pause, in microseconds, ascending.
    pub pauses_us: Vec<f64>,
    /// Number of queries among which the pauses were.
    pub observed: usize,
    /// The ladder.
    pub ladder: Vec<Rung>,
}

impl ServerProfile {
    /// The mean service time in microseconds, with noise.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        let mean = |values: &mut dyn Iterator<Item = f64>, count: usize| values.sum::<f64>() / count.max(1) as f64;
        let medians = mean(&mut self.queries.iter().map(|query| query.median_us), self.queries.len());
        medians * if self.noise.is_empty() { 1.0 } else { mean(&mut self.noise.iter().copied(), self.noise.len()) }
    }

    /// The number of servers: the clients after which more clients gain less than a twentieth per doubling.
    #[must_use]
    pub fn servers(&self) -> usize {
        let mut best: Option<&Rung> = None;
        for rung in self.ladder.iter().filter(|rung| rung.rejected + rung.failed == 0) {
            if best.is_none_or(|best| rung.qps > GAIN * best.qps) {
                best = Some(rung);
            }
        }
        best.map_or(1, |rung| rung.clients)
    }

    /// By number of busy servers, the service time over that with one.
    #[must_use]
    pub fn slowdown(&self) -> Vec<(u32, f64)> {
        let servers = self.servers();
        let Some(alone) = self.ladder.first().filter(|rung| rung.qps > 0.0) else { return vec![(1, 1.0)] };
        let rungs = self.ladder.iter().filter(|rung| rung.clients <= servers && rung.qps > 0.0);
        rungs.map(|rung| (rung.clients as u32, rung.clients as f64 * alone.qps / rung.qps)).collect()
    }

    /// The highest throughput of the ladder.
    #[must_use]
    pub fn highest_qps(&self) -> f64 {
        self.ladder.iter().map(|rung| rung.qps).fold(0.0, f64::max)
    }

    /// Queries that waited when the server began to reject; `None` if it rejected none.
    #[must_use]
    pub fn queue_limit(&self) -> Option<usize> {
        let full = self.ladder.iter().find(|rung| rung.rejected > 0)?;
        Some(full.clients.saturating_sub(self.servers()))
    }
}

/// Measures a server.
///
/// # Errors
/// If the first queries get no answer, a socket fails, or an interrupt came.
pub fn measure_server(
    client: &Client<'_>,
    plan: &ProfilePlan,
    progress: &dyn Progress,
) -> Result<ServerProfile, HttpError> {
    check_answers(client)?;
    let queries = sample(client.requests.len(), plan);
    progress.lasts("service times with one client", plan.service);
    let rounds = rounds(client, &queries, plan.service)?;
    let mut profile = ServerProfile::default();
    add_service_times(&mut profile, &queries, &rounds, client.requests.len());
    if profile.queries.is_empty() {
        return Err(HttpError::NoAnswer(String::from("no query was answered twice within the time for service times")));
    }
    let mut clients = 1;
    while clients <= plan.clients.max(1) {
        progress.lasts(&format!("{clients} clients in a closed loop"), plan.rung);
        // Another part of the sample each time, so that no rung finds warmer caches than the others.
        let run = client.closed(Closed::new(&queries, clients, 0, nanos(plan.rung)))?;
        go_on()?;
        profile.ladder.push(rung(clients, &run));
        clients *= 2;
    }
    progress.end();
    Ok(profile)
}

fn go_on() -> Result<(), HttpError> {
    if live::interrupted() { Err(HttpError::Interrupted) } else { Ok(()) }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(time.as_nanos() as u64)
}

/// Asks the first queries, and explains a failure.
fn check_answers(client: &Client<'_>) -> Result<(), HttpError> {
    for query in 0..client.requests.len().min(FIRST) as u32 {
        let (outcome, text) = client.ask(query)?;
        if outcome == Outcome::Answered {
            continue;
        }
        let (url, dialect) = (&client.target.url, &client.requests.dialect.name);
        let uri = &client.requests.queries[query as usize].0;
        let what = match outcome {
            Outcome::Malformed => "the answer is not what the dialect expects",
            other => other.name(),
        };
        return Err(HttpError::NoAnswer(format!("{url}, dialect {dialect}, {uri:.120}: {what}: {text}")));
    }
    Ok(())
}

/// A sample of the log without repetition, in random order.
fn sample(log: usize, plan: &ProfilePlan) -> Vec<u32> {
    let mut random: Random = Purpose::QuerySamples.stream(plan.seed);
    let mut all: Vec<u32> = (0..log as u32).collect();
    let count = plan.queries.clamp(1, log.max(1)).min(log);
    for at in 0..count {
        let other = at + random.below((log - at) as u32) as usize;
        all.swap(at, other);
    }
    all.truncate(count);
    all
}

/// Rounds of one client over the queries. If there is no time for all, fewer queries are repeated.
fn rounds(client: &Client<'_>, queries: &[u32], time: Duration) -> Result<Vec<Run>, HttpError> {
    let first = client.closed(Closed::new(queries, 1, 0, nanos(time / (ROUNDS as u32 + 1))))?;
    go_on()?;
    let count = first.records.len().clamp(1, queries.len());
    let each = nanos(time).0 / (ROUNDS as u64 + 1);
    let mut rounds = vec![first];
    for _ in 0..ROUNDS {
        rounds.push(client.closed(Closed::new(&queries[..count], 1, 0, Nanos(each)))?);
        go_on()?;
    }
    Ok(rounds)
}

fn add_service_times(profile: &mut ServerProfile, queries: &[u32], rounds: &[Run], log: usize) {
    let mut by_query: Vec<Vec<f64>> = vec![Vec::new(); log];
    let mut hits = vec![0; log];
    let answered = || rounds.iter().flat_map(|run| run.answered());
    for record in answered() {
        by_query[record.query as usize].push(record.service().as_us());
        hits[record.query as usize] = record.hits;
    }
    let medians: Vec<f64> =
        by_query.iter().map(|times| if times.len() > 1 { median(times.clone()) } else { f64::NAN }).collect();
    let known = |query: &u32| medians[*query as usize] > 0.0;
    profile.queries = (queries.iter().filter(|query| known(query)))
        .map(|&query| QueryTime { query, median_us: medians[query as usize], hits: hits[query as usize] })
        .collect();
    let mut moments: Vec<f64> = Vec::new();
    for run in rounds {
        let mut moment: (u64, f64, u32) = (0, 0.0, 0);
        for record in run.answered() {
            let (us, usual) = (record.service().as_us(), medians[record.query as usize]);
            if usual.is_nan() {
                continue;
            }
            profile.observed += 1;
            if us > PAUSE_MEDIANS * usual && us > usual + PAUSE_LEAST_US {
                profile.pauses_us.push(us - usual);
                continue;
            }
            profile.noise.push(us / usual);
            let number = record.finished / MOMENT_NS;
            if number != moment.0 && moment.2 > 0 {
                moments.push(moment.1 / f64::from(moment.2));
                moment = (number, 0.0, 0);
            }
            moment = (number, moment.1 + us / usual, moment.2 + 1);
        }
    }
    if moments.len() >= LEAST_MOMENTS {
        let mean = moments.iter().sum::<f64>() / moments.len() as f64;
        profile.moments = moments.into_iter().map(|moment| moment / mean).collect();
    }
    for values in [&mut profile.noise, &mut profile.moments, &mut profile.pauses_us] {
        values.sort_by(f64::total_cmp);
    }
}

fn rung(clients: usize, run: &Run) -> Rung {
    let latency = run.histogram(Record::latency);
    let rejected = run.count(Outcome::Rejected);
    Rung {
        clients,
        qps: run.throughput_qps(),
        p50_ms: latency.value_at_percentile(50.0) as f64 / 1e6,
        p99_ms: latency.value_at_percentile(99.0) as f64 / 1e6,
        rejected,
        failed: run.records.len() - run.answered().count() - rejected,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn ladder(rungs: &[(usize, f64, usize)]) -> ServerProfile {
        let rung = |&(clients, qps, rejected): &(usize, f64, usize)| {
            let ms = clients as f64 / qps * 1e3;
            Rung { clients, qps, p50_ms: ms, p99_ms: ms, rejected, failed: 0 }
        };
        let queries = (0..100).map(|query| QueryTime { query, median_us: 1000.0, hits: 10 }).collect();
        ServerProfile { queries, observed: 400, ladder: rungs.iter().map(rung).collect(), ..ServerProfile::default() }
    }

    #[test]
    fn servers_slowdown_and_queue_limit_follow_from_the_ladder() {
        let two = ladder(&[(1, 1000.0, 0), (2, 1600.0, 0), (4, 1620.0, 0), (8, 1630.0, 5)]);
        assert_eq!((two.servers(), two.queue_limit()), (2, Some(6)));
        assert_eq!(two.slowdown(), [(1, 1.0), (2, 1.25)]);
        let one = ladder(&[(1, 1000.0, 0), (2, 1010.0, 0)]);
        assert_eq!((one.servers(), one.queue_limit()), (1, None));
    }

    #[test]
    fn pauses_are_told_from_noise_and_a_sample_has_no_query_twice() {
        let record = |job: u32, us: u64| Record {
            job,
            query: job % 10,
            intended: u64::from(job) * 1_000_000,
            sent: u64::from(job) * 1_000_000,
            finished: u64::from(job) * 1_000_000 + us * 1000,
            lateness: 0,
            outcome: Outcome::Answered,
            hits: 3,
            server_ms: f32::NAN,
        };
        let records: Vec<Record> = (0..3000).map(|job| record(job, if job % 100 == 7 { 9000 } else { 200 })).collect();
        let run = Run {
            rate_qps: f64::NAN,
            planned: records.len(),
            records,
            warm_up: Vec::new(),
            seconds: 3.0,
            ending: crate::Ending::Complete,
        };
        let mut profile = ServerProfile::default();
        add_service_times(&mut profile, &(0..10).collect::<Vec<_>>(), &[run], 10);
        assert_eq!((profile.queries.len(), profile.observed, profile.pauses_us.len()), (10, 3000, 30));
        assert_eq!((profile.pauses_us[0], profile.noise.len(), profile.moments.len()), (8800.0, 2970, 29));
        let mut drawn = sample(50, &ProfilePlan { queries: 20, ..ProfilePlan::usual(2) });
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 20);
    }
}
