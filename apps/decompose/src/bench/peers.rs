//! Recorded results of other programs.

use std::path::Path;

use crate::bench::record::WorkKey;
use crate::bench::summary::median;
use crate::failure::Failure;

/// The columns that a file must have; of work without a rank there may be none.
const COLUMNS: [&str; 5] = ["program", "tensor", "threads", "quantity", "value"];

/// One result of another program.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Peer {
    pub(crate) program: String,
    pub(crate) tensor: String,
    pub(crate) rank: Option<usize>,
    pub(crate) threads: usize,
    pub(crate) quantity: String,
    /// Seconds: of one run, or the median of several.
    pub(crate) value: f64,
    /// The fewest seconds of several runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) lowest: Option<f64>,
    /// The most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) highest: Option<f64>,
    /// The fit of the model, where one is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) fit: Option<f64>,
}

/// The results of one program for the same work, in all rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Spread {
    /// The median of the values, in seconds.
    pub(crate) median: f64,
    pub(crate) lowest: f64,
    pub(crate) highest: f64,
}

/// Returns what `program` took for the same work as `key`; `None` where no row says it.
pub(crate) fn spread(peers: &[Peer], program: &str, key: &WorkKey) -> Option<Spread> {
    let rows = || peers.iter().filter(|peer| peer.program == program && peer.is_of(key));
    let mut values: Vec<f64> = rows().map(|peer| peer.value).collect();
    values.sort_by(f64::total_cmp);
    let (&first, &last) = (values.first()?, values.last()?);
    let lowest = rows().filter_map(|peer| peer.lowest).fold(first, f64::min);
    let highest = rows().filter_map(|peer| peer.highest).fold(last, f64::max);
    Some(Spread { median: median(&values), lowest, highest })
}

/// Returns the programs, in the order of the rows.
pub(crate) fn programs<'a>(peers: impl IntoIterator<Item = &'a Peer>) -> Vec<&'a str> {
    let mut programs = Vec::new();
    for peer in peers {
        if !programs.contains(&peer.program.as_str()) {
            programs.push(peer.program.as_str());
        }
    }
    programs
}

impl Peer {
    /// Returns the key of its work, as `program` would have it.
    pub(crate) fn key(&self, program: &str) -> WorkKey {
        let Peer { tensor, rank, threads, quantity, .. } = self.clone();
        WorkKey { program: program.to_owned(), tensor, rank, threads, quantity }
    }

    /// Tells whether it is a result for the same work as `key`.
    pub(crate) fn is_of(&self, key: &WorkKey) -> bool {
        self.tensor == key.tensor
            && self.rank == key.rank
            && self.threads == key.threads
            && self.quantity == key.quantity
    }
}

/// Reads a list of results.
///
/// # Errors
///
/// A file that cannot be read, a missing column, a value that is no time.
pub(crate) fn read(path: &Path) -> Result<Vec<Peer>, Failure> {
    let help = "list recorded results with the columns program,tensor,rank,threads,quantity,value; \
                values are seconds; lowest, highest and fit may follow";
    let fail = |why: String| Failure::input(format!("{}: {why}", path.display())).help(help);
    let mut reader = csv::Reader::from_path(path).map_err(|error| fail(error.to_string()))?;
    let heads = reader.headers().map_err(|error| fail(error.to_string()))?;
    if let Some(missing) = COLUMNS.iter().find(|name| !heads.iter().any(|head| head == **name)) {
        let found = heads.iter().collect::<Vec<_>>().join(",");
        return Err(fail(format!("there is no column `{missing}`; the first line is `{found}`")));
    }
    let mut peers = Vec::new();
    for row in reader.deserialize::<Peer>() {
        let line = peers.len() + 2;
        let peer = row.map_err(|error| fail(format!("line {line}: {}", told(&error))))?;
        for value in [Some(peer.value), peer.lowest, peer.highest].into_iter().flatten() {
            if !(value > 0.0 && value.is_finite()) {
                return Err(fail(format!("line {line}: {value} is no number of seconds")));
            }
        }
        let (lowest, highest) =
            (peer.lowest.unwrap_or(peer.value), peer.highest.unwrap_or(peer.value));
        if !(lowest..=highest).contains(&peer.value) {
            let value = peer.value;
            let why = format!("line {line}: {value} is not between {lowest} and {highest}");
            return Err(fail(why));
        }
        peers.push(peer);
    }
    Ok(peers)
}

/// Says what is wrong with a row.
fn told(error: &csv::Error) -> String {
    match error.kind() {
        csv::ErrorKind::Deserialize { err, .. } => match err.field() {
            Some(field) => format!("value {}: {}", field + 1, err.kind()),
            None => err.kind().to_string(),
        },
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{len} values, but the first line has {expected_len}")
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::{Peer, Spread, programs, spread};
    use crate::bench::record::WorkKey;

    #[test]
    fn rows_of_the_same_work_are_one_result() {
        let row = |program: &str, rank, value, lowest, highest| Peer {
            program: program.into(),
            tensor: "x".into(),
            rank: Some(rank),
            threads: 2,
            quantity: "iteration".into(),
            value,
            lowest,
            highest,
            fit: None,
        };
        let peers = [
            row("a", 8, 3.0, None, None),
            row("b", 8, 5.0, Some(4.0), Some(9.0)),
            row("a", 8, 2.0, None, None),
            row("a", 16, 7.0, None, None),
            row("a", 8, 4.0, Some(1.5), None),
        ];
        assert_eq!(programs(&peers), ["a", "b"]);
        let (program, tensor, quantity) =
            ("own".to_owned(), "x".to_owned(), "iteration".to_owned());
        let key = WorkKey { program, tensor, rank: Some(8), threads: 2, quantity };
        let wanted = |median, lowest, highest| Some(Spread { median, lowest, highest });
        assert_eq!(spread(&peers, "a", &key), wanted(3.0, 1.5, 4.0));
        assert_eq!(spread(&peers, "b", &key), wanted(5.0, 4.0, 9.0));
        assert_eq!(spread(&peers, "a", &WorkKey { threads: 1, ..key }), None);
    }
}
