//! Replacement of `gpu` in a build without GPU support: opening a GPU fails.

use std::borrow::Borrow;
use std::convert::Infallible;
use std::marker::PhantomData;

use crate::Result;
use crate::wang::cache::prefixes::Prefixes;
use crate::wang::data::ExperimentData;
use crate::wang::report::{Report, RunOptions};
use crate::wang::train_test_split::RankedQuery;
use tandem_core::search::device::{GpuError, NOT_BUILT};

/// A GPU that cannot exist.
#[derive(Debug)]
pub(crate) struct CachedGpu<'d> {
    never: Infallible,
    data: PhantomData<&'d ExperimentData>,
}

impl<'d> CachedGpu<'d> {
    pub(crate) fn open(_world: &'d ExperimentData, _may_lock: bool) -> Result<Self, GpuError> {
        Err(GpuError::NoGpu(NOT_BUILT.to_owned()))
    }

    pub(crate) fn name(&self) -> &str {
        match self.never {}
    }

    pub(crate) fn why_staged(&self) -> Option<String> {
        match self.never {}
    }
}

/// A division of the memory of a GPU that cannot exist.
#[derive(Debug)]
pub(crate) struct Session<'g, 'd> {
    never: Infallible,
    gpu: PhantomData<&'g CachedGpu<'d>>,
}

impl<'g, 'd> Session<'g, 'd> {
    pub(crate) fn new(gpu: &'g CachedGpu<'d>, _: Prefixes, _: u64, _: u64) -> Result<Self> {
        match gpu.never {}
    }

    pub(crate) fn run<Q: Borrow<RankedQuery>>(&mut self, _: &[Q], _: RunOptions) -> Result<Report> {
        match self.never {}
    }
}
