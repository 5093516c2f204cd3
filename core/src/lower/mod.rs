//! From a schedule to a program of loops.
//!
//! ```text
//! schedule -> nest (loops, clears, products) -> check -> Program
//! ```
//!
//! [`Program`] is the one form from which C is written (`crate::codegen`) and which the
//! interpreter runs ([`interpret`]); lowering does not know which search made the schedule.

mod assembly;
mod bitmap;
mod check;
mod interpret;
mod ir;
mod joined_tree;
mod locator;
mod nest;
pub(crate) mod table;
mod text;
mod unite;

pub(crate) use assembly::Arrays;
pub use assembly::{Assembled, Assembly, Block, Room, workspace_bytes};
pub use interpret::{Operands, interpret};
pub use ir::{
    Addressing, Array, Bitmaps, LevelParam, LevelStorage, Pieces, Place, PrefetchRow, Program,
    Stmt, Tasks, TreeParam, Update, Zeroing,
};
pub use joined_tree::{JoinedTree, joined_bytes};
pub use locator::Locator;
pub(crate) use locator::{MULTIPLIER, SLOTS, WORD, locator_bytes};
pub use nest::lower;
pub use unite::unite;
