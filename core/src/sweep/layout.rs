//! How a tree stores a tensor, and its text.

use std::fmt;
use std::str::FromStr;

use decompose_formats::narrow_ints::Width;
use decompose_formats::{Blocking, ModeOrder};

use crate::einsum::{Index, IndexSet};
use crate::error::CoreError;
use crate::kernels::{MAX_ORDER, mode_index};
use crate::schedule::{Format, Pattern, Problem};
use crate::sweep::problems::{all_modes, extents_of};

/// How a tree stores a tensor.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TreeLayout {
    /// The blocks that are the root's nodes; without, the root is the first mode.
    pub blocks: Option<Blocking>,
    /// The modes of the other levels, outermost first.
    pub order: ModeOrder,
    /// How many levels at the end are fused; 1 is plain CSF.
    pub fused: usize,
}

impl TreeLayout {
    /// Returns a tree whose levels are the modes in `order`, the last `fused` of them fused; 1 is plain
    /// CSF.
    pub fn new(order: ModeOrder, fused: usize) -> TreeLayout {
        TreeLayout { blocks: None, order, fused }
    }

    /// Returns the indices of the levels, root first.
    pub fn levels(&self) -> Vec<Index> {
        let blocks = self.blocks.iter().map(|_| Index::BLOCK);
        blocks.chain(self.order.modes().iter().map(|&mode| mode_index(mode))).collect()
    }

    /// Returns the format of the levels of a tree without blocks whose modes are called `indices`.
    ///
    /// # Panics
    ///
    /// If a mode has no index.
    pub fn format(&self, indices: &[Index]) -> Format {
        let levels = self.order.modes().iter().map(|&mode| indices[mode]).collect();
        Format::with_fused(levels, self.fused)
    }

    /// Returns the order of the modes of a list that has the number of the block as its last mode, if
    /// the tree has blocks.
    ///
    /// # Panics
    ///
    /// Never.
    pub fn list_order(&self) -> ModeOrder {
        let modes = self.order.modes();
        let root = self.blocks.iter().map(|_| modes.len());
        ModeOrder::new(root.chain(modes.iter().copied()).collect()).expect("each mode once")
    }

    /// Returns whether the levels fit a tensor of `extents`: each mode once, and bits that it has.
    pub fn fits(&self, extents: &[u64]) -> bool {
        self.order.modes().len() == extents.len()
            && self.blocks.as_ref().is_none_or(|blocks| blocks.fits(extents))
    }

    /// Tells whether the tree is worth a look for the result of `mode`: if its blocks split only some modes, they
    /// were made for one result, that of the ranges or of the level below.
    pub(super) fn suits(&self, mode: usize) -> bool {
        self.blocks.as_ref().is_none_or(|blocks| match blocks.ranges() {
            Some((ranged, _)) => ranged == mode,
            None => !blocks.bits().contains(&0) || self.order.modes()[0] == mode,
        })
    }

    /// Returns `problem`, whose operand 0 is the tensor with its modes called by [`mode_index`], with the
    /// tensor stored so.
    ///
    /// # Errors
    ///
    /// [`CoreError::Internal`] if the problem has no sparse operand, or its pattern says nothing of the blocks.
    pub(crate) fn problem(&self, problem: &Problem) -> Result<Problem, CoreError> {
        let mut problem = problem.clone();
        let x = problem.leader_mut();
        let x = x.ok_or_else(|| CoreError::Internal("a kernel without a sparse operand".into()))?;
        x.format = Format::with_fused(self.levels(), self.fused);
        if let Some(blocks) = &self.blocks {
            x.pattern = x.pattern.in_blocks(blocks).ok_or_else(|| self.unknown_blocks())?;
            problem.extents.set(Index::BLOCK, blocks.extent());
            problem.expr.inputs[0].indices.insert(0, Index::BLOCK);
        }
        Ok(problem)
    }

    fn unknown_blocks(&self) -> CoreError {
        CoreError::Internal(format!("nothing is known of the blocks of {self}"))
    }

    /// Returns the bytes of the tree of a tensor of `extents`, whose pattern is `pattern` over
    /// [`mode_index`] with the counts of the tree's blocks, and whose values have `value_bytes`.
    pub fn bytes(&self, extents: &[u64], pattern: &Pattern, value_bytes: usize) -> u64 {
        let inside = self.blocks.as_ref().and_then(|blocks| pattern.in_blocks(blocks));
        let pattern = inside.as_ref().unwrap_or(pattern);
        let mut by_index = extents_of(extents, 1);
        let block_extent = self.blocks.as_ref().map_or(1, Blocking::extent);
        by_index.set(Index::BLOCK, block_extent);
        let nnz = pattern.count(all_modes(extents.len()), &by_index);
        let levels = self.levels();
        let mut prefix = IndexSet::EMPTY;
        let mut bytes = 0;
        for (level, &index) in levels.iter().enumerate() {
            prefix = prefix.with(index);
            let opens = level + self.fused < levels.len();
            let nodes = if opens { pattern.count(prefix, &by_index) } else { nnz };
            let pointer = if opens { Width::below(nnz + 1).bytes() } else { 0 };
            bytes += nodes * (Width::below(by_index.of(index)).bytes() + pointer) as u64;
        }
        bytes + nnz * value_bytes as u64
    }
}

impl serde::Serialize for TreeLayout {
    /// Writes the text that [`TreeLayout`] displays.
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl fmt::Display for TreeLayout {
    /// Writes the modes counted from 1, fused ones joined by `+`, as `2-1+3`, behind the high bits of
    /// each mode that number the blocks, if there are any, as `4.3.5/2-1+3`, or the ranges of a mode
    /// that are the blocks, as `3:2/2-1+3`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(blocks) = &self.blocks {
            write!(f, "{blocks}/")?;
        }
        let modes = self.order.modes();
        for (level, mode) in modes.iter().enumerate() {
            let sep = match level {
                0 => "",
                _ if level + self.fused > modes.len() => "+",
                _ => "-",
            };
            write!(f, "{sep}{}", mode + 1)?;
        }
        Ok(())
    }
}

impl FromStr for TreeLayout {
    type Err = String;

    fn from_str(text: &str) -> Result<TreeLayout, String> {
        let bad = || {
            format!(
                "`{text}` is no tree: list every mode once, as 2-1-3, 2-1+3, 4.3.5/2-1+3 or 2:8/2-1+3"
            )
        };
        let (blocks, levels) = match text.split_once('/') {
            Some((blocks, levels)) => (Some(blocks.parse::<Blocking>()?), levels),
            None => (None, text),
        };
        let modes = levels.split(['-', '+']).map(|word| word.parse::<usize>().ok()?.checked_sub(1));
        let order = modes.collect::<Option<_>>().and_then(ModeOrder::new).ok_or_else(bad)?;
        if order.modes().len() > MAX_ORDER {
            let modes = order.modes().len();
            return Err(format!(
                "`{text}` lists {modes} modes; tensors of up to {MAX_ORDER} are supported"
            ));
        }
        let fused = 1 + levels.matches('+').count();
        let layout = TreeLayout { blocks, order, fused };
        // Only the last levels are fused, and never the root.
        let below_root = layout.levels().len() - 1;
        let sound = (fused == 1 || fused <= below_root)
            && layout.blocks.as_ref().is_none_or(|b| b.fits_order(layout.order.modes().len()));
        if sound && layout.to_string() == text { Ok(layout) } else { Err(bad()) }
    }
}

#[cfg(test)]
mod tests {
    use super::TreeLayout;

    #[test]
    fn layouts_are_read_as_they_are_written() {
        for text in
            ["1", "2-1-3", "2-1+3", "4.3.5/2-1+3", "4.3.5/2+1+3", "1.0/1-2", "3/1", "3:2/1-2-3"]
        {
            assert_eq!(
                text.parse::<TreeLayout>().map(|tree| tree.to_string()).as_deref(),
                Ok(text)
            );
        }
        for text in [
            "", "0-1", "1-1", "1+2+3", "1+2-3", "4.3/1-2-3", "/1-2", "4.x/1-2", "0.0/1-2",
            "3:2/1-2",
        ] {
            assert!(text.parse::<TreeLayout>().is_err(), "{text}");
        }
    }
}
