//! Model files: JSON that a person can read and a program can't misread.
//!
//! ```text
//! {"format": "tandem-model", "version": 1, "provenance": {...},
//!  "models": [{"kind": "cpu", "mode": "or", "features": [...], "target": "ln(us)",
//!              "tree": {"feature": "postings", "threshold": 5322.5, "yes": {...}, "no": {"value": 4.1, "samples": 9}},
//!              "evaluation": {"folds": 10, "mean_relative_error": ..., ...}}],
//!  "batches": {"gpu": {"overhead_us": 9.1, "added_or": 0.12, "cost": {"host_fixed_us": ...}, ...}}}
//! ```
//!
//! `models/README.md` says what each field means. Whatever is not exactly this is refused with its place: a model that
//! is half understood would schedule wrongly without a sign of it.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::batches::{BatchModel, BatchModels};
use super::tree::{StoredTree, Tree};
use super::{CostModel, Evaluation};
use crate::files::{InputError, open_text, write_atomically};
use crate::machine::Class;
use crate::query::{Features, Mode};
use crate::random::exp;

/// What the file says it is.
const FORMAT: &str = "tandem-model";
/// The version that this build reads and writes.
const VERSION: u64 = 1;
/// What trees predict.
const TARGET: &str = "ln(us)";

/// One tree: the cost of one mode on one kind of processor.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The processor.
    pub kind: Class,
    /// The mode.
    pub mode: Mode,
    /// How wrong it is on queries that it has not seen.
    pub evaluation: Option<Evaluation>,
    pub(super) tree: Tree,
}

impl Model {
    /// Leaves of its tree.
    #[must_use]
    pub fn leaves(&self) -> usize {
        self.tree.size().0
    }
}

/// Models of one machine, at most one a processor kind and mode.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFile {
    /// Where the models come from: command, workload, machine, seed.
    pub provenance: BTreeMap<String, String>,
    /// What batches cost there.
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
    /// By class.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    batches: BTreeMap<Class, BatchModel>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredModel {
    kind: Class,
    mode: Mode,
    features: Vec<String>,
    target: String,
    tree: StoredTree,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    evaluation: Option<Evaluation>,
}

impl ModelFile {
    pub(super) fn new(models: Vec<Model>, batches: BatchModels) -> Self {
        Self { provenance: BTreeMap::new(), batches, models }
    }

    /// The models, in the order of the file.
    #[must_use]
    pub fn models(&self) -> &[Model] {
        &self.models
    }

    /// Reads a model file (`.json`, also `.gz` or `.zst`).
    ///
    /// # Errors
    /// If it is of another format or version, or anything in it is not as it should be.
    pub fn read(path: &Path) -> Result<Self, InputError> {
        let mut bytes = Vec::new();
        open_text(path)?.read_to_end(&mut bytes).map_err(|e| InputError::file(path, format!("cannot read: {e}")))?;
        Self::parse(path, &bytes)
    }

    /// Reads a model file's content; `name` stands for it in errors.
    ///
    /// # Errors
    /// As [`ModelFile::read`].
    pub fn parse(name: impl AsRef<Path>, bytes: &[u8]) -> Result<Self, InputError> {
        let path = name.as_ref();
        let damaged = |e: serde_json::Error| {
            // The parser's own text ends with the place, which we give in front.
            let text = e.to_string();
            let message = text.rsplit_once(" at line ").map_or(text.as_str(), |(message, _)| message);
            InputError::at(path, e.line().max(1) as u64, e.column().max(1) as u64, message)
        };
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
        for (i, model) in stored.models.iter().enumerate() {
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

    /// Writes a model file, whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn write(&self, path: &Path) -> io::Result<()> {
        let models = self.models.iter().map(StoredModel::from).collect();
        let batches = self.batches.0.iter().filter_map(|(class, model)| Some((class, model.clone()?))).collect();
        let provenance = self.provenance.clone();
        let stored = StoredFile { format: FORMAT.to_owned(), version: VERSION, provenance, models, batches };
        write_atomically(path, |out| {
            // One blank of indentation: trees nest deeply.
            let formatter = serde_json::ser::PrettyFormatter::with_indent(b" ");
            stored.serialize(&mut serde_json::Serializer::with_formatter(&mut *out, formatter))?;
            out.write_all(b"\n")
        })
    }
}

impl CostModel for ModelFile {
    fn predict_us(&self, kind: Class, mode: Mode, features: &Features) -> Option<f64> {
        let model = self.models.iter().find(|model| (model.kind, model.mode) == (kind, mode))?;
        if !features.is_complete() {
            return None;
        }
        Some(exp(model.tree.predict(&features.vector())))
    }
}

impl From<&Model> for StoredModel {
    fn from(model: &Model) -> Self {
        Self {
            kind: model.kind,
            mode: model.mode,
            features: Features::NAMES.map(str::to_owned).to_vec(),
            target: TARGET.to_owned(),
            tree: StoredTree::from(&model.tree),
            evaluation: model.evaluation.clone(),
        }
    }
}

impl StoredModel {
    fn check(&self, place: &str) -> Result<Model, String> {
        if let Some(name) = self.features.iter().find(|name| !Features::NAMES.contains(&name.as_str())) {
            let known = Features::NAMES.join(", ");
            return Err(format!("{place}.features: unknown feature `{name}`, this build knows {known}"));
        }
        if self.target != TARGET {
            return Err(format!("{place}.target is \"{}\", expected \"{TARGET}\"", self.target));
        }
        Ok(Model {
            kind: self.kind,
            mode: self.mode,
            tree: self.tree.check(&self.features, &format!("{place}.tree"), 0)?,
            evaluation: self.evaluation.clone(),
        })
    }
}
