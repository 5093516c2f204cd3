//! Models as expressions.
//!
//! ```text
//! cp      S(i,j,k) = X(i,j,k) * A1(i,r) * A2(j,r) * A3(k,r)
//! tucker  S(i,j,k) = X(i,j,k) * U1(i,r) * U2(j,s) * U3(k,t) * G(r,s,t)
//! tt      S(i,j,k) = X(i,j,k) * G1(i,a) * G2(j,a,b) * G3(k,b)
//! ```
//!
//! With ones for `X` this is the model at the entries; with the slopes of the loss for `X`, the
//! same without a block and with the indices of that block kept is the gradient by the block.  A
//! block that belongs to a mode has the mode's index first: its rows are the parameters of one
//! slice of the tensor, which no other slice of that mode shares.

use decompose_core::einsum::{Access, Expr, Index};
use decompose_core::kernels;

use crate::config::ModelKind;

/// A model for a tensor of given extents: its blocks of parameters and how they multiply.
#[derive(Clone, Debug)]
pub struct Network {
    extents: Vec<u64>,
    blocks: Vec<Block>,
}

/// A dense array of parameters.
#[derive(Clone, Debug)]
pub struct Block {
    /// Its name in expressions and model files.
    pub name: String,
    /// The mode whose index is its first one; `None` for a Tucker core.
    pub mode: Option<usize>,
    /// Its indices, the mode's first.
    pub indices: Vec<Index>,
    /// Their extents.
    pub shape: Vec<u64>,
}

impl Block {
    /// Returns the rows and columns of its matrix: the last index runs along a row.
    pub fn matrix(&self) -> (usize, usize) {
        let (cols, rows) = self.shape.split_last().map_or((1, &[][..]), |(c, r)| (*c, r));
        (rows.iter().product::<u64>() as usize, cols as usize)
    }

    /// Returns the number of parameters of one slice of its mode; all of them without a mode.
    pub fn slice_len(&self) -> usize {
        self.shape.iter().skip(usize::from(self.mode.is_some())).product::<u64>() as usize
    }

    /// Returns the number of slices: the extent of its mode, or one.
    pub fn slices(&self) -> usize {
        self.mode.map_or(1, |_| self.shape[0] as usize)
    }
}

impl Network {
    /// Makes the network of `kind` for a tensor of `extents`, its ranks as they are.
    pub fn new(kind: &ModelKind, extents: &[u64]) -> Network {
        let order = extents.len();
        let of_mode = |name: String, mode: usize, ranks: Vec<(Index, u64)>| {
            let all: Vec<(Index, u64)> =
                [(kernels::mode_index(mode), extents[mode])].into_iter().chain(ranks).collect();
            let (indices, shape) = all.into_iter().unzip();
            Block { name, mode: Some(mode), indices, shape }
        };
        let rank = |index: Index, rank: usize| (index, rank as u64);
        let mut blocks: Vec<Block> = (0..order)
            .map(|m| match kind {
                ModelKind::Cp { rank: r } => {
                    of_mode(format!("A{}", m + 1), m, vec![rank(kernels::rank_index(), *r)])
                }
                ModelKind::Tucker { ranks } => {
                    let index = kernels::mode_rank_index(order, m);
                    of_mode(format!("U{}", m + 1), m, vec![rank(index, ranks[m])])
                }
                ModelKind::Train { ranks } => {
                    let left = m.checked_sub(1);
                    let right = (m + 1 < order).then_some(m);
                    let bonds = left.into_iter().chain(right);
                    let bonds = bonds.map(|b| rank(kernels::bond_index(order, b), ranks[b]));
                    of_mode(format!("G{}", m + 1), m, bonds.collect())
                }
            })
            .collect();
        if let ModelKind::Tucker { ranks } = kind {
            let indices = (0..order).map(|m| kernels::mode_rank_index(order, m)).collect();
            let shape = ranks.iter().map(|&rank| rank as u64).collect();
            blocks.push(Block { name: "G".into(), mode: None, indices, shape });
        }
        Network { extents: extents.to_vec(), blocks }
    }

    /// Returns the extents of the tensor.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// Returns the blocks, in the order in which they are operands.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Returns the number of parameters.
    pub fn parameters(&self) -> u64 {
        self.blocks.iter().map(|block| block.shape.iter().product::<u64>()).sum()
    }

    /// Returns the expression of the model's values at the entries.
    pub fn values(&self) -> Expr {
        let order = self.extents.len();
        let output = (0..order).map(kernels::mode_index).collect();
        let inputs = std::iter::once(self.tensor()).chain(self.blocks.iter().map(operand));
        Expr { output: Access { tensor: "S".into(), indices: output }, inputs: inputs.collect() }
    }

    /// Returns the expression of the gradient by `block`.
    pub fn gradient(&self, block: usize) -> Expr {
        let others = self.blocks.iter().enumerate().filter(|(at, _)| *at != block);
        let inputs = std::iter::once(self.tensor()).chain(others.map(|(_, b)| operand(b)));
        Expr { output: operand(&self.blocks[block]), inputs: inputs.collect() }
    }

    /// Returns the shapes of the operands of [`Network::values`], the tensor's first.
    pub fn shapes(&self) -> Vec<Vec<u64>> {
        let blocks = self.blocks.iter().map(|block| block.shape.clone());
        std::iter::once(self.extents.clone()).chain(blocks).collect()
    }

    fn tensor(&self) -> Access {
        let indices = (0..self.extents.len()).map(kernels::mode_index).collect();
        Access { tensor: "X".into(), indices }
    }
}

fn operand(block: &Block) -> Access {
    Access { tensor: block.name.clone(), indices: block.indices.clone() }
}

#[cfg(test)]
mod tests {
    use super::Network;
    use crate::config::ModelKind;

    #[test]
    fn expressions_are_the_textbook_ones() {
        let cp = Network::new(&ModelKind::Cp { rank: 2 }, &[3, 4, 5]);
        assert_eq!(cp.values().to_string(), "S(i,j,k) = X(i,j,k) * A1(i,r) * A2(j,r) * A3(k,r)");
        assert_eq!(cp.gradient(1).to_string(), "A2(j,r) = X(i,j,k) * A1(i,r) * A3(k,r)");
        let tucker = Network::new(&ModelKind::Tucker { ranks: vec![2, 3, 2] }, &[3, 4, 5]);
        let core = "G(r,s,t) = X(i,j,k) * U1(i,r) * U2(j,s) * U3(k,t)";
        assert_eq!(tucker.gradient(3).to_string(), core);
        assert_eq!(tucker.parameters(), 6 + 12 + 10 + 12);
        let train = Network::new(&ModelKind::Train { ranks: vec![2, 3] }, &[3, 4, 5]);
        assert_eq!(train.gradient(1).to_string(), "G2(j,a,b) = X(i,j,k) * G1(i,a) * G3(k,b)");
        assert_eq!(train.blocks()[1].matrix(), (8, 3));
        assert_eq!(train.blocks()[1].slice_len(), 6);
    }
}
