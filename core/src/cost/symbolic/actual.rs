//! Whether the sizes of a problem keep what a user says of sizes in general.

use crate::cost::symbolic::domain::{index, operand};
use crate::cost::symbolic::range::{Assumption, Factors, Range, Relation, Size};
use crate::cost::symbolic::symbols::Symbols;
use crate::schedule::Problem;

/// Relative to a size: more than shares are rounded.
const ROUNDED: f64 = 1e-9;

impl Symbols {
    /// Returns the size of `problem` that leaves `range`; `None` if it stays inside.
    ///
    /// # Errors
    ///
    /// A size that the problem lacks.
    pub fn outside(&self, range: &Range, problem: &Problem) -> Result<Option<f64>, String> {
        let size = self.actual(&range.size, problem)?;
        let inside = range.low * (1.0 - ROUNDED) <= size && size <= range.high * (1.0 + ROUNDED);
        Ok((!inside).then_some(size))
    }

    /// Returns the sides of `assumption` for the sizes of `problem` if they break it.
    ///
    /// # Errors
    ///
    /// A size that the problem lacks.
    pub fn broken(
        &self,
        assumption: &Assumption,
        problem: &Problem,
    ) -> Result<Option<(f64, f64)>, String> {
        let side = |factors: &[Factors]| -> Result<f64, String> {
            factors.iter().try_fold(0.0, |sum, one| {
                let product = one.sizes.iter().try_fold(one.count, |product, size| {
                    Ok::<f64, String>(product * self.actual(size, problem)?)
                });
                Ok(sum + product?)
            })
        };
        let (left, right) = (side(&assumption.left)?, side(&assumption.right)?);
        let room = left.abs().max(right.abs()) * ROUNDED;
        let holds = match assumption.relation {
            Relation::Below => left < right,
            Relation::Above => left > right,
            Relation::AtMost => left <= right + room,
            Relation::AtLeast => left >= right - room,
            Relation::Equal => (left - right).abs() <= room,
        };
        Ok((!holds).then_some((left, right)))
    }

    fn actual(&self, size: &Size, problem: &Problem) -> Result<f64, String> {
        if let Size::Extent(name) = size {
            return Ok(problem.extents.of(index(self, name)?) as f64);
        }
        let x = &problem.sparse[operand(self, size.operand())?];
        let levels = x.levels().iter().copied().collect();
        let nonzeros = x.pattern.count(levels, &problem.extents) as f64;
        let cells = levels.iter().map(|index| problem.extents.of(index) as f64).product::<f64>();
        Ok(if matches!(size, Size::Sparsity(_)) { nonzeros / cells } else { nonzeros })
    }
}
