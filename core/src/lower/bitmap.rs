//! Which cells were met: a bitmap of cells, and another one of the words of the first.
//!
//! The cells that were met are found in order, without a sort, in `O(met + cells / 4096)`.

/// The bits of a word of a bitmap.
const WORD: usize = 64;

/// The cells of an array that were met.
#[derive(Debug)]
pub(super) struct Bitmap {
    /// A bit for each cell that has been met.
    pub(super) met: Vec<u64>,
    /// A bit for each word of `met` that is not zero.
    pub(super) words: Vec<u64>,
}

impl Bitmap {
    /// Makes a bitmap of no cell out of `cells`.
    pub(super) fn new(cells: usize) -> Bitmap {
        let words = cells.div_ceil(WORD);
        Bitmap { met: vec![0; words], words: vec![0; words.div_ceil(WORD)] }
    }

    /// Marks a cell; returns whether it was not before.
    pub(super) fn mark(&mut self, cell: usize) -> bool {
        let new = !self.has(cell);
        self.met[cell / WORD] |= 1 << (cell % WORD);
        self.words[cell / WORD / WORD] |= 1 << (cell / WORD % WORD);
        new
    }

    /// Tells whether a cell is marked.
    pub(super) fn has(&self, cell: usize) -> bool {
        self.met[cell / WORD] >> (cell % WORD) & 1 == 1
    }

    /// Returns how many cells are marked.
    pub(super) fn count(&self) -> usize {
        let words = self.words.iter().zip(self.met.chunks(WORD)).filter(|(words, _)| **words != 0);
        let of = |(&words, met): (&u64, &[u64])| {
            bits(words).map(|word| met[word].count_ones() as usize).sum::<usize>()
        };
        words.map(of).sum()
    }

    /// Calls `visit` for each marked cell, in order, and marks none any more.
    pub(super) fn take(&mut self, mut visit: impl FnMut(usize)) {
        for (at, words) in self.words.iter_mut().enumerate().filter(|(_, words)| **words != 0) {
            for word in bits(std::mem::take(words)) {
                let word = at * WORD + word;
                bits(std::mem::take(&mut self.met[word])).for_each(|bit| visit(word * WORD + bit));
            }
        }
    }

    /// Returns the marked cells, in order.
    pub(super) fn cells(&self) -> Vec<usize> {
        let words = self.words.iter().enumerate();
        let words = words.flat_map(|(at, &words)| bits(words).map(move |word| at * WORD + word));
        words.flat_map(|word| bits(self.met[word]).map(move |bit| word * WORD + bit)).collect()
    }
}

/// Iterates over the places of the bits of a word that are set, from the lowest on.
fn bits(word: u64) -> impl Iterator<Item = usize> {
    let rest = |&word: &u64| Some(word & (word - 1)).filter(|&rest| rest != 0);
    let first = Some(word).filter(|&word| word != 0);
    std::iter::successors(first, rest).map(|word| word.trailing_zeros() as usize)
}
