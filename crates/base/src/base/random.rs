//! Seeded randomness with the same numbers on every machine.
//!
//! A synthetic index must not depend on the platform's maths library, whose `ln` may differ in the last bit. [`ln`] and
//! [`exp`] here therefore use only additions, multiplications, divisions and bit patterns, which IEEE 754 defines
//! exactly. Everything in an index is computed with them.
//!
//! One seed feeds many **streams**, each identified by a number, such as the terms of a synthetic index. Everything that
//! a run draws comes from the stream of its seed, [`Purpose`], node and lane ([`NodeSeed`]). Two streams that differ in
//! any of the four are independent, and can be drawn in any order or in parallel.

use rand_distr::Distribution;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

/// The generator of every stream.
#[derive(Clone, Debug)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// Stream number `stream` of `seed`.
    #[inline]
    pub fn new(seed: u64, stream: u64) -> Self {
        Self(Xoshiro256PlusPlus::seed_from_u64(mix(mix(seed) ^ stream)))
    }

    /// 64 uniform bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in (0, 1], a multiple of 2^-53.
    #[inline]
    pub fn unit(&mut self) -> f64 {
        ((self.bits() >> 11) + 1) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// Uniform in `0..n`, without bias. Panics if `n` is 0.
    #[inline]
    pub fn below(&mut self, n: u32) -> u32 {
        assert!(n > 0, "nothing to draw from");
        // Lemire 2019: the high half of a product is uniform once the few low halves that would come too often are
        // rejected. Their number is a remainder by n, which is needed only for low halves below n.
        loop {
            let product = (self.bits() >> 32) * u64::from(n);
            let low = product as u32;
            if low >= n || low >= n.wrapping_neg() % n {
                return (product >> 32) as u32;
            }
        }
    }

    /// A value drawn from `distribution`.
    ///
    /// `rand_distr` uses the platform's maths library in rare cases, such as one exponential value in a thousand.
    /// Values that must be equal in the last bit everywhere are drawn by the other methods.
    #[inline]
    pub fn draw<T>(&mut self, distribution: &impl Distribution<T>) -> T {
        distribution.sample(&mut self.0)
    }

    /// A normal value of mean 0 and variance 1, by Marsaglia's polar method, whose square root IEEE 754 also defines
    /// exactly.
    pub fn normal(&mut self) -> f64 {
        loop {
            let (x, y) = (2.0 * self.unit() - 1.0, 2.0 * self.unit() - 1.0);
            let square = x * x + y * y;
            if square < 1.0 && square > 0.0 {
                return x * (-2.0 * ln(square) / square).sqrt();
            }
        }
    }
}

/// The purpose of a random stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// Gaps between arrivals.
    Arrivals = 1,
    /// The queries that arrive.
    Queries = 2,
    /// The places of arrivals with equal timestamps within the resolution of these.
    Ties = 3,
    /// The start in a recording.
    Recording = 4,
    /// The lengths of bursts and calms.
    Bursts = 5,
    /// Factors between the costs of shards.
    ShardFactors = 6,
    /// The query whose cost a shard takes, where costs of shards are independent.
    ShardRows = 7,
    /// The replica that answers.
    Routing = 8,
    /// The variation of service times of a lane.
    Service = 9,
    /// The variation of the dispatcher's rounds.
    Rounds = 10,
    /// Errors that are added to estimates.
    EstimateErrors = 12,
    /// Decisions of a policy that draws.
    Policy = 13,
    /// Errors of batch estimates, with a class in place of a lane.
    BatchErrors = 14,
    /// Other samples of the measured queries, by number in the place of seeds.
    QuerySamples = 15,
    /// The priority of each arrival.
    Priorities = 16,
    /// The moment at which a lap of observed pauses begins, by lap in place of a lane.
    Pauses = 17,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 15] = [
        Self::Arrivals,
        Self::Queries,
        Self::Ties,
        Self::Recording,
        Self::Bursts,
        Self::ShardFactors,
        Self::ShardRows,
        Self::Routing,
        Self::Service,
        Self::Rounds,
        Self::EstimateErrors,
        Self::Policy,
        Self::BatchErrors,
        Self::QuerySamples,
        Self::Priorities,
    ];

    /// The stream of `seed` for this purpose, where a run has one for all nodes and lanes.
    #[inline]
    pub fn stream(self, seed: u64) -> Random {
        NodeSeed { seed, node: 0 }.stream(self, 0)
    }
}

/// The seed of a run, and the node of its cluster that draws: 0 if there is one node only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NodeSeed {
    /// The seed of the run.
    pub seed: u64,
    /// The number of the node.
    pub node: u32,
}

impl NodeSeed {
    /// Lanes of a node that have streams of their own.
    pub const MAX_LANES: u32 = 1 << 24;

    /// The stream of this seed and node for a purpose and a lane: 0 for what the lanes of a node share. Panics if
    /// `lane` is past 2^24.
    #[inline]
    pub fn stream(self, purpose: Purpose, lane: u32) -> Random {
        assert!(lane < Self::MAX_LANES, "lane {lane}");
        Random::new(self.seed, u64::from(self.node) << 32 | u64::from(lane) << 8 | purpose as u64)
    }
}

/// Scatters the bits of `x`: the finaliser of SplitMix64, a bijection.
#[inline]
pub fn mix(x: u64) -> u64 {
    let x = x.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

/// The natural logarithm of a positive normal number `x`, with a relative or absolute error of at most 1e-15.
pub fn ln(x: f64) -> f64 {
    let bits = x.to_bits();
    let mut exponent = ((bits >> 52) & 0x7FF) as i32 - 1023;
    let mut mantissa = f64::from_bits((bits & ((1 << 52) - 1)) | (1023 << 52));
    if mantissa > std::f64::consts::SQRT_2 {
        mantissa *= 0.5;
        exponent += 1;
    }
    // ln m = 2 artanh s = 2 (s + s³/3 + s⁵/5 + …). Since |s| < 0.172, terms after the eleventh do not count.
    let s = (mantissa - 1.0) / (mantissa + 1.0);
    let z = s * s;
    let series = (1..=10).rev().fold(0.0, |sum, i| z * (sum + 1.0 / f64::from(2 * i + 1)));
    f64::from(exponent) * std::f64::consts::LN_2 + 2.0 * s * (1.0 + series)
}

/// e to the power `x`. It is zero below -708, and e^708 above 708, near the ends of the range of doubles.
pub fn exp(x: f64) -> f64 {
    if x < -708.0 {
        return 0.0;
    }
    let x = x.min(708.0);
    let halvings = (x * std::f64::consts::LOG2_E).round();
    let rest = x - halvings * std::f64::consts::LN_2;
    let series = (1..=13).rev().fold(1.0, |sum, i| 1.0 + rest / f64::from(i) * sum);
    series * f64::from_bits(((1023 + halvings as i64) as u64) << 52)
}

/// `base` to the power `exponent`, for a positive normal `base`.
#[inline]
pub fn pow(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

#[cfg(test)]
mod tests {
    use rand_distr::Exp1;

    use super::*;

    #[test]
    fn logarithm_and_exponential_agree_with_the_platforms() {
        for i in -600..=600 {
            let x = f64::from(i) * 1.13;
            let (ours, theirs) = (exp(x), x.exp());
            assert!((ours / theirs - 1.0).abs() < 1e-13, "exp {x}: {ours} {theirs}");
            let (ours, theirs) = (ln(theirs * 1.37), (theirs * 1.37).ln());
            assert!((ours - theirs).abs() < 1e-15 * theirs.abs().max(1.0) * 2.0, "ln: {ours} {theirs}");
        }
        assert_eq!(ln(1.0), 0.0);
        assert_eq!(exp(-1e9), 0.0);
    }

    #[test]
    fn a_stream_is_the_same_on_every_machine() {
        let mut random = Random::new(7, 1);
        let drawn = [random.bits(), random.unit().to_bits(), random.normal().to_bits()];
        assert_eq!(drawn, [0xf4cb_fcaa_6891_bd20, 0x3fdf_7acf_6801_f5b0, 0xbfe1_22dc_f63e_2bde], "{drawn:#x?}");
    }

    #[test]
    fn another_seed_purpose_node_or_lane_is_another_stream() {
        let mut seen = std::collections::HashSet::new();
        for (seed, node, lane) in (0..4).flat_map(|i| (0..4).flat_map(move |j| (0..4).map(move |k| (i, j, k)))) {
            for purpose in Purpose::ALL {
                let mut stream = NodeSeed { seed, node }.stream(purpose, lane);
                assert!(seen.insert(stream.bits()), "{purpose:?} {seed} {node} {lane}");
                assert!(seen.insert(stream.bits()), "{purpose:?} {seed} {node} {lane}");
            }
        }
    }

    #[test]
    fn draws_have_their_moments() {
        let mut random = Random::new(1, 0);
        let n = 200_000;
        let exponential = (0..n).map(|_| random.draw::<f64>(&Exp1)).sum::<f64>() / f64::from(n);
        let normal = (0..n).map(|_| random.normal().powi(2)).sum::<f64>() / f64::from(n);
        // Five standard errors: 5 / sqrt(n), and 5 sqrt(2 / n).
        assert!((exponential - 1.0).abs() < 0.0112, "{exponential}");
        assert!((normal - 1.0).abs() < 0.0158, "{normal}");
        let mut counts = [0u32; 7];
        (0..70_000).for_each(|_| counts[random.below(7) as usize] += 1);
        assert!(counts.iter().all(|&count| (9_500..10_500).contains(&count)), "{counts:?}");
    }
}
