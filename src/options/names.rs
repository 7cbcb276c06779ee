//! Options whose values are lists of the library, with their names and meanings.

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

/// Lets options take all values of types that have names and meanings.
macro_rules! options_take {
    ($($type:ty),+) => {
        $(impl Choice for $type {
            fn all() -> Vec<(Self, &'static str, &'static str)> {
                Self::ALL.into_iter().map(|value| (value, value.name(), value.help())).collect()
            }
        })+
    };
}
options_take!(
    Algorithm, GpuChoice, Idle, LogFormat, Mode, ModelKind, Multicore, PolicyKind, Replay, Routing, Shed, StealGuard,
    Words
);

// An index of impacts is made from another index; no option names it.
impl Choice for Idf {
    fn all() -> Vec<(Self, &'static str, &'static str)> {
        vec![
            (Self::Plus, "plus", "ln(1 + (N - n + 0.5) / (n + 0.5)): always positive"),
            (Self::Papers, "papers", "ln((N - n + 0.5) / (n + 0.5)), the papers' form, at least 1e-6"),
        ]
    }
}
