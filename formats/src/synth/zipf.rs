//! Skewed draws in constant time: Zipf's law by alias tables.

use crate::error::FormatError;
use crate::synth::random::Stream;

/// Largest extent of a skewed mode: its tables take 16 bytes a slice.
const MOST: u64 = 1 << 28;

/// A distribution over the slices of a mode.
pub(super) struct Zipf {
    extent: u64,
    columns: Vec<Column>,
    /// Which slice has a rank.
    slices: Vec<u32>,
    stream: Stream,
}

/// One of equally likely columns: this rank with probability `share`, else `alias`.
#[derive(Clone, Copy)]
struct Column {
    share: f32,
    alias: u32,
}

impl Zipf {
    /// Prepares draws of slices of `extent` whose rank `r` has a share as
    /// `1 / (r + 1 + extent / 10^4)^exponent`.
    pub(super) fn new(
        extent: u64,
        exponent: f64,
        seed: u64,
        mode: usize,
    ) -> Result<Zipf, FormatError> {
        let fail = |why: String| Err(FormatError::NotATensor(why));
        if !(exponent >= 0.0 && exponent.is_finite()) {
            return fail(format!("exponent {exponent} in mode {}: give one from 0", mode + 1));
        }
        let stream = Stream::new(seed, "power-law pattern").part(mode as u64);
        if exponent == 0.0 {
            return Ok(Zipf { extent, columns: Vec::new(), slices: Vec::new(), stream });
        }
        if extent > MOST {
            let mode = mode + 1;
            return fail(format!(
                "mode {mode} of extent {extent} is too long to be skewed: set its exponent to 0"
            ));
        }
        let shift = 1.0 + extent as f64 * 1e-4;
        let weights = (0..extent).map(|rank| (rank as f64 + shift).powf(-exponent)).collect();
        let slices = shuffled(extent as u32, stream.part(1));
        Ok(Zipf { extent, columns: alias_table(weights), slices, stream })
    }

    /// Returns the slice of draw `counter`.
    pub(super) fn draw(&self, counter: u64) -> u64 {
        if self.columns.is_empty() {
            return self.stream.below(counter, self.extent);
        }
        let bits = self.stream.bits(counter);
        let rank = (((bits >> 32) * self.extent) >> 32) as usize;
        let Column { share, alias } = self.columns[rank];
        let fraction = (bits & 0xffff_ffff) as f32 / (1u64 << 32) as f32;
        let rank = if fraction < share { rank } else { alias as usize };
        u64::from(self.slices[rank])
    }
}

/// Builds the table of Walker and Vose: columns below the mean are filled up by one above it.
fn alias_table(mut weights: Vec<f64>) -> Vec<Column> {
    let mean = weights.iter().sum::<f64>() / weights.len().max(1) as f64;
    weights.iter_mut().for_each(|weight| *weight /= mean);
    let own = |rank: usize| Column { share: 1.0, alias: rank as u32 };
    let mut columns: Vec<Column> = (0..weights.len()).map(own).collect();
    let (mut low, mut high): (Vec<usize>, Vec<usize>) =
        (0..weights.len()).partition(|&rank| weights[rank] < 1.0);
    while let (Some(&giver), Some(taker)) = (high.last(), low.pop()) {
        columns[taker] = Column { share: weights[taker] as f32, alias: giver as u32 };
        weights[giver] -= 1.0 - weights[taker];
        if weights[giver] < 1.0 {
            high.pop();
            low.push(giver);
        }
    }
    columns
}

/// Returns the numbers `0..len` in random order (Fisher, Yates).
fn shuffled(len: u32, stream: Stream) -> Vec<u32> {
    let mut numbers: Vec<u32> = (0..len).collect();
    for last in (1..numbers.len()).rev() {
        numbers.swap(last, stream.below(last as u64, last as u64 + 1) as usize);
    }
    numbers
}

#[cfg(test)]
mod tests {
    use super::{Column, Zipf, alias_table};

    #[test]
    fn tables_keep_the_shares() {
        let weights = vec![8.0, 4.0, 2.0, 1.0, 1.0];
        let columns = alias_table(weights.clone());
        let mut shares = vec![0.0; weights.len()];
        for (rank, &Column { share, alias }) in columns.iter().enumerate() {
            shares[rank] += f64::from(share) / 5.0;
            shares[alias as usize] += (1.0 - f64::from(share)) / 5.0;
        }
        for (share, weight) in shares.iter().zip(weights) {
            assert!((share - weight / 16.0).abs() < 1e-6, "{shares:?}");
        }
    }

    #[test]
    fn all_slices_are_drawn_the_first_most() {
        let zipf = Zipf::new(50, 1.0, 3, 0).expect("in range");
        let mut counts = [0u32; 50];
        (0..100_000).for_each(|n| counts[zipf.draw(n) as usize] += 1);
        let mut ranked = counts.to_vec();
        ranked.sort_unstable_by(|a, b| b.cmp(a));
        assert!(ranked[49] > 0 && ranked[0] > 20_000 && ranked[0] < 24_000, "{ranked:?}");
        assert_ne!(ranked, counts);
    }
}
