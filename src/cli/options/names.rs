//! Options whose values are a named list of the library's: the names are the library's, the help is here.

use clap::ValueEnum;
use clap::builder::PossibleValue;

use crate::corpus::Words;
use crate::cost::ModelKind;
use crate::exec::cpu::Algorithm;
use crate::index::Idf;
use crate::lab::{GpuChoice, Multicore};
use crate::machine::Idle;
use crate::query::{Mode, Replay};
use crate::sched::{PolicyKind, Shed, StealGuard};
use crate::sim::Routing;

/// Lets options take the values of a type that has a `name()`, each with what it means.
macro_rules! options_take {
    ($type:ty { $($value:ident: $help:literal,)+ }) => {
        impl ValueEnum for $type {
            fn value_variants<'a>() -> &'a [Self] {
                &[$(Self::$value),+]
            }

            fn to_possible_value(&self) -> Option<PossibleValue> {
                let values = [$((Self::$value, $help)),+];
                let (value, help) = values.into_iter().find(|(value, _)| value == self)?;
                Some(PossibleValue::new(value.name()).help(help))
            }
        }
    };
}

options_take!(Mode {
    And: "Documents with all terms (conjunctive)",
    Or: "Documents with any term (disjunctive)",
    AndOr: "As `and`; as `or` when that finds fewer than k",
});

options_take!(Replay {
    Repeat: "In real time, end to end, at its own rate",
    Windows: "In real time, stretches of a twentieth of it that the seed draws, at its own rate",
    Intensify: "At any rate: its course of the rate second by second, raised or lowered; within it, arrivals as Poisson's",
    Compress: "At any rate: all gaps divided by one factor, bursts with them",
});

options_take!(Algorithm {
    Auto: "Whichever should be the quickest for the query",
    Exhaustive: "Every posting is scored: the reference",
    Wand: "WAND: document at a time, skipping by the terms' bounds",
    Bmw: "Block-Max WAND: skipping by the bounds of blocks, too",
    Maxscore: "MaxScore: terms that cannot lift a document into the result by themselves are only looked up",
});

options_take!(ModelKind {
    Cart: "A regression tree",
    M5: "Rules with linear models on the published features: what Ding et al. used",
    Forest: "The mean of many regression trees: random forest",
    Boosting: "A sum of small trees, each correcting those before it: the most exact",
    Work: "Prices of what a query does, which a person can read",
});

options_take!(Idf {
    Plus: "ln(1 + (N - n + 0.5) / (n + 0.5)): always positive",
    Papers: "ln((N - n + 0.5) / (n + 0.5)), the papers' form, at least 1e-6",
});

options_take!(Words {
    Unicode: "Words by the Unicode rules (UAX 29), lower-cased, of which letters and digits are kept",
    Ascii: "Longest runs of a-z and 0-9 after lower-casing; everything else separates",
});

options_take!(StealGuard {
    None: "Nothing: an idle processor always steals",
    Deadline: "Steals only jobs that it is predicted to finish within their deadline",
    Gain: "Steals only jobs that it is predicted to finish before their own processors would have worked off their queue",
});

options_take!(Shed {
    Nothing: "Every query runs, however late",
    Late: "Queries that are predicted to finish after their deadline are dropped",
});

options_take!(GpuChoice {
    Auto: "The GPU if there is one, else `replay` where there are recorded times, else `none`",
    Real: "The GPU; an error without one",
    Replay: "A lane that takes the recorded time of each query",
    None: "No GPU lane",
});

options_take!(Multicore {
    Inter: "Each core answers whole queries: a processor each",
    Adaptive: "As `inter`, and cores without a query help with long ones",
    DocpUi: "All cores answer one query, each on its range of the documents: one processor",
    DocpPi: "As `docp-ui`, each core with an index of its range",
    Fgqp: "All cores answer one query, cut into small tasks: one processor",
});

options_take!(Idle {
    Spin: "Threads with a core of their own spin as long as a run lasts",
    Sleep: "Threads sleep after a fifth of a millisecond without work",
});

options_take!(Routing {
    LeastOutstanding: "That with the fewest queries to answer",
    RoundRobin: "Each in turn",
    Random: "Any, all equally likely",
});

options_take!(PolicyKind {
    GpuOnly: "Everything on the GPUs, first come, first served",
    CpuOnly: "Everything on the CPUs, first come, first served",
    BestOf: "Each query on its better processor, one at a time in the whole machine",
    Stealing: "Three queues, deadlines and work stealing (Ding et al. 2009, section 9)",
    Mct: "Each query to the processor that is predicted to finish it first",
    Greedy: "GPUs take what waits, as one batch",
    Window: "GPUs take batches that close by size or time",
    Adaptive: "GPUs take batches whose size is found by trial (Clipper, NSDI 2017)",
    Combined: "GPUs take batches; CPUs what a batch gains least on, and what cannot wait",
    StealingPublished: "Three queues and stealing as published, without a guard; played where it is asked for",
    LengthBased: "Queries of short lists on GPUs, in batches, those of long ones on CPUs (Huang et al.)",
    RandomSplit: "Half of the queries on GPUs, in batches, half on CPUs, by a coin (Huang et al.)",
    StealingAdaptive: "Stealing between classes whose prices follow the load",
    CachedFirst: "GPUs take queries whose lists they hold, in batches, CPUs the others, and help (Wang et al.)",
});

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_take_all_that_the_library_has() {
        assert_eq!(Mode::value_variants(), Mode::ALL);
        assert_eq!(Replay::value_variants(), Replay::ALL);
        assert_eq!(Algorithm::value_variants(), Algorithm::ALL);
        assert_eq!(StealGuard::value_variants(), StealGuard::ALL);
        assert_eq!(Shed::value_variants(), Shed::ALL);
        assert_eq!(PolicyKind::value_variants(), PolicyKind::ALL);
        assert_eq!(GpuChoice::value_variants(), GpuChoice::ALL);
        assert_eq!(Idle::value_variants(), Idle::ALL);
        assert_eq!(Multicore::value_variants(), Multicore::ALL);
        assert_eq!(Routing::value_variants(), Routing::ALL);
        assert_eq!(ModelKind::value_variants(), ModelKind::ALL);
        // An index of impacts is made from another index, never asked for by this name.
        assert!(!Idf::value_variants().contains(&Idf::Impacts));
    }
}
