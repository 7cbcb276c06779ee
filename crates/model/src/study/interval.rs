//! The uncertainty of a live capacity.
//!
//! | part | from |
//! | --- | --- |
//! | sides | the capacity is between a rate that held and a higher one that failed |
//! | machine | query costs in the live runs, and a fixed loop on the workers' cores before and after each |
//! | queries | the driven queries are a sample of the log: the standard error of their mean cost |
//! | seeds | each live run draws its own arrivals and queries |

use crate::base::machine::PerClass;
use crate::base::stats::normal_quantile;
use crate::cost::Cost;
use crate::study::Capacity;

/// The standard normal quantile of a two-sided 90 % interval.
pub const Z: f64 = 1.645;
/// By how much query costs in a live run differ from those of backlogs before it, as a standard deviation. Costs of equal
/// backlogs on one machine differ by 3 to 10 % within a minute, and a run comes minutes after them.
pub const MODEL: f64 = 0.1;
/// Least half-width of an interval.
const LEAST: f64 = 0.01;

/// Half-width of the 90 % interval around the rate that held, as a share of this rate.
pub fn half_width(held_qps: f64, missed_qps: f64, machine: f64, queries: f64) -> f64 {
    let sides = missed_qps / held_qps - 1.0;
    (sides.powi(2) + (Z * machine).powi(2) + (Z * queries).powi(2)).sqrt().max(LEAST)
}

/// Half-width of the 90 % interval of a predicted capacity: its error over seeds and queries, the machine's speed, and
/// the model's error. As for delays, the interval reaches from the capacity divided by 1 plus this number to the capacity
/// times it.
pub fn predicted_half_width(predicted: &Capacity, speed_sd: f64) -> f64 {
    let interval = predicted.total_interval();
    let sides = if predicted.qps > 0.0 { 0.5 * (interval.high - interval.low) / predicted.qps } else { 1.0 };
    let errors = sides / normal_quantile(0.5 + 0.5 * interval.confidence.clamp(0.5, 0.999));
    (Z * errors.hypot(speed_sd).hypot(MODEL)).exp_m1()
}

/// The least half-width of a predicted capacity's interval: what [`MODEL`] alone allows.
pub fn least_predicted_half_width() -> f64 {
    (Z * MODEL).exp_m1()
}

/// The standard deviation of positive values divided by their mean; 0 for fewer than two values.
pub fn scatter(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return 0.0;
    }
    deviation(values) / (values.iter().sum::<f64>() / values.len() as f64)
}

/// The standard deviation of values; 0 for fewer than two.
pub fn deviation(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len().max(1) as f64;
    let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
    (squares / values.len().saturating_sub(1).max(1) as f64).sqrt()
}

/// The relative standard error of the mean cost of a sample of `of` queries, on the class where it is largest.
pub fn sampled(costs: &[PerClass<Cost>], of: usize) -> f64 {
    let classes = crate::base::machine::Class::ALL;
    let rest = 1.0 - costs.len() as f64 / of.max(costs.len()).max(1) as f64;
    let of_class = |class| {
        let known = costs.iter().map(|cost| cost[class]).filter(|&cost| cost != Cost::NEVER);
        let us: Vec<f64> = known.map(|cost: Cost| cost.alone.as_us()).collect();
        if us.len() < 2 { 0.0 } else { scatter(&us) / (us.len() as f64).sqrt() }
    };
    rest.sqrt() * classes.into_iter().map(of_class).fold(0.0, f64::max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::time::Nanos;

    #[test]
    fn an_interval_has_all_its_parts_and_never_width_0() {
        let near = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(near(half_width(100.0, 105.0, 0.0, 0.0), 0.05));
        assert!(near(half_width(100.0, 103.0, 0.04 / Z, 0.0), 0.05));
        assert!(near(half_width(100.0, 103.0, 0.0, 0.04 / Z), 0.05));
        assert!(near(half_width(100.0, 100.1, 0.0, 0.0), LEAST));
        assert!(near(scatter(&[9.0, 11.0]), 0.02_f64.sqrt()) && near(scatter(&[5.0]), 0.0));
    }

    #[test]
    fn a_sample_of_all_queries_is_sure_and_of_few_is_not() {
        let costs: Vec<PerClass<Cost>> =
            [9, 11].map(|us| PerClass::two(Cost::alone(Nanos(us * 1000)), Cost::NEVER)).repeat(50);
        assert_eq!(sampled(&costs, 100), 0.0);
        let few = sampled(&costs, 1_000_000);
        assert!((0.009..0.011).contains(&few), "{few}");
        assert_eq!(sampled(&[], 10), 0.0);
    }
}
