//! The order of events in which pages follow the queries: what is noted, when it is decided, what is done then.
//!
//! ```text
//!   border of a batch     note one query in four ─▶ go on with what is under way, one step at most ─▶ the batch enters a map
//!
//!   borders    | .. the epoch has its queries: ask | decided: part | parted; map 0 drained: bring | come: settle | settled |
//!   maps that batches enter    0 ................... 0 .............. 1 ............................ 0 ............. 0 .....
//! ```
//!
//! Each step is taken at the border of a batch, before the batch enters: so a batch sees one map, and what a step needs may take as long
//! as it takes, in which other borders pass. Who does what is asked for is a [`Carrier`]: an executor with a thread and a stream, or a
//! clock that plays both ([`Residency`](super::Residency)).

use super::{ListRead, Moves, Task, Turns};

/// One query in so many is noted.
pub const SAMPLED: u32 = 4;

/// Reads of a block, by list.
pub type NotedReads = Vec<(u32, f32)>;

/// Who carries out what an epoch asks for.
pub trait Carrier {
    /// Why it cannot.
    type Error;

    /// Begins to [end an epoch](super::OnlineTier::end_epoch), once these reads have been [recorded](super::OnlineTier::record).
    ///
    /// # Errors
    /// If that cannot be had.
    fn decide(&mut self, reads: NotedReads) -> Result<(), Self::Error>;

    /// What moves, with an empty vector to be used again; `None` while that is being decided.
    ///
    /// # Errors
    /// If that cannot be had.
    fn decided(&mut self) -> Result<Option<(Moves, NotedReads)>, Self::Error>;

    /// Whether the task has ended that [`Epochs::border`] gave last; `coming`: the pages that come by it.
    ///
    /// # Errors
    /// If it has failed.
    fn has_ended(&mut self, coming: Option<&[(u32, u32)]>) -> Result<bool, Self::Error>;
}

/// Where an epoch is, and what has been noted for the next one.
#[derive(Clone, Debug)]
pub struct Epochs {
    epoch_queries: u32,
    /// Queries since the last epoch ended, and what is noted of them.
    num_queries: u32,
    reads: NotedReads,
    spare: NotedReads,
    is_deciding: bool,
    moves: Moves,
    /// Whether a task has been given and has not ended.
    is_under_way: bool,
}

impl Epochs {
    /// The first begins.
    #[must_use]
    pub fn new(epoch_queries: u32) -> Self {
        Self {
            epoch_queries,
            num_queries: 0,
            reads: Vec::new(),
            spare: Vec::new(),
            is_deciding: false,
            moves: Moves::default(),
            is_under_way: false,
        }
    }

    /// Notes what one in [`SAMPLED`] of a batch's queries is expected to read.
    pub fn note<Q, R: IntoIterator<Item = ListRead>>(
        &mut self,
        queries: impl ExactSizeIterator<Item = Q>,
        reads_of: impl Fn(Q) -> R,
    ) {
        // The first that is noted follows those of the batch before.
        let skipped = (SAMPLED - self.num_queries % SAMPLED) % SAMPLED;
        self.num_queries = self.num_queries.saturating_add(queries.len() as u32);
        for query in queries.skip(skipped as usize).step_by(SAMPLED as usize) {
            self.reads.extend(reads_of(query).into_iter().map(|read| (read.list, SAMPLED as f32 * read.of_a_block())));
        }
    }

    /// The border of a batch that has been [noted](Self::note): what is to be begun now, with the [moves](Self::moves) as they are from
    /// here on.
    ///
    /// # Errors
    /// If the carrier has failed.
    pub fn border<C: Carrier>(&mut self, turns: &mut Turns, carrier: &mut C) -> Result<Option<Task>, C::Error> {
        let task = if turns.is_idle() {
            self.decided(carrier)?.filter(|moves| !moves.is_empty()).map(|moves| {
                self.moves = moves;
                turns.begin()
            })
        } else {
            let coming = turns.is_bringing().then_some(&self.moves.come[..]);
            let has_ended = self.is_under_way && carrier.has_ended(coming)?;
            self.is_under_way &= !has_ended;
            turns.step(has_ended)
        };
        self.is_under_way |= task.is_some();
        Ok(task)
    }

    /// What moves in the epoch under way.
    #[must_use]
    pub fn moves(&self) -> &Moves {
        &self.moves
    }

    /// What the last epoch moves, if that has been decided; ends another one where it has had its queries.
    fn decided<C: Carrier>(&mut self, carrier: &mut C) -> Result<Option<Moves>, C::Error> {
        if !self.is_deciding {
            if self.num_queries >= self.epoch_queries {
                self.num_queries = 0;
                self.is_deciding = true;
                carrier.decide(std::mem::replace(&mut self.reads, std::mem::take(&mut self.spare)))?;
            }
            return Ok(None);
        }
        let Some((moves, spare)) = carrier.decided()? else { return Ok(None) };
        (self.is_deciding, self.spare) = (false, spare);
        Ok(Some(moves))
    }
}
