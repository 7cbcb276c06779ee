//! Model files: JSON on one line.
//!
//! ```text
//! {"format": "tandem-model", "version": 2, "provenance": {...},
//!  "models": [{"kind": "cpu", "mode": "or", "features": [...], "target": "ln(us)",
//!              "boosting": {"base": 3.1, "trees": [{"inputs": [...], "thresholds": [...], "leaves": [...]}, ...]},
//!              "evaluation": {"folds": 10, "mean_relative_error": ..., ...}}],
//!  "batches": {"gpu": {"overhead_us": 9.1, "added_or": 0.12, "cost": {"host_fixed_us": ...}, ...}}}
//! ```
//!
//! `models/README.md` defines each field. Any deviation is refused with its place, since a misread model would schedule
//! wrongly without notice.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::batches::{BatchModel, BatchModels};
use super::inputs::InputSet;
use super::models::{self, Fitted, ModelKind, Regression, with_models};
use super::{CostModel, Evaluation, Inputs};
use crate::base::machine::Class;
use crate::files::{InputError, open_text, write_atomically};
use crate::traffic::Mode;

const FORMAT: &str = "tandem-model";
/// The version that this build reads and writes.
const VERSION: u64 = 2;

/// A cost model of one mode on one class of processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The class of processor.
    pub kind: Class,
    /// The mode.
    pub mode: Mode,
    /// Its errors on unseen queries.
    pub evaluation: Option<Evaluation>,
    pub(super) fitted: Fitted,
    /// The inputs that `fitted` reads.
    pub(super) asks: InputSet,
}

impl Model {
    /// A model of this class and mode, not evaluated yet.
    pub(super) fn new(kind: Class, mode: Mode, fitted: Fitted) -> Self {
        let asks = fitted.asks();
        Self { kind, mode, evaluation: None, fitted, asks }
    }

    /// The kind of model.
    pub fn model(&self) -> ModelKind {
        self.fitted.kind()
    }

    /// Its size and the unit: `(150, "trees")`.
    pub fn size(&self) -> (usize, &'static str) {
        self.fitted.size()
    }

    /// A description in words, if the model is readable.
    pub fn words(&self) -> Option<String> {
        self.fitted.words()
    }

    /// The features that it reads.
    pub fn features(&self) -> Vec<String> {
        self.asks.names()
    }

    /// Predicted microseconds for a query of these inputs; `None` if an input that it reads is unknown.
    pub fn predict_us(&self, inputs: &Inputs) -> Option<f64> {
        inputs.known().includes(self.asks).then(|| self.fitted.predict_us(&inputs.0))
    }
}

/// Models of one machine, at most one per class and mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFile {
    /// Origin of the models: command, workload, machine, seed.
    pub provenance: BTreeMap<String, String>,
    /// Costs of batches on the machine.
    pub batches: BatchModels,
    models: Vec<Model>,
}

#[derive(Deserialize)]
struct Head {
    format: Option<String>,
    version: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredFile {
    format: String,
    version: u64,
    provenance: BTreeMap<String, String>,
    models: Vec<StoredModel>,
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    batches: BTreeMap<Class, BatchModel>,
}

/// Makes [`StoredModel`], whose fields come from the one list of kinds of model.
macro_rules! define_stored_model {
    ($($(#[$attribute:meta])* $kind:ident($file:ident::$model:ident) = $name:literal, $field:ident;)+) => {
        /// The file form of a model, with exactly one of the kinds' fields.
        #[derive(Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        struct StoredModel {
            kind: Class,
            mode: Mode,
            features: Vec<String>,
            target: String,
            $(
                #[serde(default, skip_serializing_if = "Option::is_none")]
                $field: Option<<models::$file::$model as Regression>::Stored>,
            )+
            #[serde(default, skip_serializing_if = "Option::is_none")]
            evaluation: Option<Evaluation>,
        }

        impl From<&Model> for StoredModel {
            fn from(model: &Model) -> Self {
                $(let mut $field = None;)+
                match &model.fitted {
                    $(Fitted::$kind(model) => $field = Some(model.stored()),)+
                }
                Self {
                    kind: model.kind,
                    mode: model.mode,
                    features: model.features(),
                    target: model.model().target().to_owned(),
                    $($field,)+
                    evaluation: model.evaluation.clone(),
                }
            }
        }

        impl StoredModel {
            /// The fitted model, which may read `features` only. `place` names it in errors.
            fn fitted(&self, features: InputSet, place: &str) -> Result<Fitted, String> {
                let given = [$(self.$field.is_some()),+];
                let fields = [$(stringify!($field)),+];
                if given.iter().filter(|is_given| **is_given).count() == 1 {
                    $(if let Some(stored) = &self.$field {
                        let place = format!("{place}.{}", stringify!($field));
                        return Ok(Fitted::$kind(Regression::checked(stored, features, &place)?));
                    })+
                }
                Err(format!("{place}: expected one of `{}`", fields.join("`, `")))
            }
        }
    };
}
with_models!(define_stored_model);

impl ModelFile {
    pub(super) fn new(models: Vec<Model>, batches: BatchModels) -> Self {
        Self { provenance: BTreeMap::new(), batches, models }
    }

    /// The models, in the order of the file.
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// The model of this class and mode.
    pub fn model(&self, kind: Class, mode: Mode) -> Option<&Model> {
        self.models.iter().find(|model| (model.kind, model.mode) == (kind, mode))
    }

    /// Reads a model file (`.json`, also `.gz` or `.zst`). Fails if its format or version differs, or any value is
    /// invalid.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut bytes = Vec::new();
        open_text(path)?.read_to_end(&mut bytes).map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
        Self::parse(path, &bytes)
    }

    /// Parses the content of a model file; errors use `name`. Fails as [`ModelFile::read`].
    pub fn parse(name: impl AsRef<Path>, bytes: &[u8]) -> Result<Self, InputError> {
        let path = name.as_ref();
        let damaged = |e| InputError::json(path, &e);
        let head: Head = serde_json::from_slice(bytes).map_err(damaged)?;
        let retrain = "retrain: `tandem train`";
        match (head.format.as_deref(), head.version) {
            (Some(FORMAT), Some(VERSION)) => {}
            (Some(FORMAT), Some(version)) => {
                let message = format!("model format {version}, this build reads {VERSION} ({retrain})");
                return Err(InputError::file(path, message));
            }
            _ => {
                let message = format!("not a model file: no \"format\": \"{FORMAT}\" with a version ({retrain})");
                return Err(InputError::file(path, message));
            }
        }
        let stored: StoredFile = serde_json::from_slice(bytes).map_err(damaged)?;
        let mut models: Vec<Model> = Vec::new();
        for (i, model) in stored.models.into_iter().enumerate() {
            let model = model.check(&format!("models[{i}]")).map_err(|message| InputError::file(path, message))?;
            if models.iter().any(|other| (other.kind, other.mode) == (model.kind, model.mode)) {
                let message = format!("models[{i}]: a second model for {}, {}", model.kind, model.mode);
                return Err(InputError::file(path, message));
            }
            models.push(model);
        }
        if models.is_empty() {
            return Err(InputError::file(path, format!("holds no models ({retrain})")));
        }
        let mut batches = BatchModels::default();
        for (class, model) in stored.batches {
            model.check().map_err(|fault| InputError::file(path, format!("batches.{class}: {fault}")))?;
            batches.0[class] = Some(model);
        }
        Ok(Self { provenance: stored.provenance, batches, models })
    }

    /// Writes a model file atomically. Fails as the file system does.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let models = self.models.iter().map(StoredModel::from).collect();
        let batches = self.batches.0.iter().filter_map(|(class, model)| Some((class, model.clone()?))).collect();
        let provenance = self.provenance.clone();
        let stored = StoredFile { format: FORMAT.to_owned(), version: VERSION, provenance, models, batches };
        write_atomically(path, |out| {
            serde_json::to_writer(&mut *out, &stored)?;
            out.write_all(b"\n")
        })
    }
}

impl CostModel for ModelFile {
    fn predict_us(&self, kind: Class, mode: Mode, inputs: &Inputs) -> Option<f64> {
        self.model(kind, mode)?.predict_us(inputs)
    }
}

impl StoredModel {
    fn check(self, place: &str) -> Result<Model, String> {
        let mut known = InputSet::default();
        for name in &self.features {
            let Some(input) = Inputs::position(name) else {
                let all = Inputs::NAMES.join(", ");
                return Err(format!("{place}.features: unknown feature `{name}`, this build knows {all}"));
            };
            known.insert(input);
        }
        let fitted = self.fitted(known, place)?;
        let Self { kind, mode, target, evaluation, .. } = self;
        let expected = fitted.kind().target();
        if target != expected {
            return Err(format!("{place}.target is \"{target}\", expected \"{expected}\""));
        }
        Ok(Model { evaluation, ..Model::new(kind, mode, fitted) })
    }
}
