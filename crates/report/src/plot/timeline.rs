//! The course of a run: the number of waiting queries, and the batches of each lane.

use tandem_model::base::ids::ProcessorId;
use tandem_model::base::machine::Class;
use tandem_model::base::time::Nanos;
use tandem_model::sched::{LogRow, RunLog};

use super::axis::Axis;
use super::canvas::{Anchor, Canvas, Drawing, LABEL_SIZE, Position, TICK_SIZE, text_width};
use super::look::{Colour, Medium, Stroke};
use crate::number::text;

#[derive(Clone, Debug)]
pub(crate) struct Timeline<'a> {
    pub(crate) title: String,
    pub(crate) log: &'a RunLog,
}

type Lane = (Class, ProcessorId);

#[derive(Clone, Copy, Debug)]
struct Bar {
    lane: Lane,
    started: Nanos,
    finished: Nanos,
    has_missed: bool,
}

/// Looks of the queue, of batches on GPUs and on CPUs, and of batches with missed deadlines.
const QUEUE_LOOK: Colour = Colour::Series(14);
const GPU_LOOK: Colour = Colour::Series(0);
const CPU_LOOK: Colour = Colour::Series(2);
const MISSED_LOOK: Colour = Colour::Series(1);

const QUEUE: (f64, f64) = (30.0, 130.0);
const LANES_TOP: f64 = QUEUE.1 + 28.0;
const LANE: f64 = 19.0;
const MOST_BATCHES: usize = 600;
const MOST_LANES: usize = 24;
/// Narrower steps of the queue are merged into one of the maximum height.
const STEP: f64 = 0.5;

impl Timeline<'_> {
    /// The figure, or `None` if the log is empty.
    pub(crate) fn drawn(&self, medium: Medium) -> Option<Drawing> {
        let batches = batches(self.log);
        let (from, to) = stretch(&batches, self.log)?;
        let mut lanes: Vec<Lane> = batches.iter().map(|batch| batch.lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let hidden = lanes.len().saturating_sub(MOST_LANES);
        lanes.truncate(MOST_LANES);
        let queue = queue(self.log, from, to);
        let longest = queue.iter().map(|(_, count)| *count).max().unwrap_or(0);
        let counts = Axis::new([0.0, longest.max(1) as f64], false);
        let counts: Vec<(f64, String)> = counts.ticks().into_iter().filter(|(tick, _)| tick.fract() == 0.0).collect();
        let most = counts.last().map_or(1.0, |(tick, _)| *tick);
        let name = |(class, processor): &Lane| format!("{class} {processor}");
        let names = lanes.iter().map(name).chain(counts.iter().map(|(_, text)| text.clone()));
        let left = names.map(|name| text_width(&name, TICK_SIZE)).fold(0.0, f64::max) + 14.0;
        let end_ms = to.since(from).as_ms().max(1e-6);
        let across_ms = |ms: f64| left + (ms / end_ms).clamp(0.0, 1.0) * (medium.width() - left - 14.0);
        let across = |at: Nanos| across_ms(at.since(from).as_ms());
        let bottom = LANES_TOP + LANE * lanes.len() as f64 + 4.0;
        let up = |count: f64| QUEUE.1 - count / most * (QUEUE.1 - QUEUE.0);
        let mut canvas = Canvas::new(medium, bottom + 48.0);
        canvas.text("queries waiting", (6.0, 12.0), LABEL_SIZE, Anchor::Start);
        canvas.text("lanes", (6.0, LANES_TOP - 12.0), LABEL_SIZE, Anchor::Start);
        let times = Axis::new([0.0, end_ms], false).ticks();
        canvas.ticks_below(&times, |ms| (ms <= end_ms).then(|| across_ms(ms)), (QUEUE.0, bottom));
        let label = format!("time since {} ms (ms)", text(from.as_ms(), 4));
        canvas.text(&label, (medium.width() / 2.0, bottom + 34.0), LABEL_SIZE, Anchor::Middle);
        for (count, text) in counts.iter().step_by(counts.len().div_ceil(4).max(1)) {
            canvas.line(&[(left, up(*count)), (medium.width() - 14.0, up(*count))], Colour::Grid, 1.0, Stroke::Solid);
            canvas.text(text, (left - 7.0, up(*count)), TICK_SIZE, Anchor::End);
        }
        canvas.area(&outline(&queue, &across, &up, across(to)), QUEUE_LOOK, 0.5);
        for (i, lane) in lanes.iter().enumerate() {
            let top = LANES_TOP + LANE * i as f64;
            canvas.text(&name(lane), (left - 7.0, top + LANE / 2.0), TICK_SIZE, Anchor::End);
            let there = |batch: &&Bar| batch.lane == *lane && batch.finished >= from && batch.started <= to;
            for batch in batches.iter().filter(there) {
                let (x, x2) = (across(batch.started), across(batch.finished));
                let look = match batch.lane.0.is_gpu() {
                    _ if batch.has_missed => MISSED_LOOK,
                    true => GPU_LOOK,
                    false => CPU_LOOK,
                };
                canvas.block((x, top + 2.0), (x2.max(x + 0.4), top + LANE - 2.0), look, 1.0);
            }
        }
        let description = format!(
            "From {} to {} ms of the run: at most {longest} queries wait; {}.",
            text(from.as_ms(), 4),
            text(to.as_ms(), 4),
            busy(&batches, &lanes, from, to)
        );
        let beyond = if hidden > 0 { format!(" {hidden} more lanes are not shown.") } else { String::new() };
        let note = format!(
            "{description} Each block is a query or a batch. Orange blocks contain queries that missed their deadline.{beyond} \
             `--perfetto FILE` writes the whole run for Perfetto."
        );
        Some(Drawing { title: self.title.clone(), description, note, canvas })
    }
}

/// The utilisation of the lanes during the stretch, as text.
fn busy(batches: &[Bar], lanes: &[Lane], from: Nanos, to: Nanos) -> String {
    let of_kind = |name: &str, is_gpu: bool| {
        let count = lanes.iter().filter(|lane| lane.0.is_gpu() == is_gpu).count();
        let some = batches.iter().filter(|batch| batch.lane.0.is_gpu() == is_gpu);
        let busy_s: f64 = some.map(|batch| batch.finished.min(to).since(batch.started.max(from)).as_secs()).sum();
        let share = (busy_s / (count as f64 * to.since(from).as_secs()).max(1e-12)).min(1.0);
        (count > 0).then(|| format!("{name} lanes busy {:.0} %", 100.0 * share))
    };
    let kinds: Vec<String> = [of_kind("CPU", false), of_kind("GPU", true)].into_iter().flatten().collect();
    kinds.join(", ")
}

/// Number of waiting queries at the start of the stretch and after each change.
fn queue(log: &RunLog, from: Nanos, to: Nanos) -> Vec<(Nanos, usize)> {
    let steps = waiting(log);
    let before = steps.iter().take_while(|(at, _)| *at < from).last().map_or(0, |(_, count)| *count);
    std::iter::once((from, before)).chain(steps.into_iter().filter(|(at, _)| (from..=to).contains(at))).collect()
}

/// The outline of the queue's area.
fn outline(
    queue: &[(Nanos, usize)],
    across: &dyn Fn(Nanos) -> f64,
    up: &dyn Fn(f64) -> f64,
    right: f64,
) -> Vec<Position> {
    let mut steps: Vec<(f64, usize)> = Vec::new();
    for &(at, count) in queue {
        let x = across(at);
        match steps.last_mut() {
            Some((x0, highest)) if x - *x0 < STEP => *highest = count.max(*highest),
            _ => steps.push((x, count)),
        }
    }
    let ends = steps.iter().skip(1).map(|(x, _)| *x).chain([right]);
    let tops = steps.iter().zip(ends).flat_map(|(&(x, count), end)| [(x, up(count as f64)), (end, up(count as f64))]);
    let left = steps.first().map_or(right, |(x, _)| *x);
    std::iter::once((left, up(0.0))).chain(tops).chain([(right, up(0.0))]).collect()
}

/// Number of waiting queries after each change. A query that starts on arrival never waits.
fn waiting(log: &RunLog) -> Vec<(Nanos, usize)> {
    let arrivals = log.rows.iter().map(|row| (row.arrival, 1));
    let starts = log.rows.iter().map(|row| (row.started, -1));
    let mut steps: Vec<(Nanos, i64)> = arrivals.chain(starts).collect();
    steps.sort_unstable();
    let mut count = 0_i64;
    let at_once = steps.chunk_by(|a, b| a.0 == b.0).map(|steps| {
        count += steps.iter().map(|(_, step)| step).sum::<i64>();
        (steps[0].0, usize::try_from(count).unwrap_or(0))
    });
    at_once.collect()
}

fn batches(log: &RunLog) -> Vec<Bar> {
    let mut rows: Vec<&LogRow> = log.rows.iter().collect();
    rows.sort_unstable_by_key(|row| row.batch);
    let batch = |rows: &[&LogRow]| Bar {
        lane: (rows[0].class, rows[0].processor),
        started: rows[0].started,
        finished: rows[0].finished,
        has_missed: rows.iter().any(|row| row.missed()),
    };
    let mut batches: Vec<Bar> = rows.chunk_by(|a, b| a.batch == b.batch).map(batch).collect();
    batches.sort_unstable_by_key(|batch| batch.started);
    batches
}

/// The stretch to show: the whole run, or [`MOST_BATCHES`] around the longest queue.
fn stretch(batches: &[Bar], log: &RunLog) -> Option<(Nanos, Nanos)> {
    let (first, last) = (batches.first()?.started, batches.iter().map(|batch| batch.finished).max()?);
    let first = log.rows.iter().map(|row| row.arrival).min()?.min(first);
    if batches.len() <= MOST_BATCHES {
        return Some((first, last));
    }
    let (peak, _) = waiting(log).into_iter().max_by_key(|&(at, count)| (count, std::cmp::Reverse(at)))?;
    let middle = batches.partition_point(|batch| batch.started < peak);
    let begin = middle.saturating_sub(MOST_BATCHES / 2).min(batches.len() - MOST_BATCHES);
    Some((batches[begin].started, batches[begin + MOST_BATCHES - 1].finished))
}
