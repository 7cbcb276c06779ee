//! The profile of a server: service times, the number of queries that it serves at once, and the variation of its speed.
//!
//! | measured | how |
//! | --- | --- |
//! | warm-up | closed loops until two in a row agree, since a young JVM speeds up for minutes |
//! | service time per query | one client, each query once, then again while time is left; the median of each query |
//! | servers, slowdown | a ladder of closed-loop clients: 1, 2, 4 to twice the cores, and on past one rung without growth |
//! | ceiling | what an overloaded open loop over all servers serves, which is less than the best closed loops |
//! | drift | the best rung again at the end |
//! | variation | on each rung, times over the medians of their queries, which the simulator draws again |
//! | pauses | times above four medians and a millisecond, such as garbage collection, as extra times |
//! | queue limit | the first rung of the ladder in which the server rejects |

use std::time::Duration;

use tandem_drive::live;
use tandem_model::base::quantile::median;
use tandem_model::base::random::{Purpose, Random};
use tandem_model::base::time::Nanos;
use tandem_model::sim::Arrivals;
use tandem_model::study::Progress;
use tandem_model::traffic::ArrivalProcess;

use crate::run::{Outcome, Record, Run, percentile_ms};
use crate::source::Closed;
use crate::{Client, HttpError};

/// The share of the time for service times in which queries are measured for the first time.
const FIRST_SHARE: f64 = 2.0 / 3.0;
/// Closed loops of a warm-up agree within this share, after at most this number of them.
const WARM: f64 = 0.03;
const MOST_WARM_UPS: usize = 12;
/// The rate of an overloaded run, over the highest throughputs of closed loops.
const OVERLOAD: f64 = 1.25;
/// A time is a pause if it exceeds this many medians of its query, by at least a millisecond.
const PAUSE_MEDIANS: f64 = 4.0;
const PAUSE_LEAST_US: f64 = 1000.0;
/// Times that a rung keeps, in stretches of consecutive ones that are spread over it.
const MOST_TIMES: usize = 8192;
const STRETCH: usize = 256;
/// Another client must raise the throughput by this share for another server to be assumed.
const GAIN: f64 = 1.05;

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
#[derive(Clone, Debug, PartialEq)]
pub struct Rung {
    /// Clients in a closed loop.
    pub clients: usize,
    /// Answers per second.
    pub qps: f64,
    /// Median latency; `None` if nothing was answered.
    pub p50_ms: Option<f64>,
    /// 99th percentile of the latency.
    pub p99_ms: Option<f64>,
    /// Rejected queries.
    pub rejected: usize,
    /// Other queries without an answer.
    pub failed: usize,
    /// Mean time over the median of a query, without pauses.
    pub ratio: f64,
    /// Number of pauses among the times.
    pub pauses: usize,
    /// Times over the medians of their queries. A pause counts as a share of the mean median.
    pub times: Vec<f64>,
}

/// The measurements of a server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerProfile {
    /// Service times.
    pub queries: Vec<QueryTime>,
    /// The ladder.
    pub ladder: Vec<Rung>,
    /// The change of the best rung's throughput from its first to its second measurement, as a share.
    pub drift: f64,
    /// What an overloaded open loop serves, over the highest throughput of the ladder; `None` if not measured.
    pub ceiling: Option<f64>,
}

impl ServerProfile {
    /// The mean service time in microseconds with one client, without pauses.
    #[must_use]
    pub fn mean_us(&self) -> f64 {
        let medians: f64 = self.queries.iter().map(|query| query.median_us).sum();
        medians / self.queries.len().max(1) as f64 * self.ladder.first().map_or(1.0, |rung| rung.ratio)
    }

    /// Most answers per second of a rung.
    #[must_use]
    pub fn most_qps(&self) -> f64 {
        self.ladder.iter().map(|rung| rung.qps).fold(0.0, f64::max)
    }

    /// Pauses per query over the whole ladder.
    #[must_use]
    pub fn pauses_per_query(&self) -> f64 {
        let count = |of: fn(&Rung) -> usize| self.ladder.iter().map(of).sum::<usize>();
        count(|rung| rung.pauses) as f64 / count(|rung| rung.times.len()).max(1) as f64
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

    /// The number of queries at once that the simulation gives to the server: its servers, or all clients of the ladder if so many
    /// lower the throughput, since then nothing in the server limits their number.
    #[must_use]
    pub(crate) fn at_once(&self) -> usize {
        let most = self.most_qps();
        let last = self.ladder.iter().rfind(|rung| rung.rejected + rung.failed == 0);
        last.filter(|last| GAIN * last.qps < most).map_or_else(|| self.servers(), |last| last.clients)
    }

    /// By number of busy servers, the service time over that with one.
    #[must_use]
    pub fn slowdown(&self) -> Vec<(u32, f64)> {
        let servers = self.servers();
        let Some(alone) = self.ladder.first().filter(|rung| rung.qps > 0.0) else { return vec![(1, 1.0)] };
        let rungs = self.ladder.iter().filter(|rung| rung.clients <= servers && rung.qps > 0.0);
        rungs.map(|rung| (rung.clients as u32, rung.clients as f64 * alone.qps / rung.qps)).collect()
    }

    /// Queries that waited when the server began to reject; `None` if it rejected none.
    #[must_use]
    pub fn queue_limit(&self) -> Option<usize> {
        let full = self.ladder.iter().find(|rung| rung.rejected > 0)?;
        Some(full.clients.saturating_sub(self.servers()))
    }
}

/// Warms a server up: closed loops of `clients` clients until two in a row have the same throughput. Says how it ended.
///
/// # Errors
/// If a socket fails, or an interrupt came.
pub fn warm_up(client: &Client<'_>, plan: &ProfilePlan, progress: &dyn Progress) -> Result<(), HttpError> {
    let (queries, time) = (sample(client.requests.len(), plan), plan.rung / 2);
    let clients = plan.clients.max(1) * client.targets.len();
    let mut before: f64 = 0.0;
    for passes in 1..=MOST_WARM_UPS {
        progress.lasts(&format!("warm-up, {clients} clients in a closed loop"), time);
        let qps = client.closed(Closed::new(&queries, clients, 0, nanos(time)))?.throughput_qps();
        go_on()?;
        let change = qps / before - 1.0;
        before = qps;
        if change.abs() < WARM || qps == 0.0 {
            progress
                .told(&format!("warm after {passes} passes: {qps:.0} q/s, {:+.1} % to the last pass", 100.0 * change));
            break;
        }
        if passes == MOST_WARM_UPS {
            progress.told(&format!(
                "warning: still not warm after {passes} passes: {qps:.0} q/s, {:+.1} %",
                100.0 * change
            ));
        }
    }
    Ok(())
}

/// What an open loop over all servers of a client serves at more than the throughputs of their closed loops, `most_qps` in
/// all, as a share of these; `None` if queries fail.
///
/// # Errors
/// If a socket fails, or an interrupt came.
pub fn ceiling(
    client: &Client<'_>,
    most_qps: f64,
    plan: &ProfilePlan,
    progress: &dyn Progress,
) -> Result<Option<f64>, HttpError> {
    let qps = OVERLOAD * most_qps;
    progress.lasts(&format!("overloaded open loop at {qps:.0} q/s"), plan.rung);
    let count = (qps * plan.rung.as_secs_f64()).ceil().max(1.0) as usize;
    let arrivals = Arrivals::drawn(&ArrivalProcess::Poisson, plan.seed, count, client.requests.len());
    let run = client.drive(&arrivals, qps, 0.0)?;
    go_on()?;
    progress.end();
    Ok((run.not_sent() == 0 && run.throughput_qps() > 0.0).then(|| run.throughput_qps() / most_qps))
}

/// Measures a server.
///
/// # Errors
/// If no query gets an answer, a socket fails, or an interrupt came.
pub fn measure_server(
    client: &Client<'_>,
    plan: &ProfilePlan,
    progress: &dyn Progress,
) -> Result<ServerProfile, HttpError> {
    warm_up(client, plan, progress)?;
    let queries = sample(client.requests.len(), plan);
    progress.lasts("service times with one client", plan.service);
    let (times, medians) = service_times(&queries, &rounds(client, &queries, plan.service)?, client.requests.len());
    let mut profile = ServerProfile { queries: times, ..ServerProfile::default() };
    if profile.queries.is_empty() {
        return Err(HttpError::NoAnswer(String::from("no query was answered within the time for service times")));
    }
    let known: Vec<u32> = profile.queries.iter().map(|query| query.query).collect();
    let mean_us = profile.queries.iter().map(|query| query.median_us).sum::<f64>() / known.len() as f64;
    let measure = |clients: usize| {
        progress.lasts(&format!("{clients} clients in a closed loop"), plan.rung);
        let run = client.closed(Closed::new(&known, clients, 0, nanos(plan.rung)))?;
        go_on().map(|()| rung(clients, &run, &medians, mean_us))
    };
    let mut clients = 1;
    // Beyond the plan, one of the last two rungs must have raised the throughput.
    while clients <= plan.clients.max(1) || (4 * profile.servers() >= clients && clients <= client.limits.connections) {
        profile.ladder.push(measure(clients)?);
        clients *= 2;
    }
    let best = profile.servers();
    let (again, before) = (measure(best)?.qps, profile.ladder.iter().find(|rung| rung.clients == best));
    profile.drift = before.filter(|rung| rung.qps > 0.0).map_or(0.0, |rung| (again / rung.qps - 1.0).abs());
    progress.end();
    Ok(profile)
}

fn go_on() -> Result<(), HttpError> {
    if live::interrupted() { Err(HttpError::Interrupted) } else { Ok(()) }
}

fn nanos(time: Duration) -> Nanos {
    Nanos(time.as_nanos() as u64)
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

/// One client asks as many queries as it can once, then these again, both with its share of the time.
fn rounds(client: &Client<'_>, queries: &[u32], time: Duration) -> Result<[Run; 2], HttpError> {
    let first = client.closed(Closed::new(queries, 1, 0, nanos(time.mul_f64(FIRST_SHARE))))?;
    go_on()?;
    let known = &queries[..first.records.len().clamp(1, queries.len())];
    let second = client.closed(Closed::new(known, 1, 0, nanos(time.mul_f64(1.0 - FIRST_SHARE))))?;
    go_on().map(|()| [first, second])
}

/// The service times of the queries that were answered, and the median of each query of the log.
fn service_times(queries: &[u32], rounds: &[Run], log: usize) -> (Vec<QueryTime>, Vec<f64>) {
    let mut by_query: Vec<Vec<f64>> = vec![Vec::new(); log];
    let mut hits = vec![0; log];
    for record in rounds.iter().flat_map(Run::answered) {
        by_query[record.query as usize].push(record.service().as_us());
        hits[record.query as usize] = record.hits;
    }
    let medians: Vec<f64> =
        by_query.into_iter().map(|times| if times.is_empty() { f64::NAN } else { median(times) }).collect();
    let known = queries.iter().filter(|&&query| medians[query as usize] > 0.0);
    let time = |&query: &u32| {
        let at = query as usize;
        QueryTime { query, median_us: medians[at], hits: hits[at] }
    };
    (known.map(time).collect(), medians)
}

/// A rung, whose times are scaled so that `clients` servers of this speed, which draw queries with a mean median of `mean_us`, have
/// its throughput. Without that, long queries, which are slowed down less than short ones, would count too much.
fn rung(clients: usize, run: &Run, medians: &[f64], mean_us: f64) -> Rung {
    let latency = run.histogram(Record::latency);
    let (rejected, qps) = (run.count(Outcome::Rejected), run.throughput_qps());
    let answered: Vec<&Record> = run.answered().collect();
    // Each time over its query's median, and its pause in microseconds.
    let seen = stretches(&answered).map(|record| {
        let (us, usual) = (record.service().as_us(), medians[record.query as usize]);
        let is_paused = us > PAUSE_MEDIANS * usual && us > usual + PAUSE_LEAST_US;
        if is_paused { (1.0, us - usual) } else { (us / usual, 0.0) }
    });
    let (ratios, paused_us): (Vec<f64>, Vec<f64>) = seen.unzip();
    let failed = run.records.len() - answered.len() - rejected;
    let count = ratios.len() as f64;
    let mean_pause_us = paused_us.iter().sum::<f64>() / count;
    let scale = (1e6 * clients as f64 / qps - mean_pause_us) / (mean_us * ratios.iter().sum::<f64>() / count);
    let scale = if rejected + failed == 0 && scale > 0.0 && scale.is_finite() { scale } else { 1.0 };
    let times = ratios.iter().zip(&paused_us).map(|(ratio, us)| scale * ratio + us / mean_us).collect();
    let (ratio, pauses) =
        (scale * ratios.iter().sum::<f64>() / count, paused_us.iter().filter(|&&us| us > 0.0).count());
    let ms = |percentile| percentile_ms(&latency, percentile);
    Rung { clients, qps, p50_ms: ms(50.0), p99_ms: ms(99.0), rejected, failed, ratio, pauses, times }
}

/// Stretches that are spread over all records, or all of them if they are few.
fn stretches<'a>(all: &'a [&'a Record]) -> impl Iterator<Item = &'a &'a Record> {
    let (count, length) = if all.len() > MOST_TIMES { (MOST_TIMES / STRETCH, STRETCH) } else { (1, all.len()) };
    let begin = move |stretch| stretch * (all.len() - length) / (count - 1).max(1);
    (0..count).flat_map(move |stretch| &all[begin(stretch)..begin(stretch) + length])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A server of 100 queries of a millisecond: clients, answers per second, and rejected queries by rung.
    pub(crate) fn ladder(rungs: &[(usize, f64, usize)]) -> ServerProfile {
        let rung = |&(clients, qps, rejected): &(usize, f64, usize)| {
            let ms = clients as f64 / qps * 1e3;
            Rung {
                clients,
                qps,
                p50_ms: Some(ms),
                p99_ms: Some(ms),
                rejected,
                failed: 0,
                ratio: ms,
                pauses: 0,
                times: vec![ms; 100],
            }
        };
        let queries = (0..100).map(|query| QueryTime { query, median_us: 1000.0, hits: 10 }).collect();
        ServerProfile { queries, ladder: rungs.iter().map(rung).collect(), ..ServerProfile::default() }
    }

    #[test]
    fn servers_slowdown_and_queue_limit_follow_from_the_ladder() {
        let two = ladder(&[(1, 1000.0, 0), (2, 1600.0, 0), (4, 1620.0, 0), (8, 1630.0, 5)]);
        assert_eq!((two.servers(), two.queue_limit()), (2, Some(6)));
        assert_eq!(two.slowdown(), [(1, 1.0), (2, 1.25)]);
        let one = ladder(&[(1, 1000.0, 0), (2, 1010.0, 0)]);
        assert_eq!((one.servers(), one.at_once(), one.queue_limit()), (1, 1, None));
        // Four clients are slower than two.
        let thrashes = ladder(&[(1, 1000.0, 0), (2, 1500.0, 0), (4, 1300.0, 0)]);
        assert_eq!((thrashes.servers(), thrashes.at_once()), (2, 4));
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
            failure: None,
        };
        let queries: Vec<u32> = (0..10).collect();
        let (times, medians) = service_times(&queries, std::slice::from_ref(&run), 10);
        let found = rung(1, &run, &medians, 200.0);
        assert_eq!((times.len(), times[3].median_us, found.times.len(), found.pauses), (10, 200.0, 3000, 30));
        // A query each millisecond, of which pauses take 88 us.
        assert!((found.ratio - 4.56).abs() < 0.01 && (found.times[0] - found.ratio).abs() < 1e-9, "{}", found.ratio);
        assert!((found.times[107] - found.ratio - 44.0).abs() < 1e-9, "{}", found.times[107]);
        let refs: Vec<&Record> = run.records.iter().cycle().take(3 * MOST_TIMES).collect();
        let kept: Vec<&Record> = stretches(&refs).copied().collect();
        assert_eq!((kept.len(), kept[0].job, kept[1].job), (MOST_TIMES, 0, 1));
        assert_eq!(kept[MOST_TIMES - 1].job, refs[refs.len() - 1].job);
        let mut drawn = sample(50, &ProfilePlan { queries: 20, ..ProfilePlan::usual(2) });
        drawn.sort_unstable();
        drawn.dedup();
        assert_eq!(drawn.len(), 20);
    }
}
