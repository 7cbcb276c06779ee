//! The figures of Wang et al.
//!
//! | file | contents |
//! | --- | --- |
//! | `backlog` | both processors on a backlog, under the scheduler's own policy |
//! | `bench` | runs on the GPU whose answers are checked, and the model fitted to them |

mod backlog;
mod bench;
mod charts;
pub(crate) mod fig10;
pub(crate) mod fig3;
pub(crate) mod fig4;
pub(crate) mod fig5;
pub(crate) mod fig6;
pub(crate) mod fig7;
pub(crate) mod fig8;
pub(crate) mod fig9;
