//! Replays of a record: today's predictions of its cells.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use rayon::prelude::*;
use tandem_model::base::machine::{Class, Machine};
use tandem_model::base::stats::significant;
use tandem_model::base::time::Nanos;
use tandem_model::cost::MachineModel;
use tandem_model::sched::{BuiltIn, PolicyKind, PolicyOptions};
use tandem_model::sim::{Arrivals, Experiment, SimQuery};
use tandem_model::study::forecast::{Planned, forecast, simulated, slowed};
use tandem_model::study::interval::least_predicted_half_width;
use tandem_model::study::simulated::profiled_machine;
use tandem_model::study::{
    Bound, CapacitySearch, Criterion, Estimates, Forecast, Objective, Progress, QueryLengths, RunLength, Summary,
    draw_all, in_pieces, sim_queries,
};
use tandem_model::traffic::ArrivalProcess;

use super::ablation::Number;
use super::cell::{Cell, RecordedCell};
use super::compare::{Compared, Predicted, Quantity, factor_error};
use crate::lab::LabError;
use crate::lab::simulated_node::SimulatedNode;

/// The seed of capacities. Short runs of one seed repeat within half a per cent what the search of a prediction finds with
/// many long ones, in a thirtieth of the time. The interval of the prediction therefore stays.
const SEED: u64 = 1;
/// Delays are compared up to this share of the measured capacity. Beyond it they depend on the length of the run.
const MOST_LOAD: f64 = 0.85;
/// The search for the speed at which a prediction is right: its first step, the most steps, the distance of logarithms at which
/// it ends, and the largest factor.
const FIRST_STEP: f64 = 1.05;
const MOST_STEPS: usize = 4;
const NEAR: f64 = 0.01;
const MOST_SLOWER: f64 = 5.0;
/// Below this share of the predicted capacity, each forecast must hold.
const MUST_HOLD: f64 = 0.97;

/// What a replay predicts with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Given {
    /// What was known before each run.
    Before,
    /// One factor per class between work and predicted work in the run itself: the error that is left is the simulator's own.
    Costs,
    /// What was known before each run, less a number of the machine profile.
    Without(Number),
}

/// The node of some cells.
struct Twin {
    profiled: MachineModel,
    model: MachineModel,
    queries: Vec<SimQuery>,
    known: usize,
    lengths: QueryLengths,
    /// The format version of the machine file; 0 without one.
    profile: u64,
    given: Given,
}

impl Twin {
    /// The values that cells of one node share.
    fn key(cell: &Cell) -> [String; 7] {
        let Cell { workload, machine_file, held_out, cpus, gpus, gpu_lane_depth, .. } = cell;
        let lanes = [*held_out, *cpus, *gpus, *gpu_lane_depth as usize].map(|count| count.to_string());
        let [held_out, cpus, gpus, depth] = lanes;
        [workload.clone(), machine_file.clone(), held_out, cpus, gpus, depth, cell.is_gpu_replayed().to_string()]
    }

    fn of(recorded: &RecordedCell, given: Given) -> Result<Self, LabError> {
        let cell = &recorded.cell;
        let workload = recorded.read_workload()?;
        let machine = Machine::new(cell.cpus, 0).with_gpus(cell.gpus, 1, cell.gpu_lane_depth);
        let (estimates, _) = Estimates::default().suited_to(&workload);
        let queries = sim_queries(&workload, &estimates, &machine)?;
        let is_real = cell.gpus > 0 && !cell.is_gpu_replayed();
        let profiled = profiled_machine(machine, &workload, is_real.then_some(&estimates));
        let is_played = |class: Class| class.is_gpu() && cell.is_gpu_replayed();
        let (model, profile) = match recorded.read_machine_file()? {
            Some(mut file) => {
                if let Given::Without(number) = given {
                    number.take_out(&mut file);
                }
                (file.model(&profiled, is_played), file.version())
            }
            None => (profiled.clone(), 0),
        };
        let of_policies: Vec<_> = queries.iter().map(|query| query.estimate).collect();
        let lengths = QueryLengths::of(&workload, &of_policies, &model);
        let known = queries.len().saturating_sub(cell.held_out).max(1).min(queries.len());
        Ok(Self { profiled, model, queries, known, lengths, profile, given })
    }

    fn experiment(&self, cell: &Cell, arrivals: Vec<Arrivals>) -> Experiment {
        let costs = if self.given == Given::Costs { cell.own_costs() } else { cell.backlogs() };
        let node = SimulatedNode { profiled: &self.profiled, model: &self.model, queries: &self.queries[..self.known] };
        let mut experiment = node.experiment(Some(&costs), arrivals, Nanos::from_ms(cell.deadline_ms.0));
        if let Some(dispatcher) = cell.dispatcher().filter(|_| !matches!(self.given, Given::Without(_))) {
            experiment.model.dispatcher = Some(Arc::new(dispatcher));
        }
        experiment
    }

    fn policy(&self, kind: PolicyKind) -> BuiltIn {
        let options = PolicyOptions { length_threshold: self.lengths.best_threshold, ..PolicyOptions::default() };
        kind.with(options).with_lengths(self.lengths.blocks.clone())
    }

    /// The capacity.
    fn capacity_qps(&self, recorded: &RecordedCell) -> Result<f64, LabError> {
        let (cell, kind, objective, process) = parsed(recorded);
        let experiment = self.experiment(cell, draw_all(&process, &[SEED], 0, self.known));
        let search = CapacitySearch::new(&experiment, objective, RunLength::default())?;
        let found = search.estimate_capacity_coarse(&[&self.policy(kind)], &|| ())?;
        Ok(found.first().copied().unwrap_or(0.0))
    }

    /// The forecast of a run, and the factors on service times at which its mean and its 99th percentile are the measured ones.
    fn run(&self, recorded: &RecordedCell) -> Result<Option<Slower>, LabError> {
        let (cell, kind, _, process) = parsed(recorded);
        let experiment = self.experiment(cell, Vec::new());
        let run = Planned {
            process: &process,
            qps: cell.rate_qps.0,
            queries: cell.queries,
            live_seed: cell.seed,
            speed_sd: cell.speed_sd.0,
        };
        let policy = self.policy(kind);
        if matches!(self.given, Given::Without(_)) {
            let summary = simulated(&experiment, &policy, run)?;
            let found = summary.map(|summary| Forecast { summary, mean_half_width: 0.0, p99_half_width: 0.0 });
            return Ok(found.map(|found| (found, [None; 2])));
        }
        let Some(found) = forecast(&experiment, &policy, run)? else { return Ok(None) };
        let slower = |measured: Option<f64>, of: fn(&Summary) -> f64| {
            let mut at = |slower| Ok(slowed(&experiment, &policy, run, slower)?.map(|summary| of(&summary)));
            measured.map_or(Ok(None), |measured| slower_by(of(&found.summary), measured, &mut at))
        };
        let [mean_ms, p99_ms] = [cell.mean_ms, cell.p99_ms].map(|ms| ms.map(|ms| ms.0));
        let factors = [slower(mean_ms, |summary| summary.mean_ms)?, slower(p99_ms, |summary| summary.p99_ms)?];
        Ok(Some((found, factors)))
    }
}

/// The factor on all service times that makes a predicted delay equal to the measured one. `at` is the delay on a machine that is
/// slower by a factor. Service time over delay falls about linearly with the factor, as in a queue.
fn slower_by(
    predicted: f64,
    measured: f64,
    at: &mut dyn FnMut(f64) -> Result<Option<f64>, LabError>,
) -> Result<Option<f64>, LabError> {
    let is_near = |a: f64, b: f64| (a / b).ln().abs() < NEAR;
    if is_near(predicted, measured) {
        return Ok(Some(1.0));
    }
    let (mut before, mut slower) =
        ((1.0, 1.0 / predicted), if predicted < measured { FIRST_STEP } else { 1.0 / FIRST_STEP });
    for _ in 0..MOST_STEPS {
        let Some(delay) = at(slower)? else { return Ok(None) };
        if is_near(delay, measured) {
            break;
        }
        let share = slower / delay;
        let falls = (before.1 - share) / (slower - before.0);
        let rest = 1.0 + falls * measured;
        let next = if rest > 0.0 { (before.1 + falls * before.0) * measured / rest } else { MOST_SLOWER };
        let next = next.clamp(1.0 / MOST_SLOWER, MOST_SLOWER);
        if is_near(next, slower) {
            return Ok(Some(next));
        }
        (before, slower) = ((slower, share), next);
    }
    Ok(Some(slower))
}

/// The names in a cell, which were checked when it was read.
fn parsed(recorded: &RecordedCell) -> (&Cell, PolicyKind, Objective, ArrivalProcess) {
    let cell = &recorded.cell;
    (
        cell,
        PolicyKind::from_name(&cell.policy).unwrap_or(PolicyKind::CpuOnly),
        cell.criterion().objective,
        cell.process().unwrap_or(ArrivalProcess::Poisson),
    )
}

/// A forecast, and the factors on service times that make its mean and its 99th percentile the measured ones.
type Slower = (Forecast, [Option<f64>; 2]);

/// What a simulation found.
enum Found {
    /// The comparisons of a policy's capacity in a file, and the capacity.
    Capacity(Vec<Compared>, f64),
    /// The comparisons of a run's delays, and its forecast.
    Delays(Vec<Compared>, Box<(Criterion, Summary)>),
}

/// A simulation, by the positions of its cells.
enum Task {
    /// The capacity of the cells of one policy in one file.
    Capacity(Vec<usize>),
    /// The delays of a cell.
    Delays(usize),
}

/// Predicts all cells anew and compares: the capacity of each policy in each file, delays of runs up to 85 % of the
/// measured capacity, and whether each rate holds. Also returns, in words, the forecasts that miss the objective clearly below the predicted capacity.
///
/// # Errors
/// If a workload or a machine file is missing or damaged, or a policy does not fit the machine.
pub fn replay(
    cells: &[RecordedCell],
    given: Given,
    progress: &dyn Progress,
) -> Result<(Vec<Compared>, Vec<String>), LabError> {
    let twins = twins(cells, given, progress)?;
    let mut groups: BTreeMap<(&str, &str), Vec<usize>> = BTreeMap::new();
    for (at, one) in cells.iter().enumerate() {
        groups.entry((&one.file, &one.cell.policy)).or_default().push(at);
    }
    let is_compared = |cell: &Cell| {
        let capacity_qps = cell.measured_qps().unwrap_or(cell.predicted_qps.0);
        cell.held && cell.mean_ms.is_some() && cell.rate_qps.0 <= MOST_LOAD * capacity_qps
    };
    let delays = (0..cells.len()).filter(|&at| is_compared(&cells[at].cell)).map(Task::Delays);
    let tasks: Vec<Task> = groups.into_values().map(Task::Capacity).chain(delays).collect();
    let found: Vec<Result<Found, LabError>> = in_pieces(progress, "replaying cells", tasks.len(), |done| {
        let of = |task: &Task| {
            let found = match task {
                Task::Capacity(group) => capacities(cells, group, &twins),
                &Task::Delays(at) => delays_of(&cells[at], &twins),
            };
            done();
            found
        };
        tasks.par_iter().map(of).collect()
    });
    let found: Vec<Found> = found.into_iter().collect::<Result<_, _>>()?;
    let mut capacities: HashMap<&str, f64> = HashMap::new();
    let (mut compared, mut delays) = (Vec::new(), Vec::new());
    for one in &found {
        match one {
            Found::Capacity(rows, capacity_qps) => {
                let runs = rows.iter().filter(|row| row.what == Quantity::Held);
                capacities.extend(runs.map(|row| (row.cell.as_str(), *capacity_qps)));
                compared.extend(rows.iter().cloned());
            }
            Found::Delays(rows, of) => {
                let (criterion, summary) = &**of;
                compared.extend(rows.iter().cloned());
                delays.extend(rows.first().map(|row| (row, criterion, summary)));
            }
        }
    }
    let contradiction = |(row, criterion, summary): (&Compared, &Criterion, &Summary)| {
        let capacity_qps = *capacities.get(row.cell.as_str())?;
        let is_below = row.rate_qps.0 < MUST_HOLD * capacity_qps;
        (is_below && misses(criterion, summary)).then(|| {
            let Compared { cell, policy, rate_qps, .. } = row;
            let [p99_ms, capacity_qps] = [summary.p99_ms, capacity_qps].map(|value| significant(value, 4));
            format!(
                "{cell}: {policy} at {rate_qps} q/s misses {criterion} by its forecast (p99 {p99_ms} ms), below its capacity of \
                 {capacity_qps} q/s"
            )
        })
    };
    let contradictions = delays.into_iter().filter_map(contradiction).collect();
    as_before(cells, &mut compared);
    compared.sort_by(|a, b| (a.what, &a.cell).cmp(&(b.what, &b.cell)));
    Ok((compared, contradictions))
}

/// Notes the errors of "as in the run before": the prediction at the speed at which the mean of the last run of the policy in
/// the file would have been right. The capacity follows all runs whose delays are compared.
fn as_before(cells: &[RecordedCell], compared: &mut [Compared]) {
    let inverse = |error: f64| if error >= 0.0 { 1.0 + error } else { 1.0 / (1.0 - error) };
    let slower = |one: &Compared| one.speed_error.map(|error| inverse(error.0));
    let name = |one: &RecordedCell| format!("{}:{}", one.file, one.line);
    let means = compared.iter().filter(|one| one.what == Quantity::Mean);
    let means: HashMap<String, f64> = means.filter_map(|one| Some((one.cell.clone(), slower(one)?))).collect();
    let mut last: HashMap<(&str, &str), f64> = HashMap::new();
    let mut before: HashMap<String, f64> = HashMap::new();
    for one in cells {
        let of_policy = (one.file.as_str(), one.cell.policy.as_str());
        before.extend(last.get(&of_policy).map(|&slower| (name(one), slower)));
        last.extend(means.get(&name(one)).map(|&slower| (of_policy, slower)));
    }
    let last: HashMap<String, f64> = cells
        .iter()
        .filter_map(|one| Some((name(one), *last.get(&(one.file.as_str(), one.cell.policy.as_str()))?)))
        .collect();
    for one in compared {
        let known = if one.what == Quantity::Capacity { &last } else { &before };
        one.before_error =
            slower(&*one).zip(known.get(&one.cell)).map(|(slower, before)| factor_error(slower / before));
    }
}

/// Whether a forecast misses the objective, as far as its percentiles tell.
fn misses(criterion: &Criterion, summary: &Summary) -> bool {
    criterion.bounds().any(|(bound, limit)| match bound {
        Bound::Percentile { share: 0.99, .. } => summary.p99_ms > limit.as_ms(),
        Bound::Tail => summary.p999_ms > limit.as_ms(),
        _ => summary.missed as f64 / summary.queries.max(1) as f64 > bound.late_share(),
    })
}

type Twins = BTreeMap<[String; 7], Twin>;

fn twins(cells: &[RecordedCell], given: Given, progress: &dyn Progress) -> Result<Twins, LabError> {
    let first: BTreeMap<[String; 7], &RecordedCell> =
        cells.iter().rev().map(|one| (Twin::key(&one.cell), one)).collect();
    let first: Vec<([String; 7], &RecordedCell)> = first.into_iter().collect();
    let made: Vec<Result<([String; 7], Twin), LabError>> =
        in_pieces(progress, "reading workloads", first.len(), |done| {
            let of = |(key, one): &([String; 7], &RecordedCell)| {
                let twin = Twin::of(one, given)?;
                done();
                Ok((key.clone(), twin))
            };
            first.par_iter().map(of).collect()
        });
    made.into_iter().collect()
}

/// The comparison of a policy's capacity in a file, and of whether each of its rates holds.
fn capacities(cells: &[RecordedCell], group: &[usize], twins: &Twins) -> Result<Found, LabError> {
    let first = &cells[group[0]];
    let twin = &twins[&Twin::key(&first.cell)];
    let qps = twin.capacity_qps(first)?;
    // Older programs took machines to be steadier than they are.
    let half_width = first.cell.predicted_half_width.0.max(least_predicted_half_width());
    let mut compared = Vec::new();
    if let (Some(measured), true) = (first.cell.measured_qps(), qps > 0.0) {
        let cell = &first.cell;
        let (held, missed) =
            (cell.held_qps.map_or(measured, |qps| qps.0), cell.missed_qps.map_or(measured, |qps| qps.0));
        let known = Predicted {
            value: qps,
            half_width,
            recorded: Some(cell.predicted_qps.0),
            rehearsal: cell.rehearsal_qps.map(|qps| qps.0),
            linear: cell.linear_qps.map(|qps| qps.0),
            slower: Some(qps / measured),
        };
        // The capacity is between both sides: an interval that reaches them contains it.
        let is_inside = qps / (1.0 + half_width) <= missed && held <= qps * (1.0 + half_width);
        compared.push(Compared::of((first, twin.profile), Quantity::Capacity, measured, &known, is_inside));
    }
    for one in group.iter().map(|&at| &cells[at]) {
        let holds = |capacity_qps: f64| f64::from(u8::from(one.cell.rate_qps.0 <= capacity_qps));
        let measured = f64::from(u8::from(one.cell.held));
        let known = Predicted {
            value: holds(qps),
            half_width: 0.0,
            recorded: Some(holds(one.cell.predicted_qps.0)),
            rehearsal: one.cell.rehearsal_qps.map(|qps| holds(qps.0)),
            linear: one.cell.linear_qps.map(|qps| holds(qps.0)),
            slower: None,
        };
        compared.push(Compared::of((one, twin.profile), Quantity::Held, measured, &known, known.value == measured));
    }
    Ok(Found::Capacity(compared, qps))
}

/// The comparison of a run's mean delay and of its 99th percentile.
fn delays_of(one: &RecordedCell, twins: &Twins) -> Result<Found, LabError> {
    let cell = &one.cell;
    let twin = &twins[&Twin::key(cell)];
    let Some((found, [mean_slower, p99_slower])) = twin.run(one)? else { return Ok(Found::Capacity(Vec::new(), 0.0)) };
    let of = |what, measured: Option<f64>, known: Predicted| {
        let measured = measured?;
        let ratio = known.value / measured;
        let is_inside = (1.0 / (1.0 + known.half_width)..=1.0 + known.half_width).contains(&ratio);
        Some(Compared::of((one, twin.profile), what, measured, &known, is_inside))
    };
    let mean = Predicted {
        value: found.summary.mean_ms,
        half_width: found.mean_half_width,
        recorded: cell.predicted_mean_ms.map(|ms| ms.0),
        rehearsal: cell.rehearsal_mean_ms.map(|ms| ms.0),
        linear: None,
        slower: mean_slower,
    };
    let p99 = Predicted {
        value: found.summary.p99_ms,
        half_width: found.p99_half_width,
        recorded: cell.predicted_p99_ms.map(|ms| ms.0),
        rehearsal: cell.rehearsal_p99_ms.map(|ms| ms.0),
        linear: None,
        slower: p99_slower,
    };
    let compared =
        [of(Quantity::Mean, cell.mean_ms.map(|ms| ms.0), mean), of(Quantity::P99, cell.p99_ms.map(|ms| ms.0), p99)];
    Ok(Found::Delays(compared.into_iter().flatten().collect(), Box::new((cell.criterion(), found.summary))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_speed_at_which_a_prediction_is_right_is_found_near_the_limit_too() {
        // M/M/1 with service times of 1 ms, on a machine that is slower by a factor.
        for (load, slower) in [(0.2, 1.3), (0.8, 1.1), (0.8, 0.7), (0.95, 1.03)] {
            let delay = |slower: f64| slower / (1.0 - (load * slower).min(0.999));
            let found = slower_by(delay(1.0), delay(slower), &mut |at| Ok(Some(delay(at)))).unwrap().unwrap();
            assert!((found / slower - 1.0).abs() < 0.02, "{load} {slower} {found}");
        }
    }
}
