//! Models whose numbers are numbers.

use decompose_formats::{Matrix, Value};
use ndarray::{ArrayViewD, Dimension};

use crate::model::Model;

impl<V: Value> Model<V> {
    /// Says where the first number is that is infinite or no number, and which; `None` if all are
    /// finite.
    pub(super) fn first_not_finite(&self) -> Option<String> {
        match self {
            Model::Cp(model) => in_weights(model.weights()).or_else(|| in_factors(model.factors())),
            Model::Tucker(model) => {
                in_array("core", &model.core().view()).or_else(|| in_factors(model.factors()))
            }
            Model::Tt(model) => model
                .cores()
                .iter()
                .zip(1..)
                .find_map(|(core, k)| in_array(&format!("core_{k}"), &core.view().into_dyn())),
        }
    }
}

fn in_weights(weights: &[f64]) -> Option<String> {
    let at = weights.iter().position(|weight| !weight.is_finite())?;
    Some(format!("array `weights`, component {}, is {}", at + 1, weights[at]))
}

fn in_factors<V: Value>(factors: &[Matrix<V>]) -> Option<String> {
    let of_factor = |(factor, mode): (&Matrix<V>, usize)| {
        (0..factor.rows()).find_map(|row| {
            let numbers = factor.row(row);
            let column = numbers.iter().position(|number| !number.to_f64().is_finite())?;
            let (number, row, column) = (numbers[column], row + 1, column + 1);
            Some(format!("array `factor_{mode}`, row {row}, column {column}, is {number}"))
        })
    };
    factors.iter().zip(1..).find_map(of_factor)
}

fn in_array<V: Value>(name: &str, array: &ArrayViewD<'_, V>) -> Option<String> {
    let (at, number) = array.indexed_iter().find(|(_, number)| !number.to_f64().is_finite())?;
    let at: Vec<String> = at.slice().iter().map(|index| (index + 1).to_string()).collect();
    Some(format!("array `{name}`, index {}, is {number}", at.join(" ")))
}
