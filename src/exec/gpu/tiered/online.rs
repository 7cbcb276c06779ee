//! Pages of rows that come to the device and go while queries run.
//!
//! ```text
//!   batches ──▶ reads by list ──▶ a thread of its own: OnlineTier ends an epoch ──▶ moves
//!   borders of batches ──▶ Turns: part, bring, settle ──▶ a stream of its own: copy_pages, move_blocks
//! ```
//!
//! All rows lie in the host's memory, in pages; device memory has frames, each with the copy of one. Headers are there twice:
//! searches that begin read the current array, and the other one is changed meanwhile ([`Turns`]). Nobody waits for a copy: at
//! the border of a batch it is seen whether the last task has ended, and the next one is handed to the stream.

use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Instant;

use cudarc::driver::{CudaEvent, CudaFunction, CudaSlice, CudaStream, DevicePtr, DriverError, PushKernelArg, sys};

use super::ROW_BYTES;
use super::rows::Rows;
use crate::cache::{Carrier, Epochs, Moves, NotedReads, OnlineTier, Pages, ReadRates, Task, Turns};
use crate::exec::gpu::arguments::BlockArgument;
use crate::exec::{ExecError, query_reads};
use crate::gpu::tiered::{IMAGES, LAYOUT, MOVE_THREADS, PageMove, RunMove};
use crate::gpu::{Device, GpuError, Module, shape};
use crate::query::Query;

const WARP: u32 = 32;
/// Thread blocks that copy: as few as fill the bus, since searches run beside.
const COPY_BLOCKS: u32 = 16;
const DOING: &str = "moving pages of lists (kernels `copy_pages`, `move_blocks`)";

/// What has moved since an executor was made.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OnlineReport {
    /// Epochs that have ended,
    pub epochs: u64,
    /// pages that came in them,
    pub pages: u64,
    /// the bytes of these,
    pub copied_bytes: u64,
    /// and how long their copies took, in milliseconds.
    pub copy_ms: f64,
    /// How long it took to decide, on a thread that nobody waits for, in milliseconds.
    pub decide_ms: f64,
    /// Whether pages are coming now.
    pub is_copying: bool,
}

/// Headers that are read by queries under way; they are no longer when this is dropped.
#[derive(Debug)]
pub(in crate::exec::gpu) struct Reading {
    turns: Arc<Mutex<Turns>>,
    map: usize,
}

impl Drop for Reading {
    fn drop(&mut self) {
        lock(&self.turns).leave(self.map);
    }
}

/// Frames of device memory whose pages follow the queries.
#[derive(Debug)]
pub(in crate::exec::gpu) struct OnlineRows {
    pages: Arc<Pages>,
    /// Addresses of both arrays of headers.
    maps: [u64; 2],
    /// The second of them; the first is the lists'.
    _d_other: CudaSlice<BlockArgument>,
    /// Addresses of the frames and of the pages.
    frames_at: u64,
    pages_at: u64,
    /// Rows of all frames.
    num_near: u32,
    turns: Arc<Mutex<Turns>>,
    tier: Arc<Mutex<OnlineTier>>,
    rates: Arc<ReadRates>,
    state: Mutex<State>,
}

/// Where an epoch is, and who carries it out.
#[derive(Debug)]
struct State {
    epochs: Epochs,
    staff: Staff,
}

/// A stream that moves pages, and a thread that decides which.
#[derive(Debug)]
struct Staff {
    mover: Mover,
    decider: Decider,
    report: OnlineReport,
}

impl OnlineRows {
    /// Frames for what `tier` says is near, with these pages and headers, all of which name rows of pages; `rates` tell what queries
    /// read. Waits until pages have come.
    ///
    /// # Errors
    /// If the driver or the system refuses.
    pub(in crate::exec::gpu) fn new(
        device: &Device,
        stream: &Arc<CudaStream>,
        pages: Arc<Pages>,
        (tier, rates): (OnlineTier, Arc<ReadRates>),
        epoch_queries: u32,
        rows: &Rows,
        d_blocks: &CudaSlice<BlockArgument>,
    ) -> Result<Self, ExecError> {
        let failed = |error: DriverError| GpuError::of(DOING, &error);
        let come: Vec<(u32, u32)> =
            (0..pages.num_pages()).filter_map(|page| Some((page, tier.frame_of(page)?))).collect();
        let d_other = stream.clone_dtod(d_blocks).map_err(failed)?;
        stream.synchronize().map_err(failed)?;
        let maps = [d_blocks, &d_other].map(|d_blocks| d_blocks.device_ptr(stream).0);
        let tier = Arc::new(Mutex::new(tier));
        let mover = Mover::new(device)?;
        let decider = Decider::new(Arc::clone(&tier))?;
        let moves = Moves { gone: Vec::new(), come };
        let staff = Staff { mover, decider, report: OnlineReport::default() };
        let state = State { epochs: Epochs::new(epoch_queries), staff };
        let online = Self {
            pages,
            maps,
            _d_other: d_other,
            frames_at: rows.near(stream),
            pages_at: rows.far().wrapping_add(ROW_BYTES * u64::from(rows.num_near())),
            num_near: rows.num_near(),
            turns: Arc::default(),
            tier,
            rates,
            state: Mutex::new(state),
        };
        {
            let mover = &lock(&online.state).staff.mover;
            for task in [Task::Bring { map: 0 }, Task::Settle { map: 1 }] {
                online.hand_over(mover, &moves, task).map_err(failed)?;
            }
            mover.stream.synchronize().map_err(failed)?;
        }
        Ok(online)
    }

    /// Where the headers are that queries which begin now read, until what comes with them is dropped.
    pub(in crate::exec::gpu) fn enter(&self) -> (u64, Reading) {
        let map = lock(&self.turns).enter();
        (self.maps[map], Reading { turns: Arc::clone(&self.turns), map })
    }

    /// The border of a batch: counts its queries, and goes on with the epoch under way, if that can go on.
    ///
    /// # Errors
    /// If the driver refuses, or the thread that decides has ended.
    pub(in crate::exec::gpu) fn border<'a>(
        &self,
        queries: impl ExactSizeIterator<Item = &'a Query>,
    ) -> Result<(), ExecError> {
        let State { epochs, staff } = &mut *lock(&self.state);
        epochs.note(queries, |query| query_reads(query, &self.rates));
        let task = epochs.border(&mut lock(&self.turns), staff)?;
        let Some(task) = task else { return Ok(()) };
        let handed_over = self.hand_over(&staff.mover, epochs.moves(), task);
        handed_over.map_err(|error| GpuError::of(DOING, &error).into())
    }

    /// Hands a task to the stream.
    fn hand_over(&self, mover: &Mover, moves: &Moves, task: Task) -> Result<(), DriverError> {
        // Where the rows of a page are, as headers have it: frames first.
        let near = |frame: u32| frame.wrapping_mul(self.pages.page_rows());
        let far = |page: u32| self.num_near.wrapping_add(page.wrapping_mul(self.pages.page_rows()));
        let mut runs = Vec::new();
        let mut note = |page: u32, rows_on: u32| {
            let moved =
                |run: &crate::cache::Run| RunMove { first_block: run.first_block, num_blocks: run.num_blocks, rows_on };
            runs.extend(self.pages.runs(page).iter().map(moved));
        };
        let (map, goes, comes) = task.notes();
        let (gone, come): (&[_], &[_]) = (if goes { &moves.gone } else { &[] }, if comes { &moves.come } else { &[] });
        gone.iter().for_each(|&(page, frame)| note(page, far(page).wrapping_sub(near(frame))));
        come.iter().for_each(|&(page, frame)| note(page, near(frame).wrapping_sub(far(page))));
        mover.begin()?;
        if matches!(task, Task::Bring { .. }) {
            // SAFETY: the pages and the frames are there as long as this is; nobody reads these frames now.
            unsafe { mover.copy(self.pages_at, self.frames_at, come, self.pages.page_rows()) }?;
        }
        // SAFETY: each block has a header in the map, which is there as long as this is, and which nobody reads now.
        unsafe { mover.note(self.maps[map], &runs) }?;
        mover.end()
    }

    /// The share of a query's expected reads that is far now.
    pub(in crate::exec::gpu) fn far_share(&self, query: &Query) -> f64 {
        lock(&self.tier).near().reads(query_reads(query, &self.rates)).far_share()
    }

    /// What has moved so far.
    pub(in crate::exec::gpu) fn report(&self) -> OnlineReport {
        let report = lock(&self.state).staff.report;
        let is_copying = lock(&self.turns).is_bringing();
        let page_bytes = ROW_BYTES * u64::from(self.pages.page_rows());
        OnlineReport { copied_bytes: page_bytes * report.pages, is_copying, ..report }
    }
}

impl Drop for OnlineRows {
    fn drop(&mut self) {
        // What is copied must be there until it has been. An error has been reported, or there is nobody left to tell.
        let stream = &lock(&self.state).staff.mover.stream;
        stream.context().record_err(stream.synchronize());
    }
}

impl Carrier for Staff {
    type Error = ExecError;

    fn decide(&mut self, reads: NotedReads) -> Result<(), ExecError> {
        self.decider.ask(reads)
    }

    fn decided(&mut self) -> Result<Option<(Moves, NotedReads)>, ExecError> {
        let decision = self.decider.answer()?;
        Ok(decision.map(|Decision { moves, spare, took_ms }| {
            self.report.epochs += 1;
            self.report.decide_ms += took_ms;
            (moves, spare)
        }))
    }

    fn has_ended(&mut self, coming: Option<&[(u32, u32)]>) -> Result<bool, ExecError> {
        let failed = |error: DriverError| GpuError::of(DOING, &error);
        let has_ended = self.mover.has_ended().map_err(failed)?;
        if let Some(coming) = coming.filter(|_| has_ended) {
            self.report.copy_ms += self.mover.elapsed_ms().map_err(failed)?;
            self.report.pages += coming.len() as u64;
        }
        Ok(has_ended)
    }
}

/// What a thread has decided.
#[derive(Debug)]
struct Decision {
    moves: Moves,
    /// Memory for reads, empty.
    spare: NotedReads,
    took_ms: f64,
}

/// A thread that ends epochs: it looks at every page, which takes longer than a batch may wait.
#[derive(Debug)]
struct Decider {
    asked: Option<Sender<NotedReads>>,
    answered: Receiver<Decision>,
    thread: Option<JoinHandle<()>>,
}

impl Decider {
    fn new(tier: Arc<Mutex<OnlineTier>>) -> Result<Self, ExecError> {
        let (asked, asks) = channel::<NotedReads>();
        let (answers, answered) = channel();
        let decide = move || {
            for mut reads in asks {
                let began = Instant::now();
                let mut tier = lock(&tier);
                reads.drain(..).for_each(|(list, reads)| tier.record(list, reads));
                let moves = tier.end_epoch();
                drop(tier);
                let took_ms = began.elapsed().as_secs_f64() * 1e3;
                if answers.send(Decision { moves, spare: reads, took_ms }).is_err() {
                    break;
                }
            }
        };
        let thread = std::thread::Builder::new().name("residency".to_owned()).spawn(decide);
        let thread = thread.map_err(|e| gone(&e.to_string()))?;
        Ok(Self { asked: Some(asked), answered, thread: Some(thread) })
    }

    fn ask(&self, reads: NotedReads) -> Result<(), ExecError> {
        let sent = self.asked.as_ref().is_some_and(|asked| asked.send(reads).is_ok());
        if sent { Ok(()) } else { Err(gone("it has ended")) }
    }

    /// What was decided, and the milliseconds that it took; `None` if it is not yet.
    fn answer(&self) -> Result<Option<Decision>, ExecError> {
        match self.answered.try_recv() {
            Ok(decision) => Ok(Some(decision)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(gone("it has ended")),
        }
    }
}

impl Drop for Decider {
    fn drop(&mut self) {
        self.asked = None;
        if let Some(thread) = self.thread.take() {
            // If it has panicked, that has been said.
            let _ = thread.join();
        }
    }
}

fn gone(why: &str) -> ExecError {
    GpuError::Failed {
        doing: "deciding which lists lie near, on a thread of its own".to_owned(),
        message: why.to_owned(),
    }
    .into()
}

/// A stream that copies pages and changes headers.
#[derive(Debug)]
struct Mover {
    stream: Arc<CudaStream>,
    copy_pages: CudaFunction,
    move_blocks: CudaFunction,
    /// Around a task.
    began: CudaEvent,
    ended: CudaEvent,
}

impl Mover {
    fn new(device: &Device) -> Result<Self, GpuError> {
        let failed = |error: DriverError| GpuError::of(DOING, &error);
        // Few thread blocks that wait for the bus: they start before what searches have waiting.
        let stream = device.new_urgent_stream()?;
        let module = Module::load(device, IMAGES)?;
        module.check_layout(&stream, "tiered_layout", &LAYOUT)?;
        Ok(Self {
            copy_pages: module.function("copy_pages")?,
            move_blocks: module.function("move_blocks")?,
            began: device.new_event().map_err(failed)?,
            ended: device.new_event().map_err(failed)?,
            stream,
        })
    }

    fn begin(&self) -> Result<(), DriverError> {
        self.began.record(&self.stream)
    }

    fn end(&self) -> Result<(), DriverError> {
        self.ended.record(&self.stream)
    }

    /// Whether the last task has.
    fn has_ended(&self) -> Result<bool, DriverError> {
        self.stream.context().bind_to_thread()?;
        // SAFETY: the event is this one's.
        match unsafe { sys::cuEventQuery(self.ended.cu_event()) } {
            sys::CUresult::CUDA_SUCCESS => Ok(true),
            sys::CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            error => Err(DriverError(error)),
        }
    }

    fn elapsed_ms(&self) -> Result<f64, DriverError> {
        Ok(f64::from(self.began.elapsed_ms(&self.ended)?))
    }

    /// Starts `copy_pages`.
    ///
    /// # Safety
    /// The pages and the frames must be there until it has ended, and nobody may read the frames until then.
    unsafe fn copy(&self, pages: u64, frames: u64, come: &[(u32, u32)], page_rows: u32) -> Result<(), DriverError> {
        let moves: Vec<PageMove> = come.iter().map(|&(page, frame)| PageMove { page, frame }).collect();
        if moves.is_empty() {
            return Ok(());
        }
        let d_moves = self.stream.clone_htod(&moves)?;
        let num_moves = moves.len() as u32;
        let mut launch = self.stream.launch_builder(&self.copy_pages);
        launch.arg(&pages).arg(&frames).arg(&d_moves).arg(&num_moves).arg(&page_rows);
        // SAFETY: the arguments are those of `copy_pages` in kernels/tiered/move.cu, in order and type; the moves go away in the
        // order of the stream; the caller vouches for the others.
        unsafe { launch.launch(shape(COPY_BLOCKS, MOVE_THREADS)) }.map(drop)
    }

    /// Starts `move_blocks`.
    ///
    /// # Safety
    /// The map must be there until it has ended, with a header for each block, and nobody may read it until then.
    unsafe fn note(&self, map: u64, runs: &[RunMove]) -> Result<(), DriverError> {
        if runs.is_empty() {
            return Ok(());
        }
        let d_runs = self.stream.clone_htod(runs)?;
        let num_runs = runs.len() as u32;
        let mut launch = self.stream.launch_builder(&self.move_blocks);
        launch.arg(&map).arg(&d_runs).arg(&num_runs);
        let blocks = num_runs.div_ceil(MOVE_THREADS / WARP).min(1024);
        // SAFETY: the arguments are those of `move_blocks` in kernels/tiered/move.cu, in order and type; as above.
        unsafe { launch.launch(shape(blocks, MOVE_THREADS)) }.map(drop)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
