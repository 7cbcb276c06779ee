//! How models err, looked at from several sides, all on queries that the model at hand has not seen.
//!
//! | side | question |
//! | --- | --- |
//! | [`compare`] | which kind of model is how wrong? |
//! | [`importance`] | what is a feature worth: how much worse are estimates when its values are dealt to other queries? |
//! | [`learning_curve`] | what would more queries gain? |
//! | [`scatter`] | which queries are estimated how? |

use rayon::prelude::*;

use super::evaluate::assign_folds;
use super::inputs::Inputs;
use super::train::{Group, groups};
use super::{Evaluation, ModelKind, TrainError, TrainOptions, Workload};
use crate::base::ids::QueryId;
use crate::base::machine::Class;
use crate::base::random::Random;
use crate::query::Mode;

/// A class and a mode, of which a model is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Of {
    /// The class of processor.
    pub kind: Class,
    /// The mode.
    pub mode: Mode,
}

/// How wrong each of these kinds of model is.
///
/// # Errors
/// As [`train`](super::train).
pub fn compare(
    workload: &Workload,
    kinds: &[ModelKind],
    options: &TrainOptions,
) -> Result<Vec<(ModelKind, Of, Evaluation)>, TrainError> {
    let groups = groups(workload, options)?;
    let pairs: Vec<_> = kinds.iter().flat_map(|&kind| groups.iter().map(move |group| (kind, group))).collect();
    let evaluate = |(model, group): (ModelKind, &Group)| {
        let options = TrainOptions { model, ..*options };
        let estimates = group.cross_validate(&options)?;
        Ok((model, group.of(), group.evaluate(&estimates, &options)))
    };
    pairs.into_par_iter().map(evaluate).collect()
}

/// By feature that any model asks for, the mean relative error when its values are dealt anew among the queries held back,
/// less the error with its own; most valuable first within a class and mode.
///
/// # Errors
/// As [`train`](super::train).
pub fn importance(workload: &Workload, options: &TrainOptions) -> Result<Vec<(Of, &'static str, f64)>, TrainError> {
    let groups = groups(workload, options)?;
    let of_group = |group: &Group| {
        let fold_of = assign_folds(&group.inputs, options.folds, options.seed)
            .map_err(|distinct| group.too_few(distinct, options))?;
        // One fold stands for all: it is enough to put features in order.
        let (held_back, others): (Vec<usize>, Vec<usize>) = (0..group.samples.len()).partition(|&i| fold_of[i] == 0);
        let model = group.fit(&group.samples.at(&others), options)?;
        let held_back = group.samples.at(&held_back);
        let error = |rows: &[[f64; Inputs::NAMES.len()]]| {
            let errors = rows.iter().zip(held_back.us()).map(|(row, us)| (model.predict_us(row) - us).abs() / us);
            errors.sum::<f64>() / held_back.len() as f64
        };
        let own = error(held_back.rows());
        let mut worth = Vec::new();
        for input in model.asks().iter() {
            let mut random = Random::new(options.seed, input as u64);
            let mut rows = held_back.rows().to_vec();
            for i in (1..rows.len()).rev() {
                let j = random.below(i as u32 + 1) as usize;
                let value = rows[i][input];
                rows[i][input] = rows[j][input];
                rows[j][input] = value;
            }
            worth.push((group.of(), Inputs::NAMES[input], error(&rows) - own));
        }
        worth.sort_by(|a, b| b.2.total_cmp(&a.2));
        Ok(worth)
    };
    let all = groups.par_iter().map(of_group).collect::<Result<Vec<_>, _>>()?;
    Ok(all.into_iter().flatten().collect())
}

/// The mean relative error of models of an eighth, a quarter, a half and all of the queries.
///
/// # Errors
/// As [`train`](super::train).
pub fn learning_curve(workload: &Workload, options: &TrainOptions) -> Result<Vec<(Of, usize, f64)>, TrainError> {
    let groups = groups(workload, options)?;
    let parts: Vec<(&Group, usize)> = groups.iter().flat_map(|group| [8, 4, 2, 1].map(|part| (group, part))).collect();
    let of_part = |(group, part): (&Group, usize)| {
        let fold_of = assign_folds(&group.inputs, options.folds, options.seed)
            .map_err(|distinct| group.too_few(distinct, options))?;
        // One fold is held back of each part alike.
        let (held_back, others): (Vec<usize>, Vec<usize>) = (0..group.samples.len()).partition(|&i| fold_of[i] == 0);
        let kept: Vec<usize> = others.iter().copied().step_by(part).collect();
        let model = group.fit(&group.samples.at(&kept), options)?;
        let held_back = group.samples.at(&held_back);
        let errors =
            held_back.rows().iter().zip(held_back.us()).map(|(row, us)| (model.predict_us(row) - us).abs() / us);
        Ok((group.of(), kept.len(), errors.sum::<f64>() / held_back.len() as f64))
    };
    parts.into_par_iter().map(of_part).collect()
}

/// Each query's estimate and what it took, in microseconds.
///
/// # Errors
/// As [`train`](super::train).
pub fn scatter(workload: &Workload, options: &TrainOptions) -> Result<Vec<(Of, QueryId, f64, f64)>, TrainError> {
    let mut rows = Vec::new();
    for group in groups(workload, options)? {
        let estimates = group.cross_validate(options)?;
        let row =
            |i: usize| (group.of(), workload.rows[group.rows[i]].query_id, estimates.us[i], group.samples.us()[i]);
        rows.extend((0..group.samples.len()).map(row));
    }
    Ok(rows)
}
