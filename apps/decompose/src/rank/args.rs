//! What the user typed after `decompose rank`, checked word by word only.

use std::str::FromStr;

use clap::{Args, ValueEnum};
use decompose_formats::Duplicates;

use crate::complete::args::{CompleteArgs, DataArgs, FitArgs, ModelArgs, ModelName};
use crate::help;
use crate::input::{InputArgs, MissingArgs};
use crate::run::args::{ComputeArgs, OutputArgs, Switches};

/// The most ranks of a range: each is fitted.
const MOST_RANKS: usize = 10_000;

/// Compares ranks of CP models by held-out error, fit and stability.
///
/// Fits a model at each rank, from --restarts starts, and judges it on entries that it has not seen.
/// Writes rank.csv, run.json and a figure into a new folder.  Recommends the smallest rank that gains
/// 99% of what the best one gains over the mean of all entries, among ranks at which the starts that
/// reach the least error also agree on the components.
#[derive(Args, Debug)]
#[command(mut_arg("duplicates", |arg| arg.help(help::DUPLICATES_BY_METHOD)))]
#[command(mut_arg("max_iters", |arg| arg.help(help::EPOCHS)))]
#[command(mut_arg("tol", |arg| arg.help(help::GAIN)))]
#[command(mut_arg("seed", |arg| arg.help(help::SPLIT_SEED)))]
#[command(mut_arg("max_memory", |arg| arg.help(help::REFUSED_ABOVE)))]
#[command(mut_arg("precision", |arg| arg.hide(true)))]
#[command(mut_arg("missing", |arg| arg.help(
    "What stands for an unknown value: nan, for --method complete.  Such entries are left out, and \
     all other cells of a .npy array are listed, zeros too.  [default: a NaN is refused]"
)))]
#[command(mut_arg("restarts", |arg| arg.help(
    "Starts at each rank, from seed, seed + 1, ...; that with the least validation error counts, or \
     without validation entries the least training error"
)))]
#[command(mut_arg("checkpoint_every", |arg| arg.help("Save the state every N fits, for --resume")))]
#[command(mut_arg("print_every", |arg| arg.hide(true)))]
#[command(mut_arg("explain", |arg| arg.hide(true)))]
#[command(mut_arg("out", |arg| arg.help(
    "The folder of the results.  [default: decompose-NAME-rank]"
)))]
pub(crate) struct RankArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    pub(crate) missing: MissingArgs,
    /// The ranks to compare: FIRST:LAST, FIRST:LAST:STEP, or a list as 2,3,5.
    #[arg(long, short, value_name = "RANKS", help_heading = "Model")]
    pub(crate) ranks: Ranks,
    /// What entries that are not listed are: unknown (complete), or zero (cp).  For cp, fit and match
    /// are those of CP decompositions of the whole tensor; held-out errors are those of completions
    /// of the listed entries and as many others, drawn at random, that are taken to be zero.
    #[arg(long, value_name = "METHOD", default_value = "complete", help_heading = "Model")]
    pub(crate) method: ScanMethod,
    #[command(flatten)]
    pub(crate) fit: FitArgs,
    #[command(flatten)]
    pub(crate) data: DataArgs,
    #[command(flatten)]
    pub(crate) compute: ComputeArgs,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) switches: Switches,
}

/// What entries that are not listed are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum ScanMethod {
    /// Unknown.
    Complete,
    /// Zero.
    Cp,
}

/// Ranks, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Ranks(pub(crate) Vec<usize>);

impl FromStr for Ranks {
    type Err = String;

    fn from_str(text: &str) -> Result<Ranks, String> {
        let bad = || format!("`{text}` is no range of ranks; use 2:20, 2:20:2 or 2,3,5");
        let number = |word: &str| word.trim().parse::<usize>().ok().filter(|&n| n > 0);
        let separator = if text.contains(':') { ':' } else { ',' };
        let words: Option<Vec<usize>> = text.split(separator).map(number).collect();
        let range = |first: usize, last: usize, step: usize| {
            let count = last.checked_sub(first).map_or(0, |more| more / step + 1);
            match count {
                0..=MOST_RANKS => Ok((first..=last).step_by(step).collect()),
                _ => Err(format!("`{text}` is {count} ranks; compare at most {MOST_RANKS}")),
            }
        };
        let mut ranks: Vec<usize> = match (separator, words.ok_or_else(bad)?.as_slice()) {
            (':', &[first, last]) => range(first, last, 1)?,
            (':', &[first, last, step]) => range(first, last, step)?,
            (':', _) => return Err(bad()),
            (_, listed) => listed.to_vec(),
        };
        ranks.sort_unstable();
        ranks.dedup();
        if ranks.is_empty() { Err(bad()) } else { Ok(Ranks(ranks)) }
    }
}

impl RankArgs {
    /// Returns what was typed as a completion at the first rank.
    pub(crate) fn completion(&self) -> CompleteArgs {
        let input = self.input.clone();
        CompleteArgs {
            input: match self.method {
                ScanMethod::Complete => input,
                // As of `decompose cp`.
                ScanMethod::Cp => input.with_default_duplicates(Duplicates::Sum),
            },
            missing: self.missing,
            model: ModelArgs {
                model: ModelName::Cp,
                rank: self.ranks.0.first().copied(),
                ranks: Vec::new(),
                fit: self.fit.clone(),
            },
            data: self.data.clone(),
            compute: self.compute.clone(),
            output: self.output.clone(),
            switches: self.switches,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Ranks;

    #[test]
    fn ranges_and_lists_are_read() {
        let cases = [
            ("2:5", vec![2, 3, 4, 5]),
            ("2:9:3", vec![2, 5, 8]),
            ("5,2,2", vec![2, 5]),
            ("7", vec![7]),
        ];
        for (text, ranks) in cases {
            assert_eq!(text.parse::<Ranks>().unwrap().0, ranks, "{text}");
        }
        // What is claimed is refused before anything of its size is made.
        for text in ["1:18446744073709551615", "1:18446744073709551614:2"] {
            let error = text.parse::<Ranks>().unwrap_err();
            assert!(error.contains("compare at most 10000"), "{error}");
        }
        assert_eq!(
            "18446744073709551615:18446744073709551615".parse::<Ranks>().unwrap().0.len(),
            1
        );
        for text in ["", "0", "5:2", "1:2:3:4", "2:4:0", "a", "-1"] {
            assert!(text.parse::<Ranks>().is_err(), "{text}");
        }
    }
}
