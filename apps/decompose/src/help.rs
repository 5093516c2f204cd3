//! What help says of shared options where a command uses them in its own way.
//!
//! Options are declared once, with the help that most commands need; a command that differs says so where its
//! arguments are declared, by `mut_arg`.

/// `--duplicates` of completions.
pub(crate) const DUPLICATES_MEAN: &str = "What becomes of entries with equal indices: sum, mean, first, last, min, max, or error, which \
     refuses them.  [default: mean]";
/// `--duplicates` of scans of ranks.
pub(crate) const DUPLICATES_BY_METHOD: &str = "What becomes of entries with equal indices: sum, mean, first, last, min, max, or error, which \
     refuses them.  [default: mean; sum with --method cp]";
/// `--max-iters` of completions.
pub(crate) const EPOCHS: &str = "The most epochs of a fit.  [default: 500]";
/// `--tol` of completions.
pub(crate) const GAIN: &str = "The share by which an error must fall below the least one so far to be an improvement: see \
     --patience.  [default: 1e-4]";
/// `--seed` of completions.
pub(crate) const SPLIT_SEED: &str =
    "The seed of the split and of random starts: a number, or `random`.  [default: 0]";
/// `--max-memory` of completions, which have one plan.
pub(crate) const REFUSED_ABOVE: &str = "The most memory, as 16G or 512M; a run that needs more is refused.  [default: what is available]";

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use crate::cli::Cli;

    /// Returns the help of `option` of `command`, in one line, without what is hidden.
    fn help(command: &str, option: &str) -> Option<String> {
        let cli = Cli::command();
        let command = cli.find_subcommand(command).unwrap();
        let option = command.get_arguments().find(|arg| arg.get_id() == option)?;
        let help = option.get_long_help().or(option.get_help())?;
        (!option.is_hide_set())
            .then(|| help.to_string().split_whitespace().collect::<Vec<_>>().join(" "))
    }

    #[test]
    fn every_command_tells_its_own_defaults() {
        let cases = [
            ("cp", "max_iters", "[default: 50]"),
            ("complete", "max_iters", "[default: 500]"),
            ("rank", "max_iters", "[default: 500]"),
            ("cp", "tol", "[default: 1e-5]"),
            ("rank", "tol", "[default: 1e-4]"),
            ("stats", "duplicates", "[default: sum]"),
            ("complete", "duplicates", "[default: mean]"),
            ("rank", "duplicates", "[default: mean; sum with --method cp]"),
            ("cp", "out", "decompose-NAME-cp-rRANK"),
            ("tucker", "out", "decompose-NAME-tucker-rRANKS"),
            ("tt", "out", "decompose-NAME-tt-rounded"),
            ("complete", "out", "decompose-NAME-complete-MODEL-rRANK"),
            ("rank", "out", "decompose-NAME-rank"),
            ("rank", "checkpoint_every", "every N fits"),
            ("complete", "explain", "expressions of the kernels"),
            ("predict", "file", "The coordinates"),
            ("convert", "file", "a table, .csv or .tsv"),
            ("generate", "out_base", "[default: 1]"),
            ("einsum", "out_base", "else 1]"),
        ];
        for (command, option, words) in cases {
            let help = help(command, option).unwrap();
            assert!(help.contains(words), "{command} --{option}: {help}");
        }
    }

    #[test]
    fn options_without_a_use_are_not_shown() {
        let cases = [
            ("complete", "precision"),
            ("rank", "precision"),
            ("rank", "explain"),
            ("rank", "print_every"),
            ("predict", "duplicates"),
        ];
        for (command, option) in cases {
            assert_eq!(help(command, option), None, "{command} --{option}");
        }
    }
}
