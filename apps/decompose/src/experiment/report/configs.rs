//! Runs that differ by seed and repeat alone, and what is said of several numbers.

use crate::experiment::report::results::{Measure, RunResult};

/// The finished runs of one group on one tensor with the same options.
pub(crate) struct Config<'a> {
    pub(crate) group: &'a str,
    pub(crate) tensor: &'a str,
    pub(crate) settings: &'a [(String, String)],
    pub(crate) runs: Vec<&'a RunResult>,
}

/// The middle of some numbers, and of their lower and upper halves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Quartiles {
    pub(crate) low: f64,
    pub(crate) median: f64,
    pub(crate) high: f64,
}

impl Quartiles {
    /// Returns those of `values` by linear interpolation between neighbours; `None` of no number.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Quartiles> {
        let mut values: Vec<f64> = values.into_iter().filter(|value| value.is_finite()).collect();
        values.sort_by(f64::total_cmp);
        let last = values.len().checked_sub(1)?;
        let at = |share: f64| {
            let place = share * last as f64;
            let (below, above) = (values[place.floor() as usize], values[place.ceil() as usize]);
            below + (above - below) * place.fract()
        };
        Some(Quartiles { low: at(0.25), median: at(0.5), high: at(0.75) })
    }
}

/// Gathers finished runs, in their order.
pub(crate) fn configs<'r>(runs: impl Iterator<Item = &'r RunResult>) -> Vec<Config<'r>> {
    let mut configs: Vec<Config<'r>> = Vec::new();
    for run in runs {
        let (group, tensor, settings) = (&run.run.group, &run.run.tensor, &run.run.settings);
        let same = configs.iter_mut().find(|config| {
            config.group == group && config.tensor == tensor && config.settings == settings
        });
        match same {
            Some(config) => config.runs.push(run),
            None => configs.push(Config { group, tensor, settings, runs: vec![run] }),
        }
    }
    configs
}

impl Config<'_> {
    /// Returns a name for it, without what `shared` says that all have.
    pub(crate) fn label(&self, shared: &Shared) -> String {
        let mut parts = Vec::new();
        if shared.group == Part::Differs {
            parts.push(self.group.to_owned());
        }
        if shared.tensor == Part::Differs {
            parts.push(self.tensor.to_owned());
        }
        parts.extend(self.settings.iter().map(|(option, value)| format!("{option} {value}")));
        if parts.is_empty() { self.group.to_owned() } else { parts.join(", ") }
    }

    /// Returns its options but that of the rank, with the group: what a line over ranks is called.
    pub(crate) fn line(&self, dropped: &[&str]) -> String {
        let kept = self.settings.iter().filter(|(name, _)| !dropped.contains(&name.as_str()));
        let kept = kept.map(|(option, value)| format!("{option} {value}"));
        std::iter::once(self.group.to_owned()).chain(kept).collect::<Vec<_>>().join(", ")
    }

    /// Returns what its models are judged by.
    pub(crate) fn measure(&self) -> Option<Measure> {
        self.runs.iter().find_map(|run| Some(run.quality?.measure))
    }

    /// Returns the spread of a number over its runs.
    pub(crate) fn spread(&self, of: impl Fn(&RunResult) -> Option<f64>) -> Option<Quartiles> {
        Quartiles::of(self.runs.iter().filter_map(|run| of(run)))
    }

    /// Returns the spread of some seconds; `None` where other runs shared the machine.
    pub(crate) fn seconds(&self, of: impl Fn(&RunResult) -> Option<f64>) -> Option<Quartiles> {
        let timed = self.runs.iter().filter(|run| run.run.timed);
        Quartiles::of(timed.filter_map(|run| of(run)))
    }

    /// Returns the run whose model is the best; of equal ones the first.
    pub(crate) fn best(&self) -> Option<&RunResult> {
        let judged = self.runs.iter().filter_map(|run| Some((*run, run.quality?.error)));
        judged.min_by(|a, b| a.1.total_cmp(&b.1)).map(|(run, _)| run)
    }
}

/// What all configurations of a figure have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shared {
    group: Part,
    tensor: Part,
}

/// Whether a part of a name tells configurations apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Same,
    Differs,
}

impl Shared {
    /// Looks at all of them.
    pub(crate) fn of(configs: &[&Config<'_>]) -> Shared {
        let same = |of: fn(&Config<'_>) -> String| match configs
            .windows(2)
            .all(|pair| of(pair[0]) == of(pair[1]))
        {
            true => Part::Same,
            false => Part::Differs,
        };
        Shared {
            group: same(|config| config.group.to_owned()),
            tensor: same(|config| config.tensor.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Quartiles;

    #[test]
    fn quartiles_are_those_of_the_textbook() {
        let of = |values: &[f64]| Quartiles::of(values.iter().copied());
        assert_eq!(of(&[]), None);
        assert_eq!(of(&[f64::NAN]), None);
        assert_eq!(of(&[3.0]), Some(Quartiles { low: 3.0, median: 3.0, high: 3.0 }));
        // As numpy.percentile([1, 2, 3, 4], [25, 50, 75]).
        let four = of(&[4.0, 1.0, 3.0, 2.0]);
        assert_eq!(four, Some(Quartiles { low: 1.75, median: 2.5, high: 3.25 }));
        let five = of(&[10.0, 0.0, 2.0, 7.0, 3.0]);
        assert_eq!(five, Some(Quartiles { low: 2.0, median: 3.0, high: 7.0 }));
    }
}
