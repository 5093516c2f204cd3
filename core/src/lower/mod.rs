//! From a schedule to a program of loops.
//!
//! ```text
//! schedule -> resolved loops -> statements (`nest`) -> `registers` -> `together` -> Program
//! ```
//!
//! The program is checked after each pass (`check`).  Programs of the products of a sum are united (`unite`), and take the
//! same passes.
//!
//! [`Program`] is the one form from which C is written (`crate::codegen`) and which the interpreter runs
//! ([`interpret`]).  Lowering does not know which search made the schedule.

mod assembly;
mod bitmap;
mod check;
#[cfg(test)]
mod check_tests;
mod interpret;
mod ir;
mod joined_tree;
mod locator;
mod nest;
mod registers;
pub(crate) mod table;
mod text;
mod together;
mod unite;
mod vectors;

pub(crate) use assembly::Arrays;
pub(crate) use assembly::part_bytes;
pub use assembly::{Assembled, Assembly, Block, Room, workspace_bytes};
pub use interpret::{Operands, interpret};
pub use ir::{
    Addressing, Array, Bitmaps, Kept, LevelParam, LevelStorage, Pieces, Place, PrefetchRow,
    Program, Stmt, Tasks, Together, TreeParam, Update, Zeroing,
};
pub use joined_tree::{JoinedTree, joined_bytes};
pub use locator::Locator;
pub(crate) use locator::{MULTIPLIER, SLOTS, WORD, locator_bytes};
pub use nest::lower;
pub use registers::REGISTER_BUDGET;
pub(crate) use together::{Outer, UNROLLED, outer_product};
pub use unite::unite;
pub use vectors::VECTOR_BYTES;
pub(crate) use vectors::{common_row, lanes};
