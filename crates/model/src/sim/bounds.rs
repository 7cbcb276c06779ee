//! Rates that no scheduler can exceed, not even one that knows the future, preempts and splits queries.
//!
//! # The capacity region
//! Query i of n takes c_ir of resource r if it runs on the class of r; there are m_r of r, and a share x_ir of the query
//! runs there. The mean work of a query must fit all resources:
//!
//! ```text
//!   minimise T   with   Σ_i c_ir x_ir / n ≤ m_r T for each r,   Σ_r x_ir = 1;   rate ≤ 1 / T
//! ```
//!
//! A query's cost is its *least* cost, in the best of batches or alone for schedulers that make none
//! ([`MachineModel::least_use`]). A class that batches has two resources, the lanes' threads and the devices. The
//! devices' buses are a third where queries read the host's memory. A query needs all of them, so each alone gives a
//! bound, and the tightest one counts.
//!
//! Two classes need no solver: sort queries by c/g and move them to the CPUs, smallest ratio first, until both sides take
//! equally long; one query is split. With more classes, the dual is climbed: every price of every resource gives a bound,
//! and the best one found counts. In the long run no scheduler is stable above this rate; a short run may be.

use crate::base::machine::{Class, PerClass};
use crate::cost::{BatchSizes, Cost, MachineModel};

const CLIMB: u32 = 400;

/// The optimum of the capacity region's linear program.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Region {
    /// Highest rate at which any scheduler is stable, in queries per second.
    pub rate_qps: f64,
    /// The price of each class's time: the worth of a second of it to the rate. The prices sum to 1.
    pub price: PerClass<f64>,
}

/// The least share of each class's capacity that one query takes, in seconds.
pub(super) type Shares = PerClass<f64>;

/// The resource considered of a class that batches.
#[derive(Clone, Copy)]
pub(super) enum View {
    Lanes,
    Devices,
}

impl View {
    pub(super) fn of(model: &MachineModel) -> &'static [Self] {
        let batches = |class| model.batches[class].is_some();
        if model.machine.classes().any(batches) { &[Self::Devices, Self::Lanes] } else { &[Self::Lanes] }
    }

    /// The cost of a query on each class, in this view. It is infinite on classes that the machine lacks or that the
    /// query may not run on.
    pub(super) fn shares(self, model: &MachineModel, costs: &PerClass<Cost>, sizes: BatchSizes) -> Shares {
        PerClass::from_fn(|class| {
            let lanes = model.machine.count(class) as f64;
            if lanes == 0.0 || costs[class] == Cost::NEVER {
                return f64::INFINITY;
            }
            let least = model.least_use(class, costs[class], sizes);
            match self {
                Self::Devices if model.batches[class].is_some() => {
                    least.device.as_secs() / model.machine.num_devices(class) as f64
                }
                _ => least.lane.as_secs() / lanes,
            }
        })
    }
}

/// Solves the capacity region of equally frequent queries, for schedulers that may make batches of these sizes.
///
/// `None` without queries, without processors, or if everything costs nothing.
#[must_use]
pub fn region(
    services: impl IntoIterator<Item = PerClass<Cost>>,
    model: &MachineModel,
    sizes: BatchSizes,
) -> Option<Region> {
    let services: Vec<PerClass<Cost>> = services.into_iter().collect();
    let regions = View::of(model).iter().filter_map(|view| {
        let shares: Vec<Shares> = services.iter().map(|costs| view.shares(model, costs, sizes)).collect();
        region_of(shares, model)
    });
    regions.min_by(|a, b| a.rate_qps.total_cmp(&b.rate_qps))
}

/// The standard error of the logarithm of the [region]'s rate if the queries are a sample: at the prices of the
/// optimum each query costs the machine a weight, and the rate is the inverse of their mean. Of a class's threads and its
/// devices the one that is known less well counts: which of them a policy is short of is up to the policy.
///
/// `None` for fewer than two queries, or where there is no region.
#[must_use]
pub fn region_error(services: &[PerClass<Cost>], model: &MachineModel, sizes: BatchSizes) -> Option<f64> {
    let of_view = |view: &View| {
        let shares: Vec<Shares> = services.iter().map(|costs| view.shares(model, costs, sizes)).collect();
        let Region { price, .. } = region_of(shares.clone(), model)?;
        let weight = |share: &Shares| {
            let priced = model.machine.classes().map(|class| price[class] * share[class]);
            priced.filter(|weight| !weight.is_nan()).fold(f64::INFINITY, f64::min)
        };
        let weights: Vec<f64> = shares.iter().map(weight).collect();
        let n = weights.len() as f64;
        let mean = weights.iter().sum::<f64>() / n;
        let variance = weights.iter().map(|weight| (weight - mean).powi(2)).sum::<f64>() / (n - 1.0);
        Some((variance / n).sqrt() / mean).filter(|error| error.is_finite())
    };
    View::of(model).iter().filter_map(of_view).max_by(f64::total_cmp)
}

pub(super) fn region_of(shares: Vec<Shares>, model: &MachineModel) -> Option<Region> {
    let classes: Vec<Class> = model.machine.classes().collect();
    let n = shares.len() as f64;
    let found = match classes[..] {
        [] => None,
        [only] => {
            let total: f64 = shares.iter().map(|share| share[only]).sum();
            Some(Region { rate_qps: n / total, price: PerClass::from_fn(|class| f64::from(class == only)) })
        }
        [first, second] => of_two(shares, first, second),
        _ => Some(climb(&shares, &classes)),
    };
    found.filter(|region| region.rate_qps.is_finite() && region.rate_qps > 0.0)
}

fn of_two(mut shares: Vec<Shares>, first: Class, second: Class) -> Option<Region> {
    let n = shares.len() as f64;
    let all_on = |class: Class, work: f64| {
        Some(Region { rate_qps: n / work, price: PerClass::from_fn(|other| f64::from(other == class)) })
    };
    // Queries that may run on one of the two classes only are not part of the choice.
    let (mut on_first, mut on_second) = (0.0, 0.0);
    shares.retain(|share| match (share[first].is_finite(), share[second].is_finite()) {
        (true, false) => {
            on_first += share[first];
            false
        }
        (false, true) => {
            on_second += share[second];
            false
        }
        // A query that runs nowhere makes every rate too high.
        (false, false) => {
            on_first = f64::INFINITY;
            false
        }
        (true, true) => true,
    });
    // The sort key is the first class's part of both shares. It handles zero costs, and keys that are single numbers have
    // a total order, which products of two rounded shares lack.
    let part = |share: &Shares| share[first] / (share[first] + share[second]);
    shares.sort_by(|a, b| part(a).total_cmp(&part(b)));
    on_second += shares.iter().map(|share| share[second]).sum::<f64>();
    if on_first > on_second {
        return all_on(first, on_first);
    }
    for share in &shares {
        let (c, g) = (share[first], share[second]);
        if on_first + c >= on_second - g {
            // Both sides balance where on_first + f c = on_second − f g.
            let fraction = ((on_second - on_first) / (c + g)).clamp(0.0, 1.0);
            let mut price = PerClass::default();
            (price[first], price[second]) = (g / (c + g), c / (c + g));
            return Some(Region { rate_qps: n / (on_first + fraction * c), price });
        }
        on_first += c;
        on_second -= g;
    }
    all_on(second, on_second)
}

/// The best bound found among several classes by raising the prices of the most used ones (multiplicative weights). Every
/// price gives a bound; the least of them is within a few permille of the optimum.
fn climb(shares: &[Shares], classes: &[Class]) -> Region {
    let mut price = PerClass::from_fn(|class| if classes.contains(&class) { 1.0 } else { 0.0 });
    let mut best = Region { rate_qps: f64::INFINITY, price };
    for step in 0..CLIMB {
        let sum: f64 = classes.iter().map(|&class| price[class]).sum();
        price = price.map(|y| y / sum);
        let mut used: PerClass<f64> = PerClass::default();
        let mut total = 0.0;
        for share in shares {
            let priced = classes.iter().map(|&class| (price[class] * share[class], class));
            let Some((weight, class)) = priced.min_by(|a, b| a.0.total_cmp(&b.0)) else { continue };
            total += weight;
            used[class] += share[class];
        }
        let rate_qps = shares.len() as f64 / total;
        if rate_qps < best.rate_qps {
            best = Region { rate_qps, price };
        }
        let most = classes.iter().map(|&class| used[class]).fold(f64::MIN_POSITIVE, f64::max);
        let rate = 1.0 / (1.0 + f64::from(step) / 10.0);
        for &class in classes {
            price[class] *= (rate * used[class] / most).exp();
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::base::ids::DeviceId;
    use crate::base::machine::Machine;
    use crate::base::time::Nanos;

    fn costs(cpu_ms: f64, gpu_ms: f64) -> PerClass<Cost> {
        PerClass::from_fn(|class| match class {
            Class::CPU => Cost::alone(Nanos::from_ms(cpu_ms)),
            Class::GPU => Cost::alone(Nanos::from_ms(gpu_ms)),
            // The second sort of CPU is half as fast as the first.
            Class::CPU2 => Cost::alone(Nanos::from_ms(2.0 * cpu_ms)),
            _ => Cost::NEVER,
        })
    }

    #[test]
    fn the_regions_error_over_samples_is_what_samples_show() {
        let mut random = crate::base::random::Random::new(7, 1);
        let mut drawn = |_| costs(0.1 - crate::base::random::ln(1.0 - random.unit()), 0.5 + random.unit());
        let services: Vec<PerClass<Cost>> = (0..500).map(&mut drawn).collect();
        let model: MachineModel = Machine::new(2, 1).into();
        let told = region_error(&services, &model, BatchSizes::Any).unwrap();
        let rates: Vec<f64> = (0..200)
            .map(|_| {
                let sample: Vec<_> = (0..500).map(&mut drawn).collect();
                region(sample, &model, BatchSizes::Any).unwrap().rate_qps.ln()
            })
            .collect();
        let mean = rates.iter().sum::<f64>() / 200.0;
        let seen = (rates.iter().map(|rate| (rate - mean).powi(2)).sum::<f64>() / 199.0).sqrt();
        // The standard deviation of 200 samples is known to a twentieth; the tolerance is four times that.
        assert!((told / seen - 1.0).abs() < 0.2, "{told}, and over samples {seen}");
        assert_eq!(region_error(&services[..1], &model, BatchSizes::Any), None);
        // Costs of 1 and 3 ms have the mean 2 and the variance 2.
        let two = [costs(1.0, 1.0), costs(3.0, 1.0)];
        let error = region_error(&two, &Machine::new(1, 0).into(), BatchSizes::Any).unwrap();
        assert!((error - 0.5).abs() < 1e-9, "{error}");
        assert_eq!(region_error(&services[..1].repeat(9), &model, BatchSizes::Any), Some(0.0));
    }

    /// Half the queries cost (2, 4) ms, three in ten (8, 5), two in ten (60, 10).
    fn three_classes() -> Vec<PerClass<Cost>> {
        let class = |n: usize, cpu_ms: f64, gpu_ms: f64| vec![costs(cpu_ms, gpu_ms); n];
        [class(5, 2.0, 4.0), class(3, 8.0, 5.0), class(2, 60.0, 10.0)].concat()
    }

    fn rate(cpus: usize, gpus: usize) -> f64 {
        region(three_classes(), &Machine::new(cpus, gpus).into(), BatchSizes::Any).unwrap().rate_qps
    }

    #[test]
    fn only_the_class_that_limits_the_region_has_a_price() {
        let only_on = |only: Class| {
            PerClass::from_fn(|class| if class == only { Cost::alone(Nanos::from_ms(4.0)) } else { Cost::NEVER })
        };
        for only in [Class::CPU, Class::GPU] {
            let found = region([only_on(only); 3], &Machine::new(1, 1).into(), BatchSizes::Any).unwrap();
            assert_eq!(found, Region { rate_qps: 250.0, price: PerClass::from_fn(|class| f64::from(class == only)) });
        }
    }

    #[test]
    fn the_capacity_region_has_its_reference_values() {
        // Values solved with HiGHS, rounded to four decimals.
        let cases = [
            (1, 1, 393.9394),
            (4, 1, 649.3506),
            (8, 1, 909.0909),
            (1, 2, 636.3636),
            (16, 2, 1818.1818),
            (1, 0, 64.9351),
            (0, 1, 181.8182),
        ];
        for (cpus, gpus, expected) in cases {
            assert!((rate(cpus, gpus) - expected).abs() < 5e-5, "{cpus} CPUs, {gpus} GPUs: {}", rate(cpus, gpus));
        }
    }

    #[test]
    fn queries_that_may_run_on_one_class_only_are_no_part_of_the_choice() {
        // One class takes milliseconds, the other for ever: sums of both would lose the small ones.
        let only = |class: Class, ms: f64| {
            PerClass::from_fn(|other| if other == class { Cost::alone(Nanos::from_ms(ms)) } else { Cost::NEVER })
        };
        let rate = |services: Vec<PerClass<Cost>>| {
            region(services, &Machine::new(2, 1).into(), BatchSizes::One).map(|region| region.rate_qps)
        };
        let masked =
            |cpus: usize, gpus: usize| [vec![only(Class::CPU, 4.0); cpus], vec![only(Class::GPU, 1.0); gpus]].concat();
        for (cpus, gpus) in [(50, 950), (900, 100), (0, 1000), (1000, 0)] {
            // The slower side decides between CPUs and GPUs.
            let expected = 1000.0 / (cpus as f64 * 4e-3 / 2.0).max(gpus as f64 * 1e-3);
            let found = rate(masked(cpus, gpus)).unwrap();
            assert!((found / expected - 1.0).abs() < 1e-9, "{cpus} and {gpus}: {found}, {expected}");
        }
        // Free queries fill the less loaded side: 100 of (4, 1) ms go to the side without the 950 of 1 ms, except for a
        // balancing rest.
        let mixed = [masked(50, 950), vec![costs(4.0, 1.0); 100]].concat();
        let (on_cpus, on_gpu) = (0.1 + 100.0 * 2e-3, 0.95);
        assert!((rate(mixed).unwrap() / (1100.0 / f64::max(on_cpus, on_gpu)) - 1.0).abs() < 1e-9);
        assert_eq!(rate(vec![PerClass::from_fn(|_| Cost::NEVER)]), None);
    }

    #[test]
    fn the_price_at_the_cut_is_the_dual_of_the_reference() {
        let region = region(three_classes(), &Machine::new(1, 1).into(), BatchSizes::Any).unwrap();
        assert!((region.price[Class::CPU] - 5.0 / 13.0).abs() < 1e-12);
        assert!((region.price[Class::GPU] - 8.0 / 13.0).abs() < 1e-12);
    }

    #[test]
    fn a_third_class_of_half_the_speed_is_worth_half_a_processor() {
        let second = |class, stream| crate::base::machine::Processor { class, device: DeviceId(0), stream, depth: 1 };
        // Two slow cores equal one CPU, and the solution for that machine is known.
        let machine = Machine::new(1, 1).with(second(Class::CPU2, 0)).with(second(Class::CPU2, 1));
        let climbed = region(three_classes(), &machine.into(), BatchSizes::Any).unwrap().rate_qps;
        let exact = rate(2, 1);
        assert!(climbed >= exact * (1.0 - 1e-9) && climbed < exact * 1.01, "{climbed} for {exact}");
    }

    /// Queries of these costs in nanoseconds, on machines of CPUs and GPUs without batches.
    fn in_ns(services: &[(u64, u64)]) -> Vec<PerClass<Cost>> {
        services.iter().map(|&(cpu, gpu)| Cost::on_cpu_and_gpu(Nanos(cpu), Nanos(gpu))).collect()
    }

    #[test]
    fn ratios_that_differ_by_rounding_alone_are_sorted_all_the_same() {
        // All ratios are 1/11 except for the rounding of shares and products. Compared by products these queries have no
        // total order, and sorting by that panics. A third is nowhere exact.
        let services: Vec<(u64, u64)> = (1..=1000).map(|i| i * 7919 % 1009).map(|i| (i, 11 * i)).collect();
        let (on_cpus, on_gpu) =
            services.iter().fold((0.0, 0.0), |(c, g), &(cpu, gpu)| (c + cpu as f64 / 3.0, g + gpu as f64));
        let found = region(in_ns(&services), &Machine::new(3, 1).into(), BatchSizes::Any).unwrap();
        // Ratios are equal: only the share of all work that moves counts, not the queries that are moved.
        let expected = 1000.0 / (on_cpus * on_gpu / (on_cpus + on_gpu)) * 1e9;
        assert!((found.rate_qps / expected - 1.0).abs() < 1e-9, "{} for {expected}", found.rate_qps);
        assert!((found.price[Class::CPU] / (33.0 / 34.0) - 1.0).abs() < 1e-9, "{:?}", found.price);
    }

    proptest! {
        #[test]
        fn between_two_classes_the_region_is_the_least_bound_of_all_prices(
            services in prop::collection::vec((prop_oneof![0..4_u64, 0..1_000_000_u64], prop_oneof![0..4_u64, 0..1_000_000_u64]), 1..60),
            cpus in 1..5_usize,
            gpus in 1..4_usize,
        ) {
            let share = |&(cpu, gpu): &(u64, u64)| (cpu as f64 / cpus as f64, gpu as f64 / gpus as f64);
            // The least priced work of the queries at a price of y for the CPUs; it is greatest where a query costs both
            // sides equally.
            let priced = |y: f64| services.iter().map(share).map(|(c, g)| (y * c).min((1.0 - y) * g)).sum::<f64>();
            let even = services.iter().map(share).filter(|(c, g)| c + g > 0.0).map(|(c, g)| g / (c + g));
            let most = even.map(priced).fold(0.0, f64::max);
            let found = region(in_ns(&services), &Machine::new(cpus, gpus).into(), BatchSizes::Any);
            if most == 0.0 {
                // One side has the queries that are free there, the other the rest.
                prop_assert!(found.is_none_or(|region| region.rate_qps > 1e15), "{:?}", found);
            } else {
                let expected = services.len() as f64 / most * 1e9;
                let found = found.unwrap();
                prop_assert!((found.rate_qps / expected - 1.0).abs() < 1e-9, "{} for {}", found.rate_qps, expected);
                prop_assert!((found.price[Class::CPU] + found.price[Class::GPU] - 1.0).abs() < 1e-9);
            }
        }
    }

    #[test]
    fn batches_raise_the_region_to_what_they_add() {
        let batches = crate::cost::BatchCost {
            host_fixed_us: 10.0,
            host_each_us: 100.0,
            exposed: None,
            device_fixed_us: 0.0,
            longest: 0.0,
            crowding: vec![(1, 4.0), (1000, 1.0)],
            most_queries: 1000,
        };
        // A query takes 4 ms alone; in a large batch 1 ms of the device and 0.1 ms of the host.
        let cost = Cost { alone: Nanos::from_ms(4.0), added: Nanos::from_ms(1.0) };
        let costs = PerClass::from_fn(|class| if class == Class::GPU { cost } else { Cost::NEVER });
        let of_sizes = |machine: Machine, host_each_us: f64, sizes: BatchSizes| {
            let batches = crate::cost::BatchCost { host_each_us, ..batches.clone() };
            let batches = PerClass::from_fn(|class| (class == Class::GPU).then(|| batches.clone()));
            region([costs], &MachineModel { batches, ..machine.into() }, sizes).unwrap().rate_qps
        };
        let rate = |machine: Machine, host_each_us: f64| of_sizes(machine, host_each_us, BatchSizes::Any);
        assert!((rate(Machine::new(0, 1), 100.0) - 1000.0).abs() < 1e-6);
        assert!((rate(Machine::new(0, 2), 100.0) - 2000.0).abs() < 1e-6);
        // Two streams share a device; a host slower than the device limits the rate.
        assert!((rate(Machine::default().with_gpus(1, 2, 1), 100.0) - 1000.0).abs() < 1e-6);
        assert!((rate(Machine::new(0, 1), 2000.0) - 500.0).abs() < 1e-6);
        assert!((rate(Machine::default().with_gpus(1, 2, 1), 2000.0) - 1000.0).abs() < 1e-6);
        // One by one, a query takes 4 ms, of which 0.11 ms are the thread's. A second stream or batch in the lane hides
        // the thread's part, and the device limits the rate.
        let alone = |machine: Machine| of_sizes(machine, 100.0, BatchSizes::One);
        assert!((alone(Machine::new(0, 1)) - 250.0).abs() < 1e-6);
        assert!((alone(Machine::default().with_gpus(1, 2, 1)) - 1000.0 / 3.89).abs() < 1e-6);
        assert!((alone(Machine::default().with_gpus(1, 1, 2)) - 1000.0 / 3.89).abs() < 1e-6);
    }
}
