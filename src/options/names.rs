//! Options whose values are lists of the library. Names come from the library, help texts from here.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};

use tandem_drive::lab::{GpuChoice, Multicore};
use tandem_engine::corpus::Words;
use tandem_engine::index::Idf;
use tandem_engine::query::LogFormat;
use tandem_engine::search::cpu::Algorithm;
use tandem_model::base::machine::Idle;
use tandem_model::cost::ModelKind;
use tandem_model::sched::{PolicyKind, Shed, StealGuard};
use tandem_model::sim::Routing;
use tandem_model::traffic::{Mode, Replay};

/// A library type whose values have names.
pub(crate) trait Choice: Copy + Send + Sync + 'static {
    /// All values of the option, each with its name and its meaning.
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
    // The library has the help texts as well.
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
    AndOr: "`and`; if it finds fewer than k documents, `or`",
});

options_take!(Replay {
    Repeat: "In real time at its own rate, from its beginning, repeated if necessary",
    Windows: "In real time at its own rate: random stretches of a twentieth of its length",
    Intensify: "At any rate: its rate second by second is scaled, so that bursts keep their duration; Poisson within",
    Compress: "At any rate: all gaps are divided by one factor, so that bursts become shorter",
});

options_take!(Algorithm {
    Auto: "The algorithm that is predicted to be the fastest for the query",
    Exhaustive: "Every posting is scored; the reference",
    Maxscore: "MaxScore: postings of terms with low score bounds are only looked up",
});

options_take!(LogFormat {
    Plain: "One query per line, with any content",
    Tsv: "Columns separated by tabs",
    Csv: "Columns separated by commas, semicolons or bars, quoted or not",
    Colon: "An id, a colon and a query per line",
    Json: "JSON objects, in sequence or in arrays",
    Topics: "TREC topics, in SGML or XML",
    SlowLog: "The slow log of a search engine, in lines",
});

options_take!(ModelKind);

options_take!(Idf {
    Plus: "ln(1 + (N - n + 0.5) / (n + 0.5)): always positive",
    Papers: "ln((N - n + 0.5) / (n + 0.5)), the papers' form, at least 1e-6",
});

options_take!(Words {
    Unicode: "Words by the Unicode rules (UAX 29), lower-cased; only letters and digits are kept",
    Ascii: "Longest runs of a-z and 0-9 after lower-casing; everything else separates",
});

options_take!(StealGuard {
    None: "An idle processor always steals",
    Deadline: "Steals only jobs that it is predicted to finish within their deadline",
    Gain: "Steals only jobs that it is predicted to finish before their own processors would finish their queue",
});

options_take!(Shed {
    Nothing: "Every query runs, even if it is late",
    Late: "Queries that are predicted to finish after their deadline are dropped",
});

options_take!(GpuChoice {
    Auto: "The GPU if the machine has one, else none",
    Real: "The GPU; an error if the machine has none",
    Replay: "A simulated GPU lane that takes the recorded time of each query",
    None: "No GPU lane",
});

options_take!(Multicore {
    Inter: "Each core answers whole queries and is one processor",
    Adaptive: "Like `inter`, but idle cores help with long queries",
    Fgqp: "All cores answer one query, cut into small tasks, and are one processor",
});

options_take!(Idle {
    Spin: "Threads with a core of their own spin during a run",
    Sleep: "Threads sleep after a fifth of a millisecond without work",
});

options_take!(Routing {
    LeastOutstanding: "The replica with the fewest unanswered queries",
    RoundRobin: "Each replica in turn",
    Random: "A random replica, all equally likely",
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
        // An index of impacts is made from another index; no option names it.
        assert!(!values::<Idf>().contains(&Idf::Impacts));
    }
}
