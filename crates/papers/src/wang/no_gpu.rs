//! Stands for `gpu` in a build without GPU support: there is never a GPU to open.

use std::borrow::Borrow;
use std::convert::Infallible;
use std::marker::PhantomData;

use crate::ExperimentError;
use crate::wang::cache::Prefixes;
use crate::wang::data::World;
use crate::wang::report::{Report, RunOptions};
use crate::wang::train_test_split::RankedQuery;
use tandem_core::search::device::{GpuError, NOT_BUILT};

/// No GPU.
#[derive(Debug)]
pub(super) struct CachedGpu<'w> {
    never: Infallible,
    world: PhantomData<&'w World>,
}

impl<'w> CachedGpu<'w> {
    /// There is none.
    pub(super) fn open(_world: &'w World, _may_lock: bool) -> Result<Self, GpuError> {
        Err(GpuError::NoGpu(NOT_BUILT.to_owned()))
    }

    /// Of no GPU.
    pub(super) fn name(&self) -> &str {
        match self.never {}
    }

    /// Of no GPU.
    pub(super) fn why_staged(&self) -> Option<String> {
        match self.never {}
    }
}

/// No division of its memory.
#[derive(Debug)]
pub(super) struct Session<'g, 'w> {
    never: Infallible,
    gpu: PhantomData<&'g CachedGpu<'w>>,
}

impl<'g, 'w> Session<'g, 'w> {
    /// Of no GPU.
    pub(super) fn new(gpu: &'g CachedGpu<'w>, _: Prefixes, _: u64, _: u64) -> Result<Self, ExperimentError> {
        match gpu.never {}
    }

    /// Of no GPU.
    pub(super) fn run<Q: Borrow<RankedQuery>>(&mut self, _: &[Q], _: RunOptions) -> Result<Report, ExperimentError> {
        match self.never {}
    }
}
