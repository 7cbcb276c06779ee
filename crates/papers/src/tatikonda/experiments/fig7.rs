//! Tatikonda et al., figure 7: what cutting queries into tasks costs.
//!
//! Their producer makes one task for each skip block of the rarest list, and notes for every other list the skip
//! blocks that the task needs (`published/tasks.rs`). Neighbouring tasks share at most one block of a list, which is
//! then decoded twice. Two numbers tell the cost: the skip blocks a task needs of a list, and how many of them the
//! task before needs, too.
//!
//! In the paper the first is 10.2 at every block size. That holds where the rarest list fills its blocks: a list of 40
//! postings is one task at any size, and of the others such a task needs the more blocks the smaller they are. So the
//! numbers are told for all queries, and for those whose rarest list has a block of the largest size at least.
//!
//! Skip blocks are cut here from decoded lists, so that any size can be had.

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::bench::{DOCS, QUERIES, asked};
use crate::codec::Pfor;
use crate::ding::daat::CodedLists;
use crate::tatikonda::published::Core;
use crate::tatikonda::published::tasks::{Needed, create_tasks, mean_overlap, mean_skips};
use crate::{Chart, Context, ExperimentError, Findings, Input, Line, RealLog};
use tandem_core::base::ids::TermId;
use tandem_core::index::Index;
use tandem_core::query::Query;

/// Postings in a skip block.
const BLOCK_SIZES: [usize; 4] = [512, 256, 128, 64];
/// Cutting is timed this often, and the fastest counts.
const REPEATS: usize = 5;
/// Queries of a real log, most of which have short lists.
const REAL_QUERIES: usize = 5000;

pub(crate) fn run(context: &Context<'_>) -> Result<Findings, ExperimentError> {
    let mut findings = Findings::default();
    let input = context.input(DOCS, QUERIES)?;
    findings.provenance("input", &input.name);
    let costs = compare(context, "", &input, &mut findings)?;
    findings.chart(chart("tasks", "", &costs));
    if let Some(input) = context.real_input(RealLog::Web, REAL_QUERIES, &mut findings)? {
        let costs = compare(context, "real lists", &input, &mut findings)?;
        findings.chart(chart("tasks-real", ", real lists", &costs));
    }
    findings.note(
        "Skips a task depend on how much longer the other lists are than the rarest, so on the query log; that they do \
         not depend on the block size is the paper's point, and holds where the rarest list fills its blocks. All lists \
         of a query count, the rarest with one. Time is of the paper's own search: lists in pfor-512, one core.",
    );
    Ok(findings)
}

/// Measures all block sizes on an input; `of` is the section of what is found.
fn compare(
    context: &Context<'_>,
    of: &str,
    input: &Input,
    findings: &mut Findings,
) -> Result<Vec<Cost>, ExperimentError> {
    findings.section(of);
    let queries: Vec<&Query> = several_terms(&input.queries).collect();
    let filled: Vec<&Query> =
        queries.iter().copied().filter(|query| query.terms[0].doc_freq as usize >= BLOCK_SIZES[0]).collect();
    let searched = time_searching(input, &queries, context)?;
    let share = 100.0 * filled.len() as f64 / queries.len().max(1) as f64;
    findings.compare(format!("queries whose rarest list has {} postings", BLOCK_SIZES[0]), "%", None, share);
    let mut steps = context.steps("block sizes", BLOCK_SIZES.len());
    let mut costs = Vec::new();
    for size in BLOCK_SIZES {
        let cost = Cost::measure(&input.index, &queries, size);
        let cost_of_filled = Cost::measure(&input.index, &filled, size);
        // The paper's numbers stand beside those of queries that are as its own must have been.
        let name = format!("blocks of {size}");
        findings.compare(format!("{name}: skips a list and task"), "", 10.2, cost.skips_a_task);
        findings.compare(format!("{name}: the same, rarest list filled"), "", 10.2, cost_of_filled.skips_a_task);
        findings.compare(format!("{name}: of them in the task before, too"), "", 0.97, cost.overlap);
        findings.compare(format!("{name}: tasks a query"), "", None, cost.tasks_a_query);
        let share = 100.0 * cost.creation.as_secs_f64() / searched.as_secs_f64();
        let papers = (size == BLOCK_SIZES[0]).then_some(2.0);
        findings.compare(format!("{name}: making tasks, of one core's time"), "%", papers, share);
        costs.push(cost);
        steps.done();
    }
    Ok(costs)
}

/// How long one core takes to answer the queries by the paper's method.
fn time_searching(input: &Input, queries: &[&Query], context: &Context<'_>) -> Result<Duration, ExperimentError> {
    let all_docs = 0..input.index.num_docs();
    let lists = CodedLists::encode(&input.index, &asked(&input.queries), Box::new(Pfor::<512>), all_docs)?;
    let mut core = Core::whole(&Arc::new(lists));
    let us: f64 = queries.iter().map(|query| core.time_us(&query.terms, context.k)).sum();
    Ok(Duration::from_secs_f64(us / 1e6))
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

impl Cost {
    fn measure(index: &Index, queries: &[&Query], block_size: usize) -> Self {
        let mut lists = HashMap::new();
        for term in queries.iter().flat_map(|query| &query.terms) {
            lists.entry(term.term).or_insert_with(|| skips(index, term.term, block_size));
        }
        let queries: Vec<Vec<&[u32]>> =
            queries.iter().map(|query| query.terms.iter().map(|term| lists[&term.term].as_slice()).collect()).collect();
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
    index.list(term).docs().chunks(block_size).map(|block| block[block.len() - 1]).collect()
}

/// As in the paper: numbers of skips and tasks and the time relative to blocks of 512, the two averages as they are.
fn chart(stem: &str, lists: &str, costs: &[Cost]) -> Chart {
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
        stem: stem.to_owned(),
        title: format!("Cutting queries into tasks{lists} (Tatikonda et al., figure 7)"),
        x_label: String::from("postings in a skip block"),
        y_label: String::from("number, or relative to blocks of 512"),
        is_x_log: true,
        is_y_log: false,
        lines: ours.chain(papers).collect(),
    }
}
