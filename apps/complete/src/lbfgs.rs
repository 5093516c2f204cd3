//! Limited-memory BFGS, on squares where parameters must not be negative.
//!
//! The direction is the two-loop recursion over the last ten steps (Nocedal, Wright, "Numerical
//! Optimization", 2nd ed., algorithm 7.4); the step meets the weak Wolfe conditions, found by bisection
//! (Lewis, Overton, Math. Program. 141, 2013).  An epoch is one step: one evaluation of objective and
//! gradient, seldom more.
//!
//! A parameter that must not be negative is the square of a free one, `theta = phi^2`, with the slope
//! `2 phi df/dtheta`.  Steps projected onto the bound instead put whole rows to zero, where the slope
//! of the poisson loss is `x / 1e-10`: on counts that differ by orders of magnitude they then become
//! tiny, far from any minimum.  A square that is zero has no slope, so fits begin a little above.

use std::collections::VecDeque;
use std::io;

use decompose_common::SolverError;
use decompose_common::checkpoint::fixed;
use decompose_common::npz::{NpzIn, NpzOut};
use decompose_formats::Matrix;

use crate::loss::Range;
use crate::mean::root_mean_square;
use crate::method::{Method, Progress};
use crate::objective::Objective;

/// Steps that are remembered.
const MEMORY: usize = 10;
/// The share of the predicted decrease that is asked for.
const ARMIJO: f64 = 1e-4;
/// The share of the slope that must be gone.
const WOLFE: f64 = 0.9;
/// The most trials for a step.
const TRIALS: usize = 40;
/// The least start of a parameter that must not be negative, as a share of their root mean square.
const ABOVE_ZERO: f64 = 1e-6;

/// The state of the method.
pub(crate) struct Lbfgs {
    gradient: Vec<Matrix<f64>>,
    /// Steps and the changes of the gradient on them, with `1 / (s . y)`; the oldest first.
    pairs: VecDeque<(Vec<f64>, Vec<f64>, f64)>,
    /// The point and the gradient at it, if known.
    here: Option<EvaluatedPoint>,
    range: Range,
}

/// A point - parameters, or their roots where they must not be negative - with objective and
/// gradient.
struct EvaluatedPoint {
    point: Vec<f64>,
    gradient: Vec<f64>,
    value: f64,
}

impl Lbfgs {
    /// Makes room.
    ///
    /// # Errors
    ///
    /// If there is no memory.
    pub(crate) fn new(objective: &Objective, range: Range) -> Result<Lbfgs, SolverError> {
        let blocks = objective.network().blocks().iter().map(|block| block.matrix());
        let gradient = blocks.map(|(rows, cols)| Matrix::zeros(rows, cols));
        let gradient = gradient.collect::<Result<_, _>>()?;
        Ok(Lbfgs { gradient, pairs: VecDeque::new(), here: None, range })
    }

    fn evaluate(
        &mut self,
        objective: &mut Objective,
        blocks: &mut [Matrix<f64>],
        point: Vec<f64>,
    ) -> Result<EvaluatedPoint, SolverError> {
        self.place(&point, blocks);
        let value = objective.gradient(blocks, &mut self.gradient)?;
        let mut gradient = gather(&self.gradient);
        if self.range == Range::NonNegative {
            gradient.iter_mut().zip(&point).for_each(|(slope, root)| *slope *= 2.0 * root);
        }
        Ok(EvaluatedPoint { point, gradient, value })
    }

    /// Sets the parameters to those of `point`.
    fn place(&self, point: &[f64], blocks: &mut [Matrix<f64>]) {
        match self.range {
            Range::All => scatter(point.iter().copied(), blocks),
            Range::NonNegative => scatter(point.iter().map(|root| root * root), blocks),
        }
    }

    /// Returns the point of parameters.
    fn point(&self, blocks: &[Matrix<f64>]) -> Vec<f64> {
        let mut point = gather(blocks);
        if self.range == Range::NonNegative {
            let least = ABOVE_ZERO * root_mean_square(&point);
            point.iter_mut().for_each(|value| *value = value.max(least).sqrt());
        }
        point
    }

    /// The quasi-Newton direction, or steepest descent where that does not lead down.
    fn direction(&mut self, place: &EvaluatedPoint) -> Vec<f64> {
        let steepest: Vec<f64> = place.gradient.iter().map(|slope| -slope).collect();
        let mut q = steepest.clone();
        let mut shares = Vec::with_capacity(self.pairs.len());
        for (s, y, rho) in self.pairs.iter().rev() {
            let share = rho * dot(s, &q);
            add(&mut q, -share, y);
            shares.push(share);
        }
        if let Some((_, y, rho)) = self.pairs.back() {
            let scale = 1.0 / (rho * dot(y, y));
            q.iter_mut().for_each(|q| *q *= scale);
        }
        for ((s, y, rho), share) in self.pairs.iter().zip(shares.iter().rev()) {
            let back = rho * dot(y, &q);
            add(&mut q, share - back, s);
        }
        let slope = dot(&q, &place.gradient);
        let steep = dot(&steepest, &steepest).sqrt() * dot(&q, &q).sqrt();
        if slope < -1e-12 * steep && slope.is_finite() {
            return q;
        }
        self.pairs.clear();
        steepest
    }

    /// Finds a step along `direction`; `None` if there is none that leads down.
    fn search(
        &mut self,
        objective: &mut Objective,
        blocks: &mut [Matrix<f64>],
        place: &EvaluatedPoint,
        direction: &[f64],
    ) -> Result<Option<EvaluatedPoint>, SolverError> {
        let slope = dot(direction, &place.gradient);
        if slope >= 0.0 {
            return Ok(None);
        }
        let (mut low, mut high) = (0.0, f64::INFINITY);
        let mut step = if self.pairs.is_empty() { first_step(place, direction) } else { 1.0 };
        let mut fallback = None;
        for _ in 0..TRIALS {
            let mut point = place.point.clone();
            add(&mut point, step, direction);
            let trial = self.evaluate(objective, blocks, point)?;
            let good = trial.value <= place.value + ARMIJO * step * slope;
            if !(good && trial.value.is_finite()) {
                high = step;
            } else if dot(direction, &trial.gradient) >= WOLFE * slope {
                return Ok(Some(trial));
            } else {
                low = step;
                fallback = Some(trial);
            }
            step = if high.is_finite() { 0.5 * (low + high) } else { 2.0 * low };
        }
        Ok(fallback)
    }
}

impl Method for Lbfgs {
    fn epoch(
        &mut self,
        objective: &mut Objective,
        blocks: &mut Vec<Matrix<f64>>,
        _: f64,
    ) -> Result<Progress, SolverError> {
        let place = match self.here.take() {
            Some(place) => place,
            None => {
                let point = self.point(blocks);
                self.evaluate(objective, blocks, point)?
            }
        };
        loop {
            let direction = self.direction(&place);
            if let Some(next) = self.search(objective, blocks, &place, &direction)? {
                self.remember(&place, &next);
                self.place(&next.point, blocks);
                self.here = Some(next);
                return Ok(Progress::Moved);
            }
            if self.pairs.is_empty() {
                self.place(&place.point, blocks);
                self.here = Some(place);
                return Ok(Progress::Stationary);
            }
            self.pairs.clear();
        }
    }

    fn forget(&mut self) {
        self.pairs.clear();
        self.here = None;
    }

    fn save(&self, out: &mut NpzOut<'_>) -> io::Result<()> {
        let inverses: Vec<f64> = self.pairs.iter().map(|(_, _, rho)| *rho).collect();
        out.numbers("inverses", &inverses)?;
        for ((step, change, _), at) in self.pairs.iter().zip(1..) {
            out.numbers(&format!("step_{at}"), step)?;
            out.numbers(&format!("change_{at}"), change)?;
        }
        let Some(EvaluatedPoint { point, gradient, value }) = &self.here else { return Ok(()) };
        out.numbers("point", point)?;
        out.numbers("gradient", gradient)?;
        out.numbers("value", &[*value])
    }

    fn load(&mut self, archive: &mut NpzIn) -> Result<(), SolverError> {
        let inverses: Vec<f64> = archive.numbers("inverses")?;
        self.pairs.clear();
        for (rho, at) in inverses.into_iter().zip(1..) {
            let step = archive.numbers(&format!("step_{at}"))?;
            self.pairs.push_back((step, archive.numbers(&format!("change_{at}"))?, rho));
        }
        self.here = match archive.has("point") {
            true => {
                let [value] = fixed::<f64, 1>(archive, "value")?;
                let (point, gradient) = (archive.numbers("point")?, archive.numbers("gradient")?);
                Some(EvaluatedPoint { point, gradient, value })
            }
            false => None,
        };
        Ok(())
    }
}

impl Lbfgs {
    fn remember(&mut self, before: &EvaluatedPoint, after: &EvaluatedPoint) {
        let minus =
            |a: &[f64], b: &[f64]| -> Vec<f64> { a.iter().zip(b).map(|(a, b)| a - b).collect() };
        let s = minus(&after.point, &before.point);
        let y = minus(&after.gradient, &before.gradient);
        let curvature = dot(&s, &y);
        if curvature > 1e-14 * dot(&s, &s).sqrt() * dot(&y, &y).sqrt() {
            if self.pairs.len() == MEMORY {
                self.pairs.pop_front();
            }
            self.pairs.push_back((s, y, 1.0 / curvature));
        }
    }
}

/// A first step that moves the point by a hundredth of its length.
fn first_step(place: &EvaluatedPoint, direction: &[f64]) -> f64 {
    let size = dot(&place.point, &place.point).sqrt().max(1e-3);
    0.01 * size / dot(direction, direction).sqrt()
}

/// All elements of all blocks in a row, without padding.
fn gather(blocks: &[Matrix<f64>]) -> Vec<f64> {
    let rows = blocks.iter().flat_map(|block| (0..block.rows()).map(|row| block.row(row)));
    rows.flatten().copied().collect()
}

fn scatter(mut elements: impl Iterator<Item = f64>, blocks: &mut [Matrix<f64>]) {
    for block in blocks {
        for row in 0..block.rows() {
            let row = block.row_mut(row).iter_mut();
            row.zip(elements.by_ref()).for_each(|(to, from)| *to = from);
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn add(to: &mut [f64], factor: f64, from: &[f64]) {
    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from);
}
