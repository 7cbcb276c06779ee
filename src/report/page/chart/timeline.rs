//! A run as it happened: how many queries waited, and what each lane did.

use std::fmt::Write as _;

use super::lines::figure;
use super::plane::{WIDTH, upright_tick};
use crate::ids::ProcessorId;
use crate::machine::Class;
use crate::report::axis::{Axis, tick_text};
use crate::report::number::counted;
use crate::report::page::html::{escaped, number};
use crate::sched::{LogRow, RunLog};
use crate::time::Nanos;

/// A stretch of a run.
#[derive(Clone, Debug)]
pub(in crate::report::page) struct Timeline<'a> {
    pub(in crate::report::page) id: String,
    pub(in crate::report::page) title: String,
    pub(in crate::report::page) log: &'a RunLog,
}

type Lane = (Class, ProcessorId);

/// A batch on a lane.
#[derive(Clone, Copy, Debug)]
struct Batch {
    lane: Lane,
    started: Nanos,
    finished: Nanos,
    queries: usize,
    missed: usize,
}

const LEFT: f64 = 80.0;
const TOP: f64 = 26.0;
const QUEUE_HEIGHT: f64 = 110.0;
const GAP: f64 = 26.0;
const LANES_TOP: f64 = TOP + QUEUE_HEIGHT + GAP;
const LANE: f64 = 20.0;
/// Batches that fit a picture; the stretch shown is as long as about so many.
const MOST_BATCHES: usize = 600;
/// Lanes that fit a picture.
const MOST_LANES: usize = 24;

impl Batch {
    /// Its block, on a lane whose upper edge is at `top`.
    fn draw(&self, top: f64, across: &dyn Fn(Nanos) -> f64, svg: &mut String) {
        let (x, x2) = (across(self.started), across(self.finished));
        let tip = format!(
            "{} {}: {} for {} µs from {} ms on{}",
            self.lane.0,
            self.lane.1,
            counted(self.queries, "query", "queries"),
            number(self.finished.since(self.started).as_us()),
            number(self.started.as_ms()),
            if self.missed > 0 { format!("; {} missed", self.missed) } else { String::new() },
        );
        let class = if self.missed > 0 { "batch missed" } else { "batch" };
        let look = if self.lane.0.is_gpu() { 0 } else { 1 };
        let _ = write!(
            svg,
            "<rect class=\"{class} c{look}\" x=\"{x:.2}\" y=\"{:.1}\" width=\"{:.2}\" height=\"{}\" data-t=\"{}\"/>",
            top + 2.0,
            (x2 - x).max(0.4),
            LANE - 4.0,
            escaped(&tip)
        );
    }
}

/// Grid, ticks and what the axes are.
fn frame(from: Nanos, to: Nanos, bottom: f64, svg: &mut String) {
    let axis = Axis::new([(to.0 - from.0) as f64 / 1e6], false);
    let end_ms = to.since(from).as_ms().max(1e-6);
    svg.push_str("<g class=\"grid\">");
    let mut ticks = String::from("</g><g class=\"ticks\">");
    for (i, &tick) in axis.ticks().iter().enumerate().filter(|(_, tick)| **tick <= end_ms) {
        let x = LEFT + tick / end_ms * (WIDTH - LEFT - 16.0);
        upright_tick(i, x, (TOP, bottom), &tick_text(tick), svg, &mut ticks);
    }
    let _ = write!(
        svg,
        "{ticks}</g><text class=\"label\" x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\">time since {} ms (ms)</text><text class=\"label\" x=\"0\" y=\"14\">queries waiting</text><text class=\"label\" x=\"0\" y=\"{:.0}\">lanes</text>",
        (LEFT + WIDTH) / 2.0,
        bottom + 38.0,
        number(from.as_ms()),
        LANES_TOP - 8.0
    );
}

/// How busy lanes were in the stretch, in words.
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

impl Timeline<'_> {
    /// The figure; nothing of an empty log.
    pub(in crate::report::page) fn html(&self) -> String {
        let batches = batches(self.log);
        let Some((from, to)) = stretch(&batches, self.log) else { return String::new() };
        let mut lanes: Vec<Lane> = batches.iter().map(|batch| batch.lane).collect();
        lanes.sort_unstable();
        lanes.dedup();
        let hidden = lanes.len().saturating_sub(MOST_LANES);
        lanes.truncate(MOST_LANES);
        let end_ms = to.since(from).as_ms().max(1e-6);
        let across = |at: Nanos| LEFT + (at.since(from).as_ms() / end_ms).clamp(0.0, 1.0) * (WIDTH - LEFT - 16.0);
        let bottom = LANES_TOP + LANE * lanes.len() as f64 + 4.0;
        let mut svg = String::new();
        frame(from, to, bottom, &mut svg);
        let longest = self.queues(from, to, &across, &mut svg);
        for (i, (class, processor)) in lanes.iter().enumerate() {
            let _ = write!(
                svg,
                "<text class=\"name\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{class} {processor}</text>",
                LEFT - 8.0,
                LANES_TOP + LANE * i as f64 + LANE / 2.0 + 4.0
            );
        }
        for batch in batches.iter().filter(|batch| batch.finished >= from && batch.started <= to) {
            let Some(i) = lanes.iter().position(|lane| *lane == batch.lane) else { continue };
            batch.draw(LANES_TOP + LANE * i as f64, &across, &mut svg);
        }
        let description = format!(
            "From {} to {} ms of the run: at most {} queries wait; {}.",
            number(from.as_ms()),
            number(to.as_ms()),
            number(longest as f64),
            busy(&batches, &lanes, from, to)
        );
        let beyond = if hidden > 0 { format!(" {hidden} more lanes are not shown.") } else { String::new() };
        let note = format!(
            "{description} Each block is a query or a batch; orange ones have queries that missed their deadline.{beyond} The whole run opens in Perfetto: --perfetto FILE."
        );
        figure(&self.id, &self.title, &description, bottom + 48.0, &svg, "", &note)
    }

    /// How many queries waited over the stretch; gives the most.
    fn queues(&self, from: Nanos, to: Nanos, across: &dyn Fn(Nanos) -> f64, svg: &mut String) -> usize {
        let steps = waiting(self.log);
        let before = steps.iter().take_while(|(at, _)| *at < from).last().map_or(0, |(_, count)| *count);
        let inside: Vec<_> = steps.into_iter().filter(|(at, _)| (from..=to).contains(at)).collect();
        let longest = inside.iter().map(|(_, count)| *count).chain([before]).max().unwrap_or(0);
        let axis = Axis::new([longest.max(1) as f64], false);
        let top = axis.ticks().last().copied().unwrap_or(1.0);
        let up = |count: usize| TOP + QUEUE_HEIGHT - count as f64 / top * QUEUE_HEIGHT;
        for &tick in [0.0, top / 2.0, top].iter().filter(|tick| tick.fract() == 0.0) {
            let _ = write!(
                svg,
                "<text class=\"tick\" x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                LEFT - 8.0,
                up(tick as usize) + 4.0,
                tick_text(tick)
            );
        }
        let mut d = format!("M{LEFT} {:.1}V{:.1}", up(0), up(before));
        // Of the steps within half a unit of width, the highest.
        let mut pending: Option<(f64, usize)> = None;
        for (at, count) in inside {
            let x = across(at);
            pending = Some(match pending {
                Some((x0, highest)) if x - x0 < 0.5 => (x0, highest.max(count)),
                Some((x0, highest)) => {
                    let _ = write!(d, "H{x0:.1}V{:.1}", up(highest));
                    (x, count)
                }
                None => (x, count),
            });
        }
        if let Some((x, count)) = pending {
            let _ = write!(d, "H{x:.1}V{:.1}", up(count));
        }
        let _ = write!(d, "H{:.1}V{:.1}z", across(to), up(0));
        let _ = write!(svg, "<path class=\"queue\" d=\"{d}\"/>");
        longest
    }
}

/// How many queries wait from each time on at which that changes. Who is started on arrival never waits.
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
        queries: rows.len(),
        missed: rows.iter().filter(|row| row.missed()).count(),
    };
    let mut batches: Vec<Batch> = rows.chunk_by(|a, b| a.batch == b.batch).map(batch).collect();
    batches.sort_unstable_by_key(|batch| batch.started);
    batches
}

/// The stretch to show: all, or around the longest queue as much as fits a picture.
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
