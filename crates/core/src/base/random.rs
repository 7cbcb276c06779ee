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

    /// Uniform in `0..n`, without bias.
    ///
    /// # Panics
    /// If `n` is 0.
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

/// What a run draws a stream for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Purpose {
    /// Gaps between arrivals.
    Arrivals = 1,
    /// Which query arrives.
    Queries = 2,
    /// Where in the resolution of their timestamps equal arrivals lie.
    Ties = 3,
    /// Where a recording begins.
    Recording = 4,
    /// How long bursts and calms last.
    Bursts = 5,
    /// By how much costs differ on another shard.
    ShardFactors = 6,
    /// The query whose cost a shard takes, where costs of shards are independent.
    ShardRows = 7,
    /// The replica that answers.
    Routing = 8,
    /// How service times of a lane vary.
    Service = 9,
    /// When the dispatcher's core is taken away.
    DispatcherStalls = 10,
    /// Errors that are added to estimates.
    EstimateErrors = 12,
    /// Decisions of a policy that draws.
    Policy = 13,
    /// Errors of what policies are told of batches, by class in the place of lanes.
    BatchErrors = 14,
    /// Other samples of the measured queries, by number in the place of seeds.
    QuerySamples = 15,
}

impl Purpose {
    /// All of them.
    pub const ALL: [Self; 14] = [
        Self::Arrivals,
        Self::Queries,
        Self::Ties,
        Self::Recording,
        Self::Bursts,
        Self::ShardFactors,
        Self::ShardRows,
        Self::Routing,
        Self::Service,
        Self::DispatcherStalls,
        Self::EstimateErrors,
        Self::Policy,
        Self::BatchErrors,
        Self::QuerySamples,
    ];

    /// The stream of `seed` for this purpose, where a run has one for all nodes and lanes.
    #[must_use]
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
    const MAX_LANES: u32 = 1 << 24;

    /// The stream of this seed and node for a purpose and a lane: 0 for what the lanes of a node share.
    ///
    /// # Panics
    /// If `lane` is past 2^24.
    #[must_use]
    pub fn stream(self, purpose: Purpose, lane: u32) -> Random {
        assert!(lane < Self::MAX_LANES, "lane {lane}");
        Random::new(self.seed, u64::from(self.node) << 32 | u64::from(lane) << 8 | purpose as u64)
    }
}

/// Scatters the bits of `x`: the finaliser of SplitMix64, a bijection.
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
pub fn pow(base: f64, exponent: f64) -> f64 {
    exp(exponent * ln(base))
}

/// The share of a standard normal distribution below `z`, within 1e-14.
///
/// Source: West, "Better Approximations to Cumulative Normal Functions", Wilmott Magazine, 2005, after Hart, 1968.
pub fn normal_cdf(z: f64) -> f64 {
    #[rustfmt::skip]
    const ABOVE: [f64; 7] = [
        3.526_249_659_989_11e-2, 0.700_383_064_443_688, 6.373_962_203_531_65, 33.912_866_078_383,
        112.079_291_497_871, 221.213_596_169_931, 220.206_867_912_376,
    ];
    #[rustfmt::skip]
    const BELOW: [f64; 8] = [
        8.838_834_764_831_84e-2, 1.755_667_163_182_64, 16.064_177_579_207, 86.780_732_202_946_1,
        296.564_248_779_674, 637.333_633_378_831, 793.826_512_519_948, 440.413_735_824_752,
    ];
    let x = z.abs();
    let density = exp(-x * x / 2.0);
    let tail = if x < 7.071_067_811_865_47 {
        density * polynomial(&ABOVE, x) / polynomial(&BELOW, x)
    } else {
        let fraction = [4.0, 3.0, 2.0, 1.0].into_iter().fold(x + 0.65, |below, above| x + above / below);
        density / fraction / 2.506_628_274_631
    };
    if z > 0.0 { 1.0 - tail } else { tail }
}

/// The value below which `share` of a standard normal distribution lies, within 1e-13. It is infinite if `share` is not
/// between 0 and 1.
///
/// Source: Wichura, "Algorithm AS 241: The Percentage Points of the Normal Distribution", Applied Statistics 37, 1988.
pub fn normal_quantile(share: f64) -> f64 {
    let from_middle = share - 0.5;
    if from_middle.abs() <= 0.425 {
        let r = 0.180_625 - from_middle * from_middle;
        return from_middle * polynomial(&MIDDLE.0, r) / polynomial(&MIDDLE.1, r);
    }
    let tail = if from_middle < 0.0 { share } else { 1.0 - share };
    if tail <= 0.0 {
        return f64::INFINITY.copysign(from_middle);
    }
    let r = (-ln(tail)).sqrt();
    let distance = if r <= 5.0 {
        polynomial(&TAIL.0, r - 1.6) / polynomial(&TAIL.1, r - 1.6)
    } else {
        polynomial(&FAR_TAIL.0, r - 5.0) / polynomial(&FAR_TAIL.1, r - 5.0)
    };
    distance.copysign(from_middle)
}

/// A polynomial with its highest coefficient first.
#[inline]
fn polynomial(coefficients: &[f64], x: f64) -> f64 {
    coefficients.iter().fold(0.0, |sum, coefficient| sum * x + coefficient)
}

/// Numerators and denominators of AS 241's three fractions, highest coefficient first.
#[rustfmt::skip]
const MIDDLE: ([f64; 8], [f64; 8]) = (
    [
        2.509_080_928_730_122_7e3, 3.343_057_558_358_813e4, 6.726_577_092_700_87e4, 4.592_195_393_154_987e4,
        1.373_169_376_550_946e4, 1.971_590_950_306_551_3e3, 1.331_416_678_917_843_8e2, 3.387_132_872_796_366_5,
    ],
    [
        5.226_495_278_852_854e3, 2.872_908_573_572_194_3e4, 3.930_789_580_009_271e4, 2.121_379_430_158_659_7e4,
        5.394_196_021_424_751e3, 6.871_870_074_920_579e2, 4.231_333_070_160_091e1, 1.0,
    ],
);
#[rustfmt::skip]
const TAIL: ([f64; 8], [f64; 8]) = (
    [
        7.745_450_142_783_414e-4, 2.272_384_498_926_918_4e-2, 2.417_807_251_774_506e-1, 1.270_458_252_452_368_4,
        3.647_848_324_763_204_5, 5.769_497_221_460_691, 4.630_337_846_156_546, 1.423_437_110_749_683_5,
    ],
    [
        1.050_750_071_644_416_9e-9, 5.475_938_084_995_345e-4, 1.519_866_656_361_645_7e-2, 1.481_039_764_274_800_8e-1,
        6.897_673_349_851e-1, 1.676_384_830_183_803_8, 2.053_191_626_637_759, 1.0,
    ],
);
#[rustfmt::skip]
const FAR_TAIL: ([f64; 8], [f64; 8]) = (
    [
        2.010_334_399_292_288_1e-7, 2.711_555_568_743_487_6e-5, 1.242_660_947_388_078_4e-3, 2.653_218_952_657_612_4e-2,
        2.965_605_718_285_048_7e-1, 1.784_826_539_917_291_3, 5.463_784_911_164_114, 6.657_904_643_501_103,
    ],
    [
        2.044_263_103_389_939_8e-15, 1.421_511_758_316_446e-7, 1.846_318_317_510_054_7e-5, 7.868_691_311_456_133e-4,
        1.487_536_129_085_061_5e-2, 1.369_298_809_227_358e-1, 5.998_322_065_558_88e-1, 1.0,
    ],
);

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
    fn normal_shares_and_quantiles_are_those_of_the_tables_and_each_others_inverse() {
        for (z, below) in [
            (0.0, 0.5),
            (1.0, 0.841_344_746_068_543),
            (-1.96, 0.024_997_895_148_220_4),
            (-8.0, 6.220_960_574_271_8e-16),
        ] {
            assert!((normal_cdf(z) / below - 1.0).abs() < 1e-8, "{z}: {}", normal_cdf(z));
            assert!((normal_quantile(below) - z).abs() < 1e-8, "{below}: {}", normal_quantile(below));
        }
        for i in 1..4000 {
            let share = f64::from(i) / 4000.0;
            let back = normal_cdf(normal_quantile(share));
            assert!((back - share).abs() < 1e-13, "{share}: {back}");
            assert!(normal_quantile(share) < normal_quantile(share + 1e-5));
        }
        assert_eq!((normal_quantile(0.0), normal_quantile(1.0)), (f64::NEG_INFINITY, f64::INFINITY));
        assert!((normal_quantile(1e-20) + 9.262_340_089_798_408).abs() < 1e-9);
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
