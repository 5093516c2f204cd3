//! The machine that a schedule is judged for.
//!
//! Name and cache sizes are read from the processor (`detect`); the times are those of its [`Family`],
//! so that the same processor, input, seed and threads always give the same schedules: nothing is
//! timed.  The environment variable [`MACHINE_VARIABLE`] puts another family, or a file of constants, in its place.

mod detect;
mod family;

use std::sync::OnceLock;

use serde::{Deserialize, Serialize};

use crate::cost::machine::family::FAMILIES;
pub use crate::cost::machine::family::{Family, MACHINE_VARIABLE};

/// Sizes and speeds of one core and its caches.
///
/// The times are throughputs with prefetching and some independent work in flight.  They rank
/// schedules and are no promise of seconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The processor's name, as it reports itself.
    #[serde(skip)]
    pub name: String,
    /// The family whose times these are.
    #[serde(skip)]
    pub family: Family,
    /// Bytes of first-level data cache a core.
    pub l1_bytes: u64,
    /// Bytes of second-level cache a core.
    pub l2_bytes: u64,
    /// Bytes of last-level cache.
    pub l3_bytes: u64,
    /// The part of the second-level cache that a table may count on.
    pub l2_share: f64,
    /// The part of the last-level cache that a table may count on: on a shared server the programs of
    /// others use it too.
    pub l3_share: f64,
    /// The part of the second-level cache that all tables of a kernel may count on together; `None` where what
    /// each may count on is taken to be its own.
    pub l2_together: Option<f64>,
    /// Rows of tables of up to this many bytes come from the last-level cache quickly; beyond, as late as
    /// from memory.  `None`: those of all that it holds do.
    pub quick_bytes: Option<f64>,
    /// Bytes of rows that come late between their prefetch and their use: more would stall.
    pub prefetched_bytes: f64,
    /// Threads that share the last-level cache, each with buffers of its own.
    #[serde(skip)]
    pub threads: usize,
    /// Seconds to find a row of which a node of the tree tells the coordinate, wherever the row is: to read
    /// the coordinate, to compute the address, to request it.
    pub find_row: f64,
    /// Seconds to load a 64-byte line again that was just loaded.
    pub l1_line: f64,
    /// Seconds to load or store a line of a buffer in the first-level cache.
    pub buffer_line: f64,
    /// Seconds to gather a 64-byte line that is in the second-level cache.
    pub l2_line: f64,
    /// Seconds to gather a line from the last-level cache.
    pub l3_line: f64,
    /// Seconds to gather a line that is in the last-level cache or in memory: of a table that the cache would
    /// hold without what others use of it.
    pub memory_line: f64,
    /// Seconds to gather a line from memory.
    pub beyond_line: f64,
    /// The most seconds that a line which was gathered and added to takes to go back; `None` where that is not known
    /// and taken to be as long as it took to come.
    pub write_back_line: Option<f64>,
    /// Seconds that a gathered row from the last-level cache takes beside its lines: the part of the
    /// latency that is not hidden.
    pub l3_wait: f64,
    /// The same from memory.
    pub memory_wait: f64,
    /// Seconds to stream a line from memory.
    pub stream_line: f64,
    /// Seconds for one multiply-add of one value, vectorised.
    pub flop_pair: f64,
    /// Seconds for one multiply-add of one value in a loop without vectors, its loads and stores in
    /// the first-level cache.
    pub scalar_pair: f64,
    /// The share of [`Machine::scalar_pair`] that a product of a long sum takes where vectors of values are gathered; `None`
    /// where that is not known, and sums are not gathered unless a schedule says so.
    pub gathered_sum: Option<f64>,
    /// Seconds to add up the lanes of a vector.
    pub lane_sum: f64,
    /// Seconds to add to a value at a random place in memory: its line is read and written, and its
    /// page's translation is missing too.
    pub scatter_line: f64,
    /// Seconds to open and close one loop over a few iterations.
    pub loop_overhead: f64,
    /// Seconds that the end of such a loop takes beside that where it is mispredicted.
    pub loop_end: f64,
    /// What the greedy scheduler counts.
    pub greedy: GreedyCosts,
}

/// Costs of the greedy scheduler, in iterations of a loop over a sparse level (Scorch, section III-C).
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GreedyCosts {
    /// An element that is inserted into a workspace, for each dimension of it.
    pub insert: f64,
    /// A comparison where a workspace is sorted.
    pub sort: f64,
    /// A non-zero of a tensor that is transposed.
    pub transpose: f64,
    /// An iteration of an innermost loop over a whole extent, which vectors do several of at once.
    pub lane: f64,
}

impl Family {
    /// Returns a machine of the family with two threads, the same wherever this runs: what tests of
    /// rankings are judged for, and what stands for sizes that a processor does not tell.
    ///
    /// ```
    /// use decompose_core::cost::{Family, Machine};
    ///
    /// let machine = Machine { threads: 8, ..Family::Xeon.machine() };
    /// assert!(machine.l3_line > Family::Zen.machine().l3_line);
    /// ```
    ///
    /// # Panics
    ///
    /// Never: a test reads every file.
    pub fn machine(self) -> Machine {
        let (_, name, constants) = FAMILIES[self as usize];
        let constants = toml::from_str(constants).expect("constants of every kind");
        Machine { name: name.to_owned(), family: self, threads: 2, ..constants }
    }
}

impl Machine {
    /// Returns the machine that the environment variable [`MACHINE_VARIABLE`] names: that of a family, or that of a file of
    /// constants as `decompose tune` writes it; `None` where the variable is not set.
    ///
    /// # Errors
    ///
    /// What it says, if that is neither a family nor a file of constants.
    pub fn of_environment() -> Result<Option<Machine>, String> {
        let Some(word) = std::env::var_os(MACHINE_VARIABLE).filter(|word| !word.is_empty()) else {
            return Ok(None);
        };
        let word = word.to_string_lossy();
        if let Some(family) = Family::named(&word) {
            return Ok(Some(family.machine()));
        }
        if !word.ends_with(".toml") {
            let names = FAMILIES.map(|(_, name, _)| name).join(", ");
            return Err(format!(
                "{MACHINE_VARIABLE}={word} names no family; there are {names}, and files of constants (.toml)"
            ));
        }
        let place = format!("{MACHINE_VARIABLE}={word}");
        let text = std::fs::read_to_string(&*word).map_err(|error| format!("{place}: {error}"))?;
        let constants: Machine =
            toml::from_str(&text).map_err(|error| format!("{place}: {}", error.message()))?;
        constants.check().map_err(|why| format!("{place}: {why}"))?;
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        let family = detect::family();
        Ok(Some(Machine { name: word.into_owned(), family, threads, ..constants }))
    }

    /// Returns the constants as a file that [`MACHINE_VARIABLE`] may name, without comments.
    ///
    /// # Panics
    ///
    /// Never: numbers can be written.
    pub fn constants(&self) -> String {
        let text = toml::to_string(self).expect("numbers can be written");
        let short = |line: &str| match line.split_once(" = ") {
            Some((name, number)) if number.contains('.') => number
                .parse::<f64>()
                .map_or(line.to_owned(), |number| format!("{name} = {number:e}")),
            _ => line.to_owned(),
        };
        text.lines().map(|line| short(line) + "\n").collect()
    }

    /// Checks that all constants are finite and none is negative.
    fn check(&self) -> Result<(), String> {
        let values = toml::Table::try_from(self).map_err(|error| error.to_string())?;
        let nested = values.values().filter_map(toml::Value::as_table).flatten();
        let bad = nested.chain(&values).find(|(_, value)| {
            value.as_float().is_some_and(|number| !(number.is_finite() && number >= 0.0))
        });
        bad.map_or(Ok(()), |(name, value)| {
            Err(format!("`{name}` is {value}; it must be 0 or more"))
        })
    }

    /// Returns this machine, described once a process: its processor's name and cache sizes, the times
    /// of its [`Family`]; or the machine that [`MACHINE_VARIABLE`] names.
    pub fn here() -> &'static Machine {
        static HERE: OnceLock<Machine> = OnceLock::new();
        HERE.get_or_init(detect::machine)
    }

    /// Returns the bytes of the last-level cache of the processor that this runs on, whatever family schedules are judged
    /// for.
    pub fn last_level_bytes() -> u64 {
        detect::cache_sizes().map_or(Machine::here().l3_bytes, |(_, _, last)| last)
    }
}
