//! Duration of slow and fast phases of a lane's thread, estimated from consecutive batches.
//!
//! The thread's time for each batch is divided by the median of its moment (a millisecond). Its rank among all batches
//! becomes a normal score z, which limits the weight of a stall. Let z be a stationary process with correlation time τ.
//! If the batches of a moment come every d, two batches at distance k have the correlation r^k:
//!
//! ```text
//!   r = e^(−d/τ)        c_i = (1/n) Σ_j r^|i−j|        v = (1/n) Σ_i c_i
//!   Σ z_i z_i+k  →  (n−k) (r^k + v) − Σ (c_i + c_i+k)        Σ z_i²  →  n (1 − v)
//! ```
//!
//! Here z is relative to the mean of the moment's n batches. That mean is estimated from the same batches, which makes
//! even independent batches look negatively correlated; the right sides correct for it. τ is the value for which both
//! sides agree, over distances up to [`LAGS`] and a quarter of the moment. Larger distances help if measurement error
//! blurs the time of single batches.

use super::fit::MOMENT_US;
use crate::base::random::{exp, normal_quantile};

/// Largest distance between two compared batches.
const LAGS: usize = 8;
/// Moments with fewer batches are skipped.
const FEWEST: usize = 3;
/// Significance threshold: the correlation must exceed that of independent batches by this many standard errors.
const CERTAIN: f64 = 3.0;
/// Bisection steps for the correlation time.
const STEPS: usize = 40;

/// Consecutive batches of a lane within a moment.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moment {
    /// Median time between the ends of two batches.
    pub(super) apart_us: f64,
    /// Thread time of each batch divided by the median of the moment.
    pub(super) times: Vec<f64>,
}

/// Correlation time of slow batches in microseconds, at most a moment; 0 if it is not significant.
pub(super) fn lasts_us(moments: &[Moment]) -> f64 {
    let scores = normal_scores(moments);
    let (mut found, mut batches, mut pairs) = (Sums::default(), 0, 0);
    for z in scores.iter().filter(|z| z.len() >= FEWEST) {
        found.add(of_scores(z));
        batches += z.len();
        pairs += lags_of(z.len()) * z.len();
    }
    if found.squares <= 0.0 {
        return 0.0;
    }
    let expected = |lasts_us: f64| {
        let known = moments.iter().filter(|moment| moment.times.len() >= FEWEST);
        let sums = known.fold(Sums::default(), |mut sums, moment| {
            let r = if lasts_us > 0.0 { exp(-moment.apart_us / lasts_us) } else { 0.0 };
            sums.add(expected_of(r, moment.times.len()));
            sums
        });
        sums.correlation()
    };
    let correlation = found.correlation();
    // For white noise, the product of each pair has the variance of one square, independently of the others.
    let by_chance = (pairs as f64).sqrt() / batches.max(1) as f64;
    if correlation - expected(0.0) < CERTAIN * by_chance {
        return 0.0;
    }
    let (mut low, mut high) = (0.0, MOMENT_US);
    for _ in 0..STEPS {
        let middle = (low + high) / 2.0;
        if expected(middle) < correlation { low = middle } else { high = middle }
    }
    high
}

/// Sums of products of scores, relative to the mean of their moment.
#[derive(Clone, Copy, Debug, Default)]
struct Sums {
    /// Sum of the products of neighbours.
    products: f64,
    /// Sum of the squares.
    squares: f64,
}

impl Sums {
    fn add(&mut self, other: Self) {
        self.products += other.products;
        self.squares += other.squares;
    }

    /// The correlation, summed over all distances.
    fn correlation(&self) -> f64 {
        self.products / self.squares
    }
}

/// The sums of a moment's scores.
fn of_scores(z: &[f64]) -> Sums {
    let mean = z.iter().sum::<f64>() / z.len() as f64;
    let product = |lag: usize| z.iter().zip(z.iter().skip(lag)).map(|(a, b)| (a - mean) * (b - mean)).sum::<f64>();
    Sums { products: (1..=lags_of(z.len())).map(product).sum(), squares: product(0) }
}

/// Largest distance between compared neighbours in a moment of `n` batches. All pairs together carry no information:
/// the scores sum to 0, so that their products sum to minus half the squares.
fn lags_of(n: usize) -> usize {
    (n / 4).clamp(1, LAGS)
}

/// Expected sums for `n` batches whose neighbours have the correlation `r`.
fn expected_of(r: f64, n: usize) -> Sums {
    // Each entry is the sum of r^distance over all earlier batches.
    let before: Vec<f64> = std::iter::successors(Some(0.0), |sum| Some(r * (sum + 1.0))).take(n).collect();
    let with_mean: Vec<f64> = (0..n).map(|i| (1.0 + before[i] + before[n - 1 - i]) / n as f64).collect();
    let of_mean = with_mean.iter().sum::<f64>() / n as f64;
    let (mut products, mut power) = (0.0, 1.0);
    for lag in 1..=lags_of(n) {
        power *= r;
        let pairs = n - lag;
        let of_pairs: f64 = with_mean[..pairs].iter().chain(&with_mean[lag..]).sum();
        products += pairs as f64 * (power + of_mean) - of_pairs;
    }
    Sums { products, squares: n as f64 * (1.0 - of_mean) }
}

/// The normal score of each batch's rank among all batches; ties share a score.
fn normal_scores(moments: &[Moment]) -> Vec<Vec<f64>> {
    let mut scores: Vec<Vec<f64>> = moments.iter().map(|moment| vec![0.0; moment.times.len()]).collect();
    let places = |(m, moment): (usize, &Moment)| {
        let placed = moment.times.iter().enumerate().map(move |(i, &times)| (times, m, i));
        placed.collect::<Vec<_>>()
    };
    let mut all: Vec<(f64, usize, usize)> = moments.iter().enumerate().flat_map(places).collect();
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (count, mut first) = (all.len() as f64, 0);
    for alike in all.chunk_by(|a, b| a.0 == b.0) {
        let score = normal_quantile((first as f64 + alike.len() as f64 / 2.0) / count);
        alike.iter().for_each(|&(_, m, i)| scores[m][i] = score);
        first += alike.len();
    }
    scores
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::quantile::median;
    use crate::base::random::Random;

    /// `count` moments of a millisecond with a batch every `apart_us`; their logarithms have the correlation time
    /// `lasts_us`. A share of the batches is stalled. Times are relative to the median, as in measurements.
    fn moments(count: usize, apart_us: f64, lasts_us: f64, stalled: f64) -> Vec<Moment> {
        let mut random = Random::new(3, apart_us.to_bits() ^ lasts_us.to_bits());
        let r = if lasts_us > 0.0 { (-apart_us / lasts_us).exp() } else { 0.0 };
        let mut z = random.normal();
        let moment = |_| {
            let times = (0..(MOMENT_US / apart_us) as usize).map(|_| {
                z = r * z + (1.0 - r * r).sqrt() * random.normal();
                (0.2 * z).exp() * if random.unit() <= stalled { 30.0 } else { 1.0 }
            });
            let times: Vec<f64> = times.collect();
            let middle = median(times.clone());
            Moment { apart_us, times: times.into_iter().map(|times| times / middle).collect() }
        };
        (0..count).map(moment).collect()
    }

    #[test]
    fn what_lasts_is_found_however_long_it_does_and_stalls_change_little() {
        for (apart_us, lasts_us) in [(20.0, 15.0), (20.0, 60.0), (20.0, 200.0), (40.0, 120.0), (150.0, 250.0)] {
            for stalled in [0.0, 0.01] {
                let found = super::lasts_us(&moments(600, apart_us, lasts_us, stalled));
                let ratio = found / lasts_us;
                assert!((0.7..1.3).contains(&ratio), "{apart_us}, {lasts_us}, {stalled}: {found}");
            }
        }
    }

    #[test]
    fn what_varies_by_itself_lasts_no_time() {
        for apart_us in [20.0, 150.0, 300.0] {
            assert_eq!(super::lasts_us(&moments(400, apart_us, 0.0, 0.0)), 0.0, "{apart_us}");
            assert_eq!(super::lasts_us(&moments(400, apart_us, 0.0, 0.01)), 0.0, "{apart_us}");
        }
        // Rare stalls, empty input and constant times have no correlation.
        let stalls = |m: usize| Moment {
            apart_us: 20.0,
            times: (0..50).map(|i| if i == m * 7 % 50 { 50.0 } else { 1.0 }).collect(),
        };
        assert_eq!(super::lasts_us(&(0..60).map(stalls).collect::<Vec<_>>()), 0.0);
        assert_eq!(super::lasts_us(&[]), 0.0);
        assert_eq!(super::lasts_us(&[Moment { apart_us: 400.0, times: vec![1.0, 1.2] }]), 0.0);
        let alike = Moment { apart_us: 20.0, times: vec![1.0; 50] };
        assert_eq!(super::lasts_us(&vec![alike; 20]), 0.0);
    }

    #[test]
    fn what_lasts_longer_than_a_moment_is_told_as_a_moment_and_few_batches_tell_nothing() {
        let long = super::lasts_us(&moments(300, 20.0, 20_000.0, 0.0));
        assert!((400.0..=MOMENT_US).contains(&long), "{long}");
        assert_eq!(super::lasts_us(&moments(1, 150.0, 300.0, 0.0)), 0.0);
    }

    #[test]
    fn expectations_are_those_of_the_process() {
        // The definition: z_i minus the mean, summed over all pairs.
        let (r, n): (f64, usize) = (0.7, 12);
        let cov = |i: usize, j: usize| r.powi(i.abs_diff(j) as i32);
        let with_mean = |i: usize| (0..n).map(|j| cov(i, j)).sum::<f64>() / n as f64;
        let of_mean = (0..n).map(with_mean).sum::<f64>() / n as f64;
        let centred = |i: usize, j: usize| cov(i, j) - with_mean(i) - with_mean(j) + of_mean;
        let products: f64 =
            (1..=lags_of(n)).flat_map(|lag| (0..n - lag).map(move |i| (i, i + lag))).map(|(i, j)| centred(i, j)).sum();
        let squares: f64 = (0..n).map(|i| centred(i, i)).sum();
        let Sums { products: found, squares: found_squares } = expected_of(r, n);
        assert!((found - products).abs() < 1e-9 && (found_squares - squares).abs() < 1e-9, "{found}, {products}");
    }
}
