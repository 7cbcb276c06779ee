//! Studies of the errors of models on unseen queries.
//!
//! | study | question |
//! | --- | --- |
//! | [`compare`] | How large are the errors of each kind of model? |
//! | [`importance`] | How much do errors grow when a feature's values are shuffled among queries? |
//! | [`learning_curve`] | How much would more queries reduce errors? |
//! | [`scatter`] | What is the estimate of each query? |

use rayon::prelude::*;

use super::evaluate::assign_folds;
use super::inputs::Inputs;
use super::train::{Group, Of, groups};
use super::{Evaluation, ModelKind, TrainError, TrainOptions, Workload};
use crate::base::ids::QueryId;
use crate::base::random::Random;

/// The errors of each of these kinds of model.
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

/// For each feature that a model reads: the growth of the mean relative error when its values are shuffled among the held-back
/// queries. The most important come first within a class and mode.
///
/// Errors are those of [`train`](super::train::train).
pub fn importance(workload: &Workload, options: &TrainOptions) -> Result<Vec<(Of, &'static str, f64)>, TrainError> {
    let groups = groups(workload, options)?;
    let of_group = |group: &Group| {
        let fold_of = assign_folds(&group.inputs, options.folds, options.seed)
            .map_err(|distinct| group.too_few(distinct, options))?;
        // One fold is enough to rank features.
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

/// The mean relative error of models fitted to an eighth, a quarter, a half and all of the queries.
pub fn learning_curve(workload: &Workload, options: &TrainOptions) -> Result<Vec<(Of, usize, f64)>, TrainError> {
    let groups = groups(workload, options)?;
    let parts: Vec<(&Group, usize)> = groups.iter().flat_map(|group| [8, 4, 2, 1].map(|part| (group, part))).collect();
    let of_part = |(group, part): (&Group, usize)| {
        let fold_of = assign_folds(&group.inputs, options.folds, options.seed)
            .map_err(|distinct| group.too_few(distinct, options))?;
        // The same fold is held back from each part.
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

/// The estimate and the measured time of each query, in microseconds.
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
