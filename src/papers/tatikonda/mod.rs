//! Tatikonda, Cambazoglu, Junqueira: Posting list intersection on multicore architectures (SIGIR 2011).

mod bench;
pub(super) mod fig4;
pub(super) mod fig5;
pub(super) mod fig6;
pub(super) mod fig7;
mod published;
