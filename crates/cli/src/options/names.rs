//! Options whose values are a named list of the library's: the names are the library's, the help is here.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use tandem_core::base::machine::Idle;
use tandem_core::corpus::Words;
use tandem_core::cost::ModelKind;
use tandem_core::index::Idf;
use tandem_core::lab::{GpuChoice, Multicore};
use tandem_core::query::{LogFormat, Mode, Replay};
use tandem_core::sched::{PolicyKind, Shed, StealGuard};
use tandem_core::search::cpu::Algorithm;
use tandem_core::sim::Routing;

/// A type of the library's whose values have names.
pub(crate) trait Choice: Copy + Send + Sync + 'static {
    /// All values that an option takes, each with its name and its meaning.
    fn all() -> Vec<(Self, &'static str, &'static str)>;
}

/// Reads a [`Choice`] by its name.
pub(crate) fn choice<T: Choice>() -> impl TypedValueParser<Value = T> {
    let values = T::all().into_iter().map(|(_, name, help)| PossibleValue::new(name).help(help));
    PossibleValuesParser::new(values).try_map(|given| {
        let value = T::all().into_iter().find(|(_, name, _)| *name == given).map(|(value, ..)| value);
        value.ok_or("not one of the names")
    })
}

/// Lets options take the values of a type that has a `name()`, each with its meaning.
macro_rules! options_take {
    ($type:ty { $($value:ident: $help:literal,)+ }) => {
        impl Choice for $type {
            fn all() -> Vec<(Self, &'static str, &'static str)> {
                vec![$((Self::$value, Self::$value.name(), $help)),+]
            }
        }
    };
    // The library has the help, too.
    ($type:ty) => {
        impl Choice for $type {
            fn all() -> Vec<(Self, &'static str, &'static str)> {
                Self::ALL.into_iter().map(|value| (value, value.name(), value.help())).collect()
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

options_take!(LogFormat {
    Plain: "A query a line, whatever it holds",
    Tsv: "Columns between tabs",
    Csv: "Columns between commas, semicolons or bars, perhaps in quotes",
    Colon: "An id, a colon and a query a line",
    Json: "JSON objects, one after another or in arrays",
    Topics: "TREC topics, in SGML or XML",
    SlowLog: "An engine's slow log in lines",
});

options_take!(ModelKind);

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

options_take!(PolicyKind);

#[cfg(test)]
mod tests {
    use super::*;

    fn values<T: Choice>() -> Vec<T> {
        T::all().into_iter().map(|(value, ..)| value).collect()
    }

    #[test]
    fn options_take_all_that_the_library_has() {
        assert_eq!(values::<Mode>(), Mode::ALL);
        assert_eq!(values::<Replay>(), Replay::ALL);
        assert_eq!(values::<Algorithm>(), Algorithm::ALL);
        assert_eq!(values::<StealGuard>(), StealGuard::ALL);
        assert_eq!(values::<Shed>(), Shed::ALL);
        assert_eq!(values::<GpuChoice>(), GpuChoice::ALL);
        assert_eq!(values::<Idle>(), Idle::ALL);
        assert_eq!(values::<Multicore>(), Multicore::ALL);
        assert_eq!(values::<Routing>(), Routing::ALL);
        // An index of impacts is made from another index, never asked for by this name.
        assert!(!values::<Idf>().contains(&Idf::Impacts));
    }
}
