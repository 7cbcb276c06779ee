//! The course of a run: the number of waiting queries, and the batches of each lane.

use plotters::element::{Polygon, Rectangle};
use plotters::style::Color;
use plotters::style::text_anchor::HPos;
use tandem_model::base::ids::ProcessorId;
use tandem_model::base::machine::Class;
use tandem_model::base::time::Nanos;
use tandem_model::sched::{LogRow, RunLog};

use super::html::{self, FIGURE_WIDTH};
use crate::number::text;
use crate::plot::axis::Axis;
use crate::plot::look::shade;
use crate::plot::paper::{self, BELOW, LABEL, Position, panel, widest};

type Lane = (Class, ProcessorId);

#[derive(Clone, Copy, Debug)]
struct Batch {
    lane: Lane,
    started: Nanos,
    finished: Nanos,
    has_missed: bool,
}

/// Colours of the queue, of batches on GPUs and on CPUs, and of batches with missed deadlines.
const QUEUE_COLOUR: usize = 14;
const GPU_COLOUR: usize = 0;
const CPU_COLOUR: usize = 2;
const MISSED_COLOUR: usize = 1;

/// Top and bottom of the queue, and the height of a lane.
const QUEUE: [i32; 2] = [300, 1300];
const LANE: i32 = 190;
const MOST_BATCHES: usize = 600;
const MOST_LANES: usize = 24;
/// Narrower steps of the queue are merged into one of the maximum height.
const STEP: i32 = 5;

/// The figure, or nothing if the log is empty.
pub(super) fn figure(id: &str, title: &str, log: &RunLog) -> String {
    let batches = batches(log);
    let Some((from, to)) = stretch(&batches, log) else { return String::new() };
    let mut lanes: Vec<Lane> = batches.iter().map(|batch| batch.lane).collect();
    lanes.sort_unstable();
    lanes.dedup();
    let hidden = lanes.len().saturating_sub(MOST_LANES);
    lanes.truncate(MOST_LANES);
    let queue = queue(log, from, to);
    let longest = queue.iter().map(|(_, count)| *count).max().unwrap_or(0);
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
    let names: Vec<String> = lanes.iter().map(|(class, processor)| format!("{class} {processor}")).collect();
    // The time ends with the run, whether there is a tick or not.
    let end_ms = to.since(from).as_ms().max(1e-6);
    let mut times = Axis::new([0.0, end_ms], false);
    times.high = end_ms;
    times.ticks.retain(|(tick, _)| *tick <= end_ms);
    let rows = Axis::rows(&names);
    let mut counts = Axis::new([0.0, longest.max(1) as f64], false);
    counts.ticks.retain(|(tick, _)| tick.fract() == 0.0);
    let step = counts.ticks.len().div_ceil(4);
    counts.ticks = counts.ticks.into_iter().step_by(step).collect();
    let sides = [widest(names.iter().chain(counts.ticks.iter().map(|(_, text)| text))) + 140, FIGURE_WIDTH - 140];
    let [top, bottom] = [QUEUE[1] + 280, QUEUE[1] + 320 + LANE * lanes.len() as i32];
    html::figure(id, [title, &description, &note], |area| {
        paper::text(area, "queries waiting", (60, 120), LABEL, HPos::Left)?;
        paper::text(area, "lanes", (60, top - 120), LABEL, HPos::Left)?;
        let waiting = panel(area, QUEUE, sides, (times.clone(), counts), None)?;
        let place = |at: Nanos, count: usize| waiting.backend_coord(&(at.since(from).as_ms(), count as f64));
        let mut steps: Vec<Position> = Vec::new();
        for (x, y) in queue.iter().map(|&(at, count)| place(at, count)) {
            match steps.last_mut() {
                Some((last, highest)) if x - *last < STEP => *highest = y.min(*highest),
                _ => steps.push((x, y)),
            }
        }
        let ends = steps.iter().skip(1).map(|(x, _)| *x).chain([sides[1]]);
        let tops = steps.iter().zip(ends).flat_map(|(&(x, y), end)| [(x, y), (end, y)]);
        let outline: Vec<Position> = [place(from, 0)].into_iter().chain(tops).chain([place(to, 0)]).collect();
        area.draw(&Polygon::new(outline, shade(QUEUE_COLOUR).mix(0.5).filled()))?;
        panel(
            area,
            [top, bottom],
            sides,
            (times, rows),
            Some(&format!("time since {} ms (ms)", text(from.as_ms(), 4))),
        )?;
        for batch in batches.iter().filter(|batch| batch.finished >= from && batch.started <= to) {
            let Some(lane) = lanes.iter().position(|lane| *lane == batch.lane) else { continue };
            let colour = match batch.lane.0.is_gpu() {
                _ if batch.has_missed => MISSED_COLOUR,
                true => GPU_COLOUR,
                false => CPU_COLOUR,
            };
            let [x, end] = [batch.started, batch.finished].map(|at| place(at, 0).0);
            let y = top + 20 + LANE * lane as i32;
            area.draw(&Rectangle::new([(x, y + 20), (end.max(x + 4), y + LANE - 20)], shade(colour).filled()))?;
        }
        Ok(bottom + BELOW + 40)
    })
}

/// The utilisation of the lanes during the stretch, as text.
fn busy(batches: &[Batch], lanes: &[Lane], from: Nanos, to: Nanos) -> String {
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

fn batches(log: &RunLog) -> Vec<Batch> {
    let mut rows: Vec<&LogRow> = log.rows.iter().collect();
    rows.sort_unstable_by_key(|row| row.batch);
    let batch = |rows: &[&LogRow]| Batch {
        lane: (rows[0].class, rows[0].processor),
        started: rows[0].started,
        finished: rows[0].finished,
        has_missed: rows.iter().any(|row| row.missed()),
    };
    let mut batches: Vec<Batch> = rows.chunk_by(|a, b| a.batch == b.batch).map(batch).collect();
    batches.sort_unstable_by_key(|batch| batch.started);
    batches
}

/// The stretch to show: the whole run, or [`MOST_BATCHES`] around the longest queue.
fn stretch(batches: &[Batch], log: &RunLog) -> Option<(Nanos, Nanos)> {
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
