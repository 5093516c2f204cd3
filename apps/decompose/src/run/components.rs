//! The figure of components, of any model.

use std::ops::Range;

use decompose_common::model::{CpModel, Model, TuckerModel};
use decompose_common::{CommonError, SolverError, memory};
use decompose_formats::Value;
use decompose_plot::{
    ComponentChoice, ComponentFactor, Components, ModeLook, PlotError, alive_components,
};
use decompose_tt::Train;
use ndarray::{Array2, ArrayView2};

use crate::failure::Failure;
use crate::labels::ModeLabels;

/// Multiply-adds that a run spends on the vectors of a train at most: some seconds.
const MOST_WORK: f64 = 2e10;

/// The modes of a tensor as figures show them.
pub(crate) struct Modes<'a> {
    labels: &'a [ModeLabels],
    looks: Vec<ModeLook>,
}

impl<'a> Modes<'a> {
    /// Returns the modes with these labels, which tell what has an order.
    pub(crate) fn new(labels: &'a [ModeLabels]) -> Modes<'a> {
        Modes { labels, looks: labels.iter().map(ModeLabels::look).collect() }
    }

    /// Draws modes, counted from 0, in another way.
    pub(crate) fn force(&mut self, modes: &[usize], look: ModeLook) -> Result<(), Failure> {
        for &mode in modes {
            let order = self.looks.len();
            let there = self.looks.get_mut(mode);
            let why =
                || Failure::input(format!("there is no mode {}: the model has {order}", mode + 1));
            *there.ok_or_else(why)? = look;
        }
        Ok(())
    }

    /// Calls `make` with the factors as figures take them.
    fn with<V, R>(
        &self,
        factors: Vec<ArrayView2<'_, V>>,
        make: impl FnOnce(&[ComponentFactor<'_, V>]) -> R,
    ) -> R {
        let lookups: Vec<_> = self
            .labels
            .iter()
            .map(|mode| |index: usize| mode.at(index).unwrap_or_default().to_owned())
            .collect();
        let modes = factors.into_iter().zip(self.labels).zip(&lookups).zip(&self.looks);
        let factors: Vec<ComponentFactor<'_, V>> = modes
            .map(|(((factor, mode), lookup), &look)| ComponentFactor {
                name: &mode.name,
                factor,
                labels: (!mode.indices.is_empty()).then_some(lookup as &dyn Fn(usize) -> String),
                look,
            })
            .collect();
        make(&factors)
    }
}

/// Returns the components of a CP model.
///
/// # Errors
///
/// If none has a weight.
pub(crate) fn of_cp<V: Value + Into<f64>>(
    model: &CpModel<V>,
    modes: &Modes<'_>,
    title: &str,
    choice: &ComponentChoice,
) -> Result<Components, PlotError> {
    let factors = model.factors().iter().map(|factor| factor.view()).collect();
    modes.with(factors, |factors| Components::from_factors(title, model.weights(), factors, choice))
}

/// Returns the columns of a Tucker model's factors.
///
/// # Errors
///
/// If there are none at these places.
pub(crate) fn of_tucker<V: Value + Into<f64>>(
    model: &TuckerModel<V>,
    modes: &Modes<'_>,
    title: &str,
    places: Range<usize>,
) -> Result<Components, PlotError> {
    let factors = model.factors().iter().map(|factor| factor.view()).collect();
    let what = "columns of the factors, which the core joins";
    modes.with(factors, |factors| Components::from_columns(title, what, factors, places))
}

/// The leading singular vectors of a train in every mode of the tensor.
#[derive(Default)]
pub(crate) struct TrainVectors(Vec<Array2<f64>>);

impl TrainVectors {
    /// Computes `most` a mode of a train whose cores belong to the modes `order`.
    ///
    /// # Errors
    ///
    /// If a core holds an infinite or undefined number.
    pub(crate) fn of(
        train: &Train,
        order: &[usize],
        most: usize,
    ) -> Result<TrainVectors, CommonError> {
        let found = train.mode_vectors(most)?;
        let mut vectors = vec![Array2::zeros((0, 0)); found.len()];
        for (found, &mode) in found.into_iter().zip(order) {
            vectors[mode] = found;
        }
        Ok(TrainVectors(vectors))
    }

    /// Foresees the memory of `most` vectors a mode, beside `others` bytes that are taken meanwhile.
    ///
    /// # Errors
    ///
    /// The numbers, if it does not fit.
    pub(crate) fn foresee(train: &Train, most: usize, others: u64) -> Result<(), SolverError> {
        let bytes = train.mode_vectors_bytes(most).saturating_add(others);
        let what = || "the figure of the train's vectors".into();
        memory::foresee(bytes, what, "run decompose plot on the model where there is more")
    }

    /// Returns whether a run takes the time to compute `most` vectors a mode.
    pub(crate) fn are_quick(train: &Train, most: usize) -> bool {
        train.mode_vectors_work(most) <= MOST_WORK
    }

    /// Returns the figure of those at `places`.
    ///
    /// # Errors
    ///
    /// If there are none.
    pub(crate) fn figure(
        &self,
        modes: &Modes<'_>,
        title: &str,
        places: Range<usize>,
    ) -> Result<Components, PlotError> {
        let factors = self.0.iter().map(|vectors| vectors.view()).collect();
        let what = "leading singular vectors of the train in each mode";
        modes.with(factors, |factors| Components::from_columns(title, what, factors, places))
    }
}

/// Returns how many components a model has to show.
pub(crate) fn count(model: &Model<f64>) -> usize {
    match model {
        Model::Cp(cp) => alive_components(cp.weights()).len(),
        Model::Tucker(tucker) => tucker.ranks().into_iter().max().unwrap_or(0),
        Model::Tt(train) => {
            let vectors = |core: &ndarray::Array3<f64>| {
                let (left, extent, right) = core.dim();
                extent.min(left * right)
            };
            train.cores().iter().map(vectors).max().unwrap_or(0)
        }
    }
}
