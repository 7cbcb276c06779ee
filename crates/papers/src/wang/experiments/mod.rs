//! Experiments of Wang et al.
//!
//! | file | contents |
//! | --- | --- |
//! | `backlog` | both processors on a backlog, under the policy that the simulator and the live driver use |
//! | `bench` | runs on the GPU with checked answers, and the model fitted to them |

mod backlog;
mod bench;
pub(crate) mod fig10;
pub(crate) mod fig3;
pub(crate) mod fig4;
pub(crate) mod fig5;
pub(crate) mod fig6;
pub(crate) mod fig7;
pub(crate) mod fig8;
pub(crate) mod fig9;
