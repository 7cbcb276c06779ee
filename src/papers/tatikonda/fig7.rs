//! Tatikonda et al., figure 7: what cutting queries into tasks costs.
//!
//! Their producer makes one task for each skip block of the rarest list, and notes for every other list the skip
//! blocks that the task needs (their algorithm 4). Neighbouring tasks share at most one block of a list, which is
//! then decoded twice. Two numbers tell the cost: the skip blocks a task needs of a list, and how many of them the
//! task before needs, too.
//!
//! Skip blocks are cut here from decoded lists, so that any size can be had; the index's own are 128 postings long.

use std::collections::HashMap;
use std::hint::black_box;
use std::time::{Duration, Instant};

use super::bench::{DOCS, QUERIES};
use crate::exec::Executor;
use crate::exec::cpu::CpuExecutor;
use crate::ids::TermId;
use crate::index::Index;
use crate::papers::{Chart, Context, ExperimentError, Findings, Input, Line};
use crate::query::{Mode, Query};

/// Postings in a skip block.
const BLOCK_SIZES: [usize; 4] = [512, 256, 128, 64];
/// Cutting is timed this often, and the fastest counts.
const REPEATS: usize = 5;

pub(in crate::papers) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let input = context.input(DOCS, QUERIES)?;
    let searched = time_searching(&input, context)?;
    let costs: Vec<Cost> = BLOCK_SIZES.iter().map(|&size| Cost::measure(&input, size)).collect();

    let mut findings = Findings::default();
    findings.provenance("input", &input.name);
    for (size, cost) in BLOCK_SIZES.iter().zip(&costs) {
        findings.compare(format!("blocks of {size}: skips a list and task"), "", 10.2, cost.skips_a_task);
        findings.compare(format!("blocks of {size}: of them in the task before, too"), "", 0.97, cost.overlap);
        findings.compare(format!("blocks of {size}: tasks a query"), "", None, cost.tasks_a_query);
        let share = 100.0 * cost.creation.as_secs_f64() / searched.as_secs_f64();
        let papers = (*size == BLOCK_SIZES[0]).then_some(2.0);
        findings.compare(format!("blocks of {size}: making tasks, of one core's time"), "%", papers, share);
    }
    findings.note(
        "Skips a task depend on how much longer the other lists are than the rarest, so on the query log; that they do \
         not depend on the block size is the paper's point. Ours counts every list of the query, the rarest with one.",
    );
    findings.chart(chart(&costs));
    Ok(findings)
}

/// How long one core takes to answer all queries with two terms or more.
fn time_searching(input: &Input, context: &Context<'_>) -> Result<Duration, ExperimentError> {
    let mut executor = CpuExecutor::new(input.index.clone(), input.index.built_with());
    let mut hits = Vec::new();
    let mut fastest = Duration::MAX;
    for _ in 0..REPEATS {
        let began = Instant::now();
        for query in several_terms(&input.queries) {
            executor.search(query, context.mode(Mode::And), context.k, &mut hits)?;
        }
        fastest = fastest.min(began.elapsed());
    }
    Ok(fastest)
}

/// Queries whose lists are intersected: those of one term are no work to share.
fn several_terms(queries: &[Query]) -> impl Iterator<Item = &Query> {
    queries.iter().filter(|query| query.terms.len() > 1)
}

/// What cutting all queries costs at one block size.
#[derive(Debug)]
struct Cost {
    skips_a_list: f64,
    tasks_a_query: f64,
    skips_a_task: f64,
    overlap: f64,
    creation: Duration,
}

/// The skip blocks of one list that a task needs: first and last.
type Needed = (usize, usize);

impl Cost {
    fn measure(input: &Input, block_size: usize) -> Self {
        let mut lists = HashMap::new();
        for term in input.queries.iter().flat_map(|query| &query.terms) {
            lists.entry(term.term).or_insert_with(|| skips(&input.index, term.term, block_size));
        }
        let queries: Vec<Vec<&[u32]>> = several_terms(&input.queries)
            .map(|query| query.terms.iter().map(|term| lists[&term.term].as_slice()).collect())
            .collect();
        let mut needed = Vec::new();
        let mut creation = Duration::MAX;
        for _ in 0..REPEATS {
            let began = Instant::now();
            for skips in &queries {
                needed.clear();
                create_tasks(skips, &mut needed);
                black_box(&needed);
            }
            creation = creation.min(began.elapsed());
        }
        let (mut tasks, mut neighbours, mut skips_a_task, mut overlap) = (0, 0, 0.0, 0.0);
        for skips in &queries {
            needed.clear();
            create_tasks(skips, &mut needed);
            let tasks_of_query: Vec<&[Needed]> = needed.chunks(skips.len()).collect();
            tasks += tasks_of_query.len();
            neighbours += tasks_of_query.len().saturating_sub(1);
            skips_a_task += tasks_of_query.iter().map(|task| mean_skips(task)).sum::<f64>();
            overlap += tasks_of_query.windows(2).map(|pair| mean_overlap(pair[0], pair[1])).sum::<f64>();
        }
        let num_lists: usize = queries.iter().map(Vec::len).sum();
        let num_skips: usize = queries.iter().flatten().map(|skips| skips.len()).sum();
        Self {
            skips_a_list: num_skips as f64 / num_lists.max(1) as f64,
            tasks_a_query: tasks as f64 / queries.len().max(1) as f64,
            skips_a_task: skips_a_task / tasks.max(1) as f64,
            overlap: overlap / neighbours.max(1) as f64,
            creation,
        }
    }
}

/// The last document of every `block_size` postings of a list.
fn skips(index: &Index, term: TermId, block_size: usize) -> Vec<u32> {
    let docs: Vec<u32> = index.list(term).postings().map(|(doc, _)| doc).collect();
    docs.chunks(block_size).map(|block| block[block.len() - 1]).collect()
}

/// Appends, for each skip block of the first list (a task), the blocks that it needs of every list.
fn create_tasks(skips: &[&[u32]], needed: &mut Vec<Needed>) {
    let (rarest, others) = skips.split_first().expect("a query has terms");
    let mut first_doc = 0;
    for (block, &last_doc) in rarest.iter().enumerate() {
        needed.push((block, block));
        for skips in others {
            let first = skips.partition_point(|&last| last < first_doc);
            let last = first + skips[first..].partition_point(|&last| last < last_doc);
            // Past a list's end there is nothing to need; the last block stands for it, as in the paper.
            needed.push((first.min(skips.len() - 1), last.min(skips.len() - 1)));
        }
        first_doc = last_doc + 1;
    }
}

/// Skip blocks that a task needs of a list, on average over the lists.
fn mean_skips(task: &[Needed]) -> f64 {
    task.iter().map(|(first, last)| last - first + 1).sum::<usize>() as f64 / task.len() as f64
}

/// Skip blocks that two neighbouring tasks both need of a list, on average over the lists but the rarest.
fn mean_overlap(before: &[Needed], after: &[Needed]) -> f64 {
    let shared = before.iter().zip(after).skip(1).map(|(before, after)| (before.1 + 1).saturating_sub(after.0));
    shared.sum::<usize>() as f64 / (before.len() - 1) as f64
}

/// As in the paper: numbers of skips and tasks and the time relative to blocks of 512, the two averages as they are.
fn chart(costs: &[Cost]) -> Chart {
    let relative = |value: fn(&Cost) -> f64| -> Vec<f64> {
        let base = costs.first().map_or(1.0, value);
        costs.iter().map(|cost| value(cost) / base).collect()
    };
    let absolute = |value: fn(&Cost) -> f64| costs.iter().map(value).collect();
    let ours: [(&str, Vec<f64>); 5] = [
        ("skips a list, relative", relative(|cost| cost.skips_a_list)),
        ("tasks a query, relative", relative(|cost| cost.tasks_a_query)),
        ("task creation, relative", relative(|cost| cost.creation.as_secs_f64())),
        ("skips a list and task", absolute(|cost| cost.skips_a_task)),
        ("overlap", absolute(|cost| cost.overlap)),
    ];
    let papers = [("skips a list and task", 3, 10.2), ("overlap", 4, 0.97)];
    let at_sizes = |values: Vec<f64>| BLOCK_SIZES.iter().map(|&size| size as f64).zip(values).collect();
    let papers = papers.into_iter().map(|(name, colour, value)| Line {
        name: name.to_owned(),
        is_papers: true,
        colour,
        points: at_sizes(vec![value; BLOCK_SIZES.len()]),
    });
    let ours = ours.into_iter().enumerate().map(|(colour, (name, values))| Line {
        name: name.to_owned(),
        is_papers: false,
        colour,
        points: at_sizes(values),
    });
    Chart {
        stem: "tasks",
        title: String::from("Cutting queries into tasks (Tatikonda et al., figure 7)"),
        x_label: String::from("postings in a skip block"),
        y_label: String::from("number, or relative to blocks of 512"),
        is_x_log: true,
        is_y_log: false,
        lines: ours.chain(papers).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_example_is_cut_as_in_the_paper() {
        // Figure 3 there: skips 20, 35, 90, 175 of one list; 10, 50, 90, 145, 205 of the other. Skip i opens block i.
        let (a, b) = ([34, 89, 175], [49, 89, 144, 205]);
        let mut needed = Vec::new();
        create_tasks(&[&a, &b], &mut needed);
        assert_eq!(needed, [(0, 0), (0, 0), (1, 1), (0, 1), (2, 2), (2, 3)]);
        let tasks: Vec<&[Needed]> = needed.chunks(2).collect();
        assert_eq!(mean_skips(tasks[2]), 1.5);
        assert_eq!((mean_overlap(tasks[0], tasks[1]), mean_overlap(tasks[1], tasks[2])), (1.0, 0.0));
    }
}
