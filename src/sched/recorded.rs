//! A live run on disk, complete enough to be decided again: policy, machine, jobs, what the dispatcher was told, its log.
//!
//! ```text
//!   FOLDER/run.json      policy and options; processors, and what policies know of the machine's costs
//!   FOLDER/jobs.csv      every job of the plan: query, row, arrival, deadline, what it was expected to cost, its lists' blocks
//!   FOLDER/journal.csv   what the dispatcher was told, and when
//!   FOLDER/log.csv       what was decided: which job ran where, when, in which batch
//! ```
//!
//! A policy is a pure state machine, so that the journal must lead to the log's decisions, whatever clock and whichever
//! processors stood behind them. If it does not, what is simulated is not what ran.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::{BuiltIn, Job, Journal, Parity, PolicyError, PolicyFactory, PolicyKind, PolicyOptions, RunLog};
use crate::cost::{BatchCost, Cost, MachineModel};
use crate::files::{CsvReader, InputError, Provenance, Record, Us, open_text, write_atomically, write_csv};
use crate::ids::{DeviceId, JobId, QueryId};
use crate::machine::{Class, Machine, PerClass, Processor};
use crate::time::Nanos;

/// A run, and what led to it.
#[derive(Clone, Debug)]
pub struct RecordedRun {
    /// The policy with its options.
    pub policy: BuiltIn,
    /// The machine as the policy was told of it.
    pub model: MachineModel,
    /// The jobs, in order of arrival.
    pub jobs: Vec<Job>,
    /// What the dispatcher was told.
    pub journal: Journal,
    /// What was decided.
    pub log: RunLog,
}

/// `run.json`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRun {
    policy: String,
    options: PolicyOptions,
    processors: Vec<StoredProcessor>,
    batches: BTreeMap<Class, BatchCost>,
    handoff_ns: BTreeMap<Class, u64>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredProcessor {
    class: Class,
    device: DeviceId,
    stream: u32,
    depth: u32,
}

/// No lane holds more batches.
const MOST_DEPTH: u32 = 1 << 16;
/// Classes whose costs are kept by job.
const CLASSES: [Class; 2] = [Class::CPU, Class::GPU];
/// No workload has more rows: a file that names one is damaged.
const MOST_ROWS: usize = 1 << 28;

/// A line of `jobs.csv`. A cost is empty on classes that the machine lacks.
#[derive(Debug, Serialize, Deserialize)]
struct JobLine {
    job: JobId,
    query_id: QueryId,
    row: u32,
    arrival_us: Us,
    deadline_us: Option<Us>,
    cpu_us: Option<Us>,
    cpu_added_us: Option<Us>,
    gpu_us: Option<Us>,
    gpu_added_us: Option<Us>,
    /// Blocks in all lists of the query, where the policy knows.
    blocks: Option<u32>,
}

impl Record for JobLine {
    const OPTIONAL: &'static [&'static str] = &["blocks"];
}

impl JobLine {
    fn of(job: &Job, blocks: &[u32]) -> Self {
        let some = |time: Nanos| (time != Nanos::MAX).then_some(Us(time));
        let costs = |class: Class| (some(job.predicted[class].alone), some(job.predicted[class].added));
        let ((cpu_us, cpu_added_us), (gpu_us, gpu_added_us)) = (costs(Class::CPU), costs(Class::GPU));
        Self {
            job: job.id,
            query_id: job.query,
            row: job.row,
            arrival_us: Us(job.arrival),
            deadline_us: some(job.deadline),
            cpu_us,
            cpu_added_us,
            gpu_us,
            gpu_added_us,
            blocks: blocks.get(job.row as usize).copied(),
        }
    }

    fn job(&self) -> Job {
        let or_never = |time: Option<Us>| time.map_or(Nanos::MAX, |us| us.0);
        let cost = |alone, added| Cost { alone: or_never(alone), added: or_never(added) };
        let predicted = PerClass::from_fn(|class| match class {
            Class::CPU => cost(self.cpu_us, self.cpu_added_us),
            Class::GPU => cost(self.gpu_us, self.gpu_added_us),
            _ => Cost::NEVER,
        });
        Job {
            id: self.job,
            query: self.query_id,
            row: self.row,
            arrival: self.arrival_us.0,
            deadline: or_never(self.deadline_us),
            predicted,
        }
    }
}

impl RecordedRun {
    /// Lets the policy decide again, and compares.
    ///
    /// # Errors
    /// If the policy does not fit the machine.
    pub fn replay(&self) -> Result<Parity, PolicyError> {
        let policy = self.policy.build(&self.model)?;
        Ok(self.journal.replay(&self.model.machine, policy, &self.jobs, &self.log))
    }

    /// Writes the four files into a folder, each whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, folder: &Path, provenance: &Provenance) -> io::Result<()> {
        let stored = StoredRun {
            policy: self.policy.name().to_owned(),
            options: self.policy.options,
            processors: self.model.machine.processors().map(|(_, processor)| StoredProcessor::of(processor)).collect(),
            batches: self.model.batches.iter().filter_map(|(class, cost)| Some((class, cost.clone()?))).collect(),
            handoff_ns: self.model.handoff.iter().map(|(class, time)| (class, time.0)).collect(),
        };
        write_atomically(&folder.join("run.json"), |out| {
            stored.serialize(&mut serde_json::Serializer::pretty(&mut *out))?;
            out.write_all(b"\n")
        })?;
        write_csv(
            &folder.join("jobs.csv"),
            provenance,
            self.jobs.iter().map(|job| JobLine::of(job, &self.policy.blocks)),
        )?;
        self.journal.write(&folder.join("journal.csv"), provenance)?;
        self.log.write(&folder.join("log.csv"), provenance)
    }

    /// Reads such a folder.
    ///
    /// # Errors
    /// With the file's line and column, if one is missing or holds what it should not.
    pub fn read(folder: &Path) -> Result<Self, InputError> {
        let path = folder.join("run.json");
        let text = std::fs::read(&path).map_err(|e| InputError::file(&path, format!("cannot read: {e}")))?;
        let stored: StoredRun = serde_json::from_slice(&text).map_err(|e| InputError::json(&path, &e))?;
        let kind = PolicyKind::from_name(&stored.policy).ok_or_else(|| {
            InputError::file(&path, format!("policy is \"{}\", which this build lacks", stored.policy))
        })?;
        if let Some(processor) = stored.processors.iter().find(|processor| !(1..=MOST_DEPTH).contains(&processor.depth))
        {
            let message = format!("processors: depth is {}, expected 1 to {MOST_DEPTH}", processor.depth);
            return Err(InputError::file(&path, message));
        }
        if let Some(class) =
            stored.processors.iter().map(|processor| processor.class).find(|class| !CLASSES.contains(class))
        {
            return Err(InputError::file(
                &path,
                format!("processors: {class} is of a class whose costs jobs.csv does not hold"),
            ));
        }
        for (class, cost) in &stored.batches {
            cost.check().map_err(|fault| InputError::file(&path, format!("batches: {class}: {fault}")))?;
        }
        let machine = stored.processors.into_iter().fold(Machine::default(), |machine, processor| {
            let StoredProcessor { class, device, stream, depth } = processor;
            machine.with(Processor { class, device, stream, depth })
        });
        let mut model = MachineModel::from(machine);
        stored.batches.into_iter().for_each(|(class, cost)| model.batches[class] = Some(cost));
        stored.handoff_ns.into_iter().for_each(|(class, ns)| model.handoff[class] = Nanos(ns));
        let (jobs, blocks) = read_jobs(&folder.join("jobs.csv"))?;
        let (journal, _) = Journal::read(&folder.join("journal.csv"))?;
        let (log, _) = RunLog::read(&folder.join("log.csv"))?;
        Ok(Self { policy: kind.with(stored.options).with_lengths(blocks.into()), model, jobs, journal, log })
    }
}

impl StoredProcessor {
    fn of(processor: Processor) -> Self {
        let Processor { class, device, stream, depth } = processor;
        Self { class, device, stream, depth }
    }
}

/// The jobs of a file; and by row of the workload, the blocks of its query where the file tells: 0 of rows that no job names.
fn read_jobs(path: &Path) -> Result<(Vec<Job>, Vec<u32>), InputError> {
    let mut lines = CsvReader::<JobLine, _>::new(path, open_text(path)?)?;
    if !lines.has_header() {
        return Err(InputError::file(path, "is empty, expected jobs with a header line"));
    }
    let mut jobs: Vec<Job> = Vec::new();
    let mut blocks: Vec<u32> = Vec::new();
    while let Some(line) = lines.next_row()? {
        if line.value.job.index() != jobs.len() {
            return Err(line.unexpected("job", "the number after that of the line before, from 0"));
        }
        if let Some(of_query) = line.value.blocks {
            let row = line.value.row as usize;
            if row >= MOST_ROWS {
                return Err(line.unexpected("row", &format!("a row of a workload, below {MOST_ROWS}")));
            }
            blocks.resize(blocks.len().max(row + 1), 0);
            blocks[row] = of_query;
        }
        jobs.push(line.value.job());
    }
    Ok((jobs, blocks))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sched::{Dispatcher, Told};

    /// Two jobs through one CPU worker: what the dispatcher is told, and its log.
    fn run() -> RecordedRun {
        let policy = PolicyKind::Mct.with(PolicyOptions { threshold_ratio: 1.1, ..PolicyOptions::default() });
        let model = MachineModel::from(Machine::new(1, 0).with_gpus(1, 1, 2));
        let predicted = Cost::on_cpu_and_gpu(Nanos(30), Nanos(500));
        let job = |id: u32, at| Job {
            id: JobId(id),
            query: QueryId(id + 7),
            row: id,
            arrival: Nanos(at),
            deadline: Nanos(at + 1000),
            predicted,
        };
        let jobs = vec![job(0, 5), job(1, 9)];
        let cpu = crate::ids::ProcessorId(0);
        let told = [
            (5, Told::Arrive),
            (6, Told::Decide),
            (9, Told::Arrive),
            (10, Told::Decide),
            (40, Told::Finish(cpu)),
            (41, Told::Decide),
            (80, Told::Finish(cpu)),
            (81, Told::Decide),
        ];
        let journal = Journal { entries: told.map(|(at, told)| (Nanos(at), told)).to_vec() };
        let mut dispatcher = Dispatcher::new(&model.machine, policy.build(&model).unwrap(), 2);
        let mut arriving = jobs.iter();
        for &(now, told) in &journal.entries {
            match told {
                Told::Arrive => dispatcher.arrive(now, *arriving.next().unwrap()).unwrap(),
                Told::Finish(processor) => drop(dispatcher.finish(now, processor).unwrap()),
                _ => dispatcher.decide(now, &mut Vec::new()).unwrap(),
            }
        }
        RecordedRun { policy, model, jobs, journal, log: dispatcher.into_log() }
    }

    #[test]
    fn a_run_is_decided_again_from_its_folder_and_what_differs_is_told() {
        let dir = tempfile::tempdir().unwrap();
        run().write(dir.path(), &Provenance::new()).unwrap();
        let read = RecordedRun::read(dir.path()).unwrap();
        assert_eq!((&read.policy, &read.model, &read.jobs), (&run().policy, &run().model, &run().jobs));
        let parity = read.replay().unwrap();
        assert_eq!((parity.batches, parity.same, parity.difference), (2, 2, None));
        // Another machine decides otherwise: with the GPU as quick as the CPU the second job would not have waited.
        let mut jobs = read.jobs.clone();
        jobs[1].predicted = Cost::on_cpu_and_gpu(Nanos(30), Nanos(30));
        let parity = RecordedRun { jobs, ..read }.replay().unwrap();
        assert_eq!(parity.same, 1);
        assert!(parity.difference.unwrap().starts_with("batch 1: 1 jobs from 1 on processor 0"));
        std::fs::write(dir.path().join("jobs.csv"), "job\n").unwrap();
        assert!(RecordedRun::read(dir.path()).unwrap_err().to_string().contains("lacks `query_id`"));
        std::fs::write(dir.path().join("run.json"), "{\n \"policy\": 3 }").unwrap();
        assert!(RecordedRun::read(dir.path()).unwrap_err().to_string().contains("run.json:2:"));
    }
}
