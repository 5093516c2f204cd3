//! Results of other programs, beside those of the runs.

use crate::bench::peers::Peer;
use crate::experiment::report::configs::Quartiles;

/// What a peer's seconds may be of.
pub(crate) const ITERATION: &str = "iteration";
pub(crate) const SOLVE: &str = "solve";

/// All results of one program for the same work.
pub(crate) struct PeerConfig<'a> {
    pub(crate) program: &'a str,
    pub(crate) tensor: &'a str,
    pub(crate) rank: Option<usize>,
    pub(crate) threads: usize,
    /// Rows of the file.
    pub(crate) rows: usize,
    pub(crate) iteration: Option<Quartiles>,
    pub(crate) solve: Option<Quartiles>,
    pub(crate) fit: Option<Quartiles>,
}

/// Gathers rows, in the order of the file.
pub(crate) fn configs(peers: &[Peer]) -> Vec<PeerConfig<'_>> {
    let work = |peer: &Peer| (peer.program.clone(), peer.tensor.clone(), peer.rank, peer.threads);
    let mut groups: Vec<Vec<&Peer>> = Vec::new();
    for peer in peers {
        match groups.iter_mut().find(|group| work(group[0]) == work(peer)) {
            Some(group) => group.push(peer),
            None => groups.push(vec![peer]),
        }
    }
    let config = |rows: &Vec<&'_ Peer>| {
        let of = |quantity: &str| seconds(rows.iter().filter(|row| row.quantity == quantity));
        let (iteration, solve) = (of(ITERATION), of(SOLVE));
        let fit = Quartiles::of(rows.iter().filter_map(|row| row.fit));
        (iteration, solve, fit)
    };
    groups
        .iter()
        .map(|rows| {
            let (iteration, solve, fit) = config(rows);
            let Peer { program, tensor, rank, threads, .. } = rows[0];
            let (rank, threads) = (*rank, *threads);
            PeerConfig { program, tensor, rank, threads, rows: rows.len(), iteration, solve, fit }
        })
        .collect()
}

/// Returns the spread of seconds: of one row its extremes, of several their quartiles.
fn seconds<'p>(rows: impl Iterator<Item = &'p &'p Peer>) -> Option<Quartiles> {
    let rows: Vec<&Peer> = rows.copied().collect();
    match rows.as_slice() {
        [row] => {
            let (low, high) = (row.lowest.unwrap_or(row.value), row.highest.unwrap_or(row.value));
            Some(Quartiles { low, median: row.value, high })
        }
        rows => Quartiles::of(rows.iter().map(|row| row.value)),
    }
}

#[cfg(test)]
mod tests {
    use super::configs;
    use crate::bench::peers::Peer;
    use crate::experiment::report::configs::Quartiles;

    #[test]
    fn rows_of_the_same_work_are_one_configuration() {
        let row = |program: &str, quantity: &str, value, highest, fit| Peer {
            program: program.into(),
            tensor: "x".into(),
            rank: Some(8),
            threads: 2,
            quantity: quantity.into(),
            value,
            lowest: None,
            highest,
            fit,
        };
        let peers = [
            row("a", "iteration", 3.0, None, Some(0.5)),
            row("b", "iteration", 5.0, Some(9.0), None),
            row("a", "iteration", 2.0, None, Some(0.5)),
            row("a", "solve", 7.0, None, None),
        ];
        let found = configs(&peers);
        assert_eq!(
            found.iter().map(|of| (of.program, of.rows)).collect::<Vec<_>>(),
            [("a", 3), ("b", 1)]
        );
        let of = |low, median, high| Some(Quartiles { low, median, high });
        assert_eq!((found[0].iteration, found[0].solve), (of(2.25, 2.5, 2.75), of(7.0, 7.0, 7.0)));
        assert_eq!((found[0].fit, found[1].iteration), (of(0.5, 0.5, 0.5), of(5.0, 5.0, 9.0)));
        assert_eq!((found[1].solve, found[1].fit), (None, None));
    }
}
