//! Ding, He, Yan, Suel: Using graphics processors for high performance IR query processing (WWW 2009).

pub(super) mod fig3;
pub(super) mod fig4;
pub(super) mod fig6;
mod lists;
pub(super) mod table1;
pub(super) mod table2;
pub(super) mod table3;
