//! Rules: conditions with linear models, of which the first that holds applies.

use serde::{Deserialize, Serialize};

use super::grow::{Condition, largest_leaf};
use super::linear::Linear;
use super::{PUBLISHED, PublishedRow};
use crate::cost::inputs::{InputSet, Inputs, NUM_INPUTS};
use crate::cost::models::samples::Samples;
use crate::cost::models::tree::FitError;
use crate::cost::models::{FitOptions, Regression, US};

/// Maximum rules of a file, and maximum conditions of a rule.
const MOST: usize = 10_000;

/// Rules in order. The last one has no condition.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Rules {
    rules: Vec<Rule>,
    /// The shortest time of a sample. It bounds predictions, since linear models have no lower bound.
    least_us: f64,
}

#[derive(Clone, Debug, PartialEq)]
struct Rule {
    conditions: Vec<Condition>,
    model: Linear,
    samples: usize,
}

impl Regression for Rules {
    const HELP: &'static str = "Rules with linear models on the published features: what Ding et al. used";
    const TARGET: &'static str = US;

    type Stored = StoredRules;

    fn fit(samples: &Samples, _options: &FitOptions) -> Result<Self, FitError> {
        let row = |inputs: &[f64; NUM_INPUTS]| PUBLISHED.map(|input| inputs[input]);
        let mut left: Vec<(PublishedRow, f64)> =
            samples.rows().iter().map(row).zip(samples.us().iter().copied()).collect();
        let least_us = samples.us().iter().copied().fold(f64::INFINITY, f64::min);
        let mut rules = Vec::new();
        while let Some(leaf) = largest_leaf(&mut left) {
            let rule = Rule { conditions: merged(&leaf.conditions), model: leaf.model, samples: leaf.samples };
            left.retain(|(row, _)| !rule.covers(row));
            rules.push(rule);
            if left.is_empty() {
                break;
            }
        }
        // The last rule covers everything else.
        if let Some(last) = rules.last_mut() {
            last.conditions.clear();
        }
        Ok(Self { rules, least_us })
    }

    fn predict_us(&self, inputs: &[f64; NUM_INPUTS]) -> f64 {
        let row = PUBLISHED.map(|input| inputs[input]);
        let rule = self.rules.iter().find(|rule| rule.covers(&row));
        rule.map_or(self.least_us, |rule| rule.model.predict(&row).max(self.least_us))
    }

    fn asks(&self) -> InputSet {
        PUBLISHED.into_iter().collect()
    }

    fn size(&self) -> (usize, &'static str) {
        (self.rules.len(), "rules")
    }

    fn words(&self) -> Option<String> {
        Some(self.rules.iter().map(Rule::words).collect::<Vec<_>>().join("\n"))
    }

    fn stored(&self) -> StoredRules {
        let condition = |&(input, above, threshold): &Condition| StoredCondition {
            feature: Inputs::NAMES[PUBLISHED[input]].to_owned(),
            above,
            threshold,
        };
        let stored = |rule: &Rule| StoredRule {
            conditions: rule.conditions.iter().map(condition).collect(),
            constant_us: rule.model.constant,
            factors_us: rule.model.factors,
            samples: rule.samples,
        };
        StoredRules { least_us: self.least_us, rules: self.rules.iter().map(stored).collect() }
    }

    fn checked(stored: &StoredRules, features: InputSet, place: &str) -> Result<Self, String> {
        let StoredRules { least_us, rules } = stored;
        if !(*least_us > 0.0 && least_us.is_finite()) {
            return Err(format!("{place}.least_us is {least_us}, expected microseconds above 0"));
        }
        if rules.is_empty() || rules.len() > MOST {
            return Err(format!("{place}: {} rules, expected 1 to {MOST}", rules.len()));
        }
        let rules = rules.iter().enumerate().map(|(n, rule)| rule.check(features, &format!("{place}.rules[{n}]")));
        Ok(Self { rules: rules.collect::<Result<_, _>>()?, least_us: *least_us })
    }
}

/// The strictest conditions for each side of each input.
fn merged(conditions: &[Condition]) -> Vec<Condition> {
    let mut kept: Vec<Condition> = Vec::new();
    for &(input, is_above, threshold) in conditions {
        match kept.iter_mut().find(|kept| (kept.0, kept.1) == (input, is_above)) {
            Some(same) => same.2 = if is_above { same.2.max(threshold) } else { same.2.min(threshold) },
            None => kept.push((input, is_above, threshold)),
        }
    }
    kept
}

impl Rule {
    fn covers(&self, row: &PublishedRow) -> bool {
        self.conditions.iter().all(|&(input, is_above, threshold)| (row[input] > threshold) == is_above)
    }

    fn words(&self) -> String {
        let name = |input: usize| Inputs::NAMES[PUBLISHED[input]];
        let condition = |&(input, is_above, threshold): &Condition| {
            format!("{} {} {threshold}", name(input), if is_above { ">" } else { "<=" })
        };
        let conditions = self.conditions.iter().map(condition).collect::<Vec<_>>().join(" and ");
        let factors = self.model.factors.iter().enumerate().filter(|&(_, &factor)| factor != 0.0);
        let terms: String = factors.map(|(input, factor)| format!(" + {factor:.3e} x {}", name(input))).collect();
        let start = if conditions.is_empty() { "else".to_owned() } else { format!("if {conditions}") };
        format!("{start}: {:.3} us{terms}   ({} queries)", self.model.constant, self.samples)
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoredRules {
    least_us: f64,
    rules: Vec<StoredRule>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredRule {
    conditions: Vec<StoredCondition>,
    constant_us: f64,
    factors_us: PublishedRow,
    samples: usize,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredCondition {
    feature: String,
    /// Whether the feature must be above the threshold, or else at most the threshold.
    above: bool,
    threshold: f64,
}

impl StoredRule {
    fn check(&self, features: InputSet, place: &str) -> Result<Rule, String> {
        let numbers = self.factors_us.iter().chain([&self.constant_us]);
        if let Some(wrong) = numbers.chain(self.conditions.iter().map(|c| &c.threshold)).find(|x| !x.is_finite()) {
            return Err(format!("{place}: {wrong}, expected finite numbers"));
        }
        let published = PUBLISHED.into_iter().collect();
        let condition = |condition: &StoredCondition| {
            let position = features.and(published).position(&condition.feature, place)?;
            let input = PUBLISHED.iter().filter(|&&published| published < position).count();
            Ok::<Condition, String>((input, condition.above, condition.threshold))
        };
        let conditions = self.conditions.iter().map(condition).collect::<Result<_, _>>()?;
        let model = Linear { constant: self.constant_us, factors: self.factors_us };
        Ok(Rule { conditions, model, samples: self.samples })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples on two lines, of which the number of terms selects one.
    fn samples() -> Samples {
        let rows: Vec<Inputs> = (0..3000_u32)
            .map(|i| {
                let mut numbers = [f64::NAN; NUM_INPUTS];
                let postings = f64::from(i * 37 % 1000);
                numbers[..4].copy_from_slice(&[f64::from(i % 5), postings / 2.0, postings / 3.0, postings]);
                Inputs(numbers)
            })
            .collect();
        let us = rows.iter().map(|row| if row.0[0] > 2.0 { 500.0 + row.0[3] } else { 10.0 + 0.1 * row.0[3] }).collect();
        Samples::new(&rows, us)
    }

    #[test]
    fn two_lines_are_found_again_as_two_rules() {
        let samples = samples();
        let rules = Rules::fit(&samples, &FitOptions::default()).unwrap();
        let words = rules.words().unwrap();
        assert!(rules.rules.len() <= 4, "{words}");
        let errors = samples.rows().iter().zip(samples.us()).map(|(row, us)| (rules.predict_us(row) - us).abs() / us);
        assert!(errors.sum::<f64>() / 3000.0 < 0.1, "{words}");
        assert!(words.contains("terms <= 2.5") || words.contains("terms > 2.5"), "{words}");
    }

    #[test]
    fn what_is_stored_is_read_back_and_checked() {
        let rules = Rules::fit(&samples(), &FitOptions::default()).unwrap();
        let mut stored = rules.stored();
        assert_eq!(Rules::checked(&stored, InputSet::ALL, "m5"), Ok(rules));
        stored.rules[0].constant_us = f64::NAN;
        assert_eq!(
            Rules::checked(&stored, InputSet::ALL, "m5").unwrap_err(),
            "m5.rules[0]: NaN, expected finite numbers"
        );
    }

    #[test]
    fn a_linear_world_needs_one_rule() {
        let all = samples();
        let us = all.rows().iter().map(|row| 3.0 + 2.0 * row[3]).collect();
        let inputs: Vec<Inputs> = (0..all.len()).map(|i| all.inputs(i)).collect();
        let rules = Rules::fit(&Samples::new(&inputs, us), &FitOptions::default()).unwrap();
        assert_eq!(rules.rules.len(), 1);
        assert!(
            (rules.predict_us(all.rows().iter().max_by(|a, b| a[3].total_cmp(&b[3])).unwrap()) - 2001.0).abs() < 5.0
        );
    }
}
