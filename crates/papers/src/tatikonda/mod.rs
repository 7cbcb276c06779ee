//! Tatikonda, Cambazoglu, Junqueira: Posting list intersection on multicore architectures (SIGIR 2011).
//!
//! | folder | contents |
//! | --- | --- |
//! | `published/` | the paper's methods: INTER, document partitioning (DOCP), fine-grained tasks (FGQP) |
//! | `experiments/` | the paper's figures |

pub(crate) mod experiments;
mod published;
