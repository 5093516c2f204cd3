//! Which rank to take, and why.
//!
//! By error alone it is the smallest rank with 99% of what the best rank gains over the mean of all
//! entries: beyond it a model grows and its predictions hardly do.  Components, though, mean something
//! only where starts that reach the least error find the same ones.  Ranks at which they differ - a mean
//! factor match score below [`STABLE`] - are left out.  Where one start alone reached it, all starts are
//! compared: what others do not find again is no finding.  A single start tells nothing of it and stays.  The bound is
//! that of Lorenzo-Seva and ten Berge (Methodology 2, 2006) above which two components are fairly similar.

use crate::metrics::six_digits;
use crate::rank::{RankRow, nearly};

/// The mean factor match score from which starts agree.
pub const STABLE: f64 = 0.85;

/// A rank and the reason, in one or two lines.  Rank 0 stands for none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recommendation {
    /// The rank.
    pub rank: usize,
    /// The rank whose predictions are good enough, whatever its components are.
    pub for_prediction: usize,
    /// Why.
    pub why: Vec<String>,
}

impl Recommendation {
    /// Says that the entries, which have one value, tell no rank from another.
    pub fn none() -> Recommendation {
        let why = "none: every entry has the same value, and no rank can be told from another";
        Recommendation { rank: 0, for_prediction: 0, why: vec![why.into()] }
    }
}

/// Chooses among the ranks of a scan, ascending.
pub fn recommend(rows: &[RankRow]) -> Recommendation {
    let by_error = smallest(rows.iter());
    let sound = |row: &&RankRow| found_again(row).is_none_or(|score| score >= STABLE);
    let chosen = smallest(rows.iter().filter(sound)).or(by_error);
    let (Some(chosen), Some(by_error)) = (chosen, by_error) else {
        return Recommendation { rank: 0, for_prediction: 0, why: Vec::new() };
    };
    let mut why = vec![format!("{}; {}", gain(chosen, by_error), agreement(chosen))];
    if chosen.rank != by_error.rank {
        why.push(format!(
            "for predictions alone {}: its error is {}, at {} it is {}; {}",
            by_error.rank,
            six_digits(by_error.deciding()),
            chosen.rank,
            six_digits(chosen.deciding()),
            agreement(by_error),
        ));
    }
    Recommendation { rank: chosen.rank, for_prediction: by_error.rank, why }
}

/// Returns the smallest rank that gains 99% of what the best one gains.
fn smallest<'a>(rows: impl Iterator<Item = &'a RankRow> + Clone) -> Option<&'a RankRow> {
    let best = rows.clone().min_by(|a, b| a.deciding().total_cmp(&b.deciding()))?;
    let bound = nearly(best.deciding(), best.mean_of_all);
    rows.into_iter().find(|row| row.deciding() <= bound)
}

fn gain(chosen: &RankRow, by_error: &RankRow) -> &'static str {
    match chosen.rank == by_error.rank {
        true => "the smallest with 99% of what the best rank gains over the mean of all entries",
        false => "the smallest with 99% of what ranks gain at which starts agree",
    }
}

/// The match of the starts that reached the least error or, where one alone did, of all; none for one start.
fn found_again(row: &RankRow) -> Option<f64> {
    row.agreement.or(row.matched)
}

fn agreement(row: &RankRow) -> String {
    let RankRow { reached, rank, .. } = row;
    if let (None, Some(score)) = (row.agreement, row.matched) {
        let which = if score >= STABLE { "agree" } else { "differ" };
        return format!(
            "starts at {rank} {which} (match {score:.2} of all; one reached its error)"
        );
    }
    match row.agreement {
        Some(score) if score >= STABLE => {
            format!("its starts agree (match {score:.2} of the {reached} with the least error)")
        }
        Some(score) => {
            format!(
                "starts at {rank} differ (match {score:.2} of the {reached} with the least error)"
            )
        }
        None => "one start was made: five restarts tell whether others find the same".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::recommend;
    use crate::rank::RankRow;

    fn row(rank: usize, val: f64, agreement: Option<f64>) -> RankRow {
        RankRow {
            rank,
            train: 0.0,
            val: Some(val),
            test: None,
            worst: val,
            mean_of_all: 11.0,
            fit: 0.0,
            matched: agreement,
            reached: if agreement.is_some() { 3 } else { 1 },
            agreement,
            seconds: 0.0,
        }
    }

    fn rank(rows: &[RankRow]) -> usize {
        recommend(rows).rank
    }

    #[test]
    fn the_simplest_of_nearly_equals_is_recommended() {
        let row = |rank, val| row(rank, val, None);
        assert_eq!(rank(&[row(1, 2.0), row(2, 1.05), row(3, 1.0), row(4, 1.3)]), 2);
        assert_eq!(rank(&[row(1, 2.0), row(2, 1.2), row(3, 1.0)]), 3);
        // Where no model is better than the mean, the least error decides.
        assert_eq!(rank(&[row(1, 12.0), row(2, 13.0)]), 1);
        assert_eq!(rank(&[]), 0);
    }

    #[test]
    fn starts_must_agree() {
        let rows = [
            row(1, 6.0, Some(1.0)),
            row(2, 4.0, Some(0.98)),
            row(3, 3.0, Some(0.96)),
            row(4, 2.5, Some(0.6)),
            row(8, 1.0, Some(0.4)),
        ];
        let found = recommend(&rows);
        assert_eq!((found.rank, found.for_prediction), (3, 8));
        assert_eq!(found.why.len(), 2);
        assert!(found.why[0].contains("its starts agree (match 0.96"), "{found:?}");
        assert!(found.why[1].contains("for predictions alone 8"), "{found:?}");
        assert!(found.why[1].contains("starts at 8 differ (match 0.40"), "{found:?}");
        // Nowhere: the error decides, and why says that components differ.
        let found = recommend(&[row(1, 6.0, Some(0.2)), row(2, 1.0, Some(0.3))]);
        assert_eq!((found.rank, found.why.len()), (2, 1));
        assert!(found.why[0].contains("starts at 2 differ"), "{found:?}");
        // One start tells nothing of agreement, and is no reason against a rank.
        let found = recommend(&[row(1, 6.0, Some(1.0)), row(2, 1.0, None)]);
        assert_eq!(found.rank, 2);
        assert!(found.why[0].contains("five restarts"), "{found:?}");
        // One of several is, unless the others found the same components.
        let alone = |score| RankRow { matched: Some(score), ..row(2, 1.0, None) };
        let found = recommend(&[row(1, 6.0, Some(1.0)), alone(0.3)]);
        assert_eq!((found.rank, found.for_prediction), (1, 2));
        assert!(found.why[1].contains("starts at 2 differ (match 0.30 of all"), "{found:?}");
        assert_eq!(recommend(&[row(1, 6.0, Some(1.0)), alone(0.9)]).rank, 2);
    }
}
