//! The runs of a study, each with the key by which a finished one is known again.

use decompose_common::machine::hardware_threads;
use serde::{Deserialize, Serialize};

use crate::bench::peers::Peer;
use crate::experiment::study::Study;
use crate::experiment::study::group::{Expression, Group, Task, shown};
use crate::experiment::study::options::{Settings, words};
use crate::experiment::study::source::Setting;
use crate::experiment::work::tensors::ReadyTensor;

/// Letters of a key in the name of a folder.
const KEY_LETTERS: usize = 16;
/// The most letters of a folder's name before the key.
const LONGEST: usize = 100;

/// The study as it is run: what the report reads.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct Plan {
    pub(crate) title: String,
    /// The version of the program.
    pub(crate) version: String,
    /// The group or program that speed-ups are measured against.
    pub(crate) baseline: Option<String>,
    /// Results of other programs.
    #[serde(default)]
    pub(crate) peers: Vec<Peer>,
    pub(crate) tensors: Vec<PlannedTensor>,
    /// In the order of the file.
    pub(crate) runs: Vec<PlannedRun>,
}

/// A tensor of the study.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub(crate) struct PlannedTensor {
    pub(crate) name: String,
    pub(crate) path: String,
    pub(crate) blake3: String,
    /// What it has in common with tensors of other sizes; `None` of a file.
    #[serde(default)]
    pub(crate) family: Option<String>,
}

/// A run.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub(crate) struct PlannedRun {
    /// The folder in `runs`, where no other run has left the same key.
    pub(crate) name: String,
    pub(crate) key: String,
    pub(crate) group: String,
    pub(crate) command: String,
    pub(crate) tensor: String,
    /// The options that change in its group.
    pub(crate) settings: Vec<(String, String)>,
    pub(crate) seed: Option<u64>,
    /// From 1.
    pub(crate) repeat: usize,
    pub(crate) threads: usize,
    /// Whether its seconds count: then no other run shares the machine.
    pub(crate) timed: bool,
    /// What is typed after the command, but files and folder.
    pub(crate) words: Vec<String>,
    /// What is computed, of commands that compute an expression.
    pub(crate) expression: Option<Expression>,
}

impl Plan {
    /// Plans all runs of a study.
    pub(crate) fn of(study: &Study, tensors: &[ReadyTensor]) -> Plan {
        let planned = |tensor: &ReadyTensor| PlannedTensor {
            name: tensor.name.clone(),
            path: tensor.path.to_string_lossy().into_owned(),
            blake3: tensor.blake3.clone(),
            family: tensor.family.clone(),
        };
        Plan {
            title: study.title.clone(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            baseline: study.baseline.clone(),
            peers: study.peers.clone(),
            tensors: tensors.iter().map(planned).collect(),
            runs: study.groups.iter().flat_map(|group| runs(group, tensors)).collect(),
        }
    }
}

impl Plan {
    /// Returns how many results of other programs are for work that no run does.
    pub(crate) fn peers_alone(&self) -> usize {
        let does = |run: &PlannedRun, peer: &Peer| {
            run.tensor == peer.tensor
                && run.threads == peer.threads
                && run.rank() == peer.rank.map(|rank| rank as f64)
        };
        let alone = |peer: &&Peer| !self.runs.iter().any(|run| does(run, peer));
        self.peers.iter().filter(alone).count()
    }
}

impl PlannedRun {
    /// Returns the rank of the model: the largest of several.
    pub(crate) fn rank(&self) -> Option<f64> {
        const NAMES: [&str; 3] = ["rank", "ranks", "max-rank"];
        let varied = self.settings.iter();
        let varied = varied.filter(|(name, _)| NAMES.contains(&name.as_str()));
        let fixed = self.words.iter().filter_map(|word| {
            let (name, value) = word.strip_prefix("--")?.split_once('=')?;
            NAMES.contains(&name).then_some(value)
        });
        let values = varied.map(|(_, value)| value.as_str()).chain(fixed);
        let largest = |value: &str| {
            let ranks = value.split([',', 'x', '-']).map(|rank| rank.trim().parse::<f64>());
            let ranks: Vec<f64> = ranks.collect::<Result<_, _>>().ok()?;
            ranks.into_iter().reduce(f64::max)
        };
        values.filter_map(largest).next()
    }
}

/// Returns the runs of a group: tensor by tensor, point by point, seed by seed.
fn runs(group: &Group, tensors: &[ReadyTensor]) -> Vec<PlannedRun> {
    let of_group = tensors.iter().filter(|tensor| group.tensors.contains(&tensor.name));
    let mut runs = Vec::new();
    for tensor in of_group {
        for point in &group.points {
            for seed in &group.seeds {
                runs.extend(
                    (1..=group.repeats).map(|repeat| run(group, tensor, point, (*seed, repeat))),
                );
            }
        }
    }
    runs
}

fn run(
    group: &Group,
    tensor: &ReadyTensor,
    point: &Settings,
    (seed, repeat): (Option<u64>, usize),
) -> PlannedRun {
    let mut all: Settings = group.fixed.iter().chain(point).cloned().collect();
    if let Some(seed) = seed {
        all.push(("seed".to_owned(), Setting::Word(seed.to_string())));
    }
    let number = |long: &str| {
        let given = all.iter().find(|(name, _)| name == long)?;
        if let Setting::Word(word) = &given.1 { word.parse::<u64>().ok() } else { None }
    };
    let (asked, seed) = (number("threads"), number("seed"));
    let mut threads = asked.map_or_else(hardware_threads, |threads| threads as usize);
    if group.task == Task::Bench {
        threads = hardware_threads();
    } else if asked.is_none() {
        // The same bits need the same number of threads: it belongs to the key.
        all.push(("threads".to_owned(), Setting::Word(threads.to_string())));
    }
    let settings: Vec<(String, String)> = point
        .iter()
        .filter(|(long, _)| long != "seed")
        .map(|(long, value)| (long.clone(), shown(value)))
        .collect();
    let mut words = words(&all);
    words.sort();
    let mut planned = PlannedRun {
        name: String::new(),
        key: String::new(),
        group: group.name.clone(),
        command: group.task.command().to_owned(),
        tensor: tensor.name.clone(),
        settings,
        seed,
        repeat,
        threads,
        timed: group.timed,
        words,
        expression: group.expression.clone(),
    };
    planned.key = key(&planned, &tensor.blake3);
    planned.name = name(&planned, group.repeats);
    planned
}

/// Returns the hash of everything that decides a run.
fn key(run: &PlannedRun, input: &str) -> String {
    let timed = if run.timed { "timed" } else { "untimed" };
    let version = env!("CARGO_PKG_VERSION");
    let mut hash = Hash::default();
    for word in [version, &run.command, input, timed, &run.repeat.to_string()] {
        hash.add(word);
    }
    run.words.iter().for_each(|word| hash.add(word));
    if let Some(Expression { text, operands }) = &run.expression {
        hash.add(text);
        for operand in operands {
            hash.add(operand);
            if let Some((_, file)) = operand.split_once('=') {
                let content = decompose_formats::io::file_hash(file.as_ref());
                hash.add(&content.unwrap_or_default());
            }
        }
    }
    hash.finish()
}

/// Words, each after its length, hashed.
#[derive(Default)]
struct Hash(blake3::Hasher);

impl Hash {
    fn add(&mut self, word: &str) {
        self.0.update(&(word.len() as u64).to_le_bytes());
        self.0.update(word.as_bytes());
    }

    fn finish(&self) -> String {
        let mut hex = self.0.finalize().to_hex().to_string();
        hex.truncate(KEY_LETTERS);
        hex
    }
}

/// Returns the name of a run's folder: what it is, and its key.
fn name(run: &PlannedRun, repeats: usize) -> String {
    let mut name = format!("{}-{}", run.command, run.tensor);
    for (option, value) in &run.settings {
        name.push_str(&format!("-{option}{value}"));
    }
    if let Some(seed) = run.seed {
        name.push_str(&format!("-seed{seed}"));
    }
    if repeats > 1 {
        name.push_str(&format!("-repeat{}", run.repeat));
    }
    let plain = |c: char| if c.is_ascii_alphanumeric() || "-_.".contains(c) { c } else { 'x' };
    let name: String = name.chars().map(plain).take(LONGEST).collect();
    format!("{name}-{}", run.key)
}

/// Returns the key at the end of a folder's name.
pub(crate) fn key_of(folder: &str) -> Option<&str> {
    let (_, key) = folder.rsplit_once('-')?;
    (key.len() == KEY_LETTERS).then_some(key)
}
