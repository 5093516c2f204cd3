//! Recorded results of other programs.

use std::path::Path;

use crate::bench::record::Key;
use crate::failure::Failure;

/// One result of another program.
#[derive(Clone, Debug, PartialEq, serde::Deserialize, serde::Serialize)]
pub(crate) struct Peer {
    pub(crate) program: String,
    pub(crate) tensor: String,
    pub(crate) rank: Option<usize>,
    pub(crate) threads: usize,
    pub(crate) quantity: String,
    /// Seconds.
    pub(crate) value: f64,
}

impl Peer {
    /// Tells whether it is a result for the same work as `key`.
    pub(crate) fn is_of(&self, key: &Key) -> bool {
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
                values are seconds";
    let fail = |why: String| Failure::input(format!("{}: {why}", path.display())).help(help);
    let mut reader = csv::Reader::from_path(path).map_err(|error| fail(error.to_string()))?;
    let mut peers = Vec::new();
    for row in reader.deserialize::<Peer>() {
        let peer = row.map_err(|error| fail(error.to_string()))?;
        if !(peer.value > 0.0 && peer.value.is_finite()) {
            let (line, value) = (peers.len() + 2, peer.value);
            return Err(fail(format!("line {line}: {value} is no number of seconds")));
        }
        peers.push(peer);
    }
    Ok(peers)
}
