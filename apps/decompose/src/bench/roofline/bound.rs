//! The time that work takes at the limits of the machine.

use crate::bench::roofline::limits::{Limits, Place};
use crate::bench::roofline::work::Work;

/// The least seconds of some work.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Bound {
    /// Seconds.
    pub(crate) seconds: f64,
    /// The part of the machine that needs them.
    pub(crate) part: Part,
}

/// A part of the machine that can be the busiest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Part {
    /// Multiplications and additions.
    Arithmetic,
    /// Loads from the first-level cache.
    Loads,
    /// What comes from beyond the first-level caches.
    L2,
    /// What comes from beyond the second-level caches.
    L3,
    /// What comes from memory.
    Memory,
}

impl Part {
    /// Returns its name, as in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Part::Arithmetic => "arithmetic",
            Part::Loads => "loads",
            Part::L2 => "l2",
            Part::L3 => "l3",
            Part::Memory => "memory",
        }
    }
}

impl Bound {
    /// Returns the time of the busiest part; see the [module](crate::bench::roofline).
    pub(crate) fn of(work: &Work, limits: &Limits) -> Bound {
        let near = limits.gathers.iter().map(|gather| gather.bytes_per_second);
        let near = near.fold(limits.stream(), f64::max);
        let memory = limits.gather(Place::Memory);
        let stream = limits.stream().max(memory);
        let far = limits.gather(Place::L3).max(stream);
        let middle = limits.gather(Place::L2).max(far);
        let parts = [
            (Part::Arithmetic, work.flops / limits.flops),
            (Part::Loads, work.near_bytes / near),
            (Part::L2, work.middle_bytes / middle),
            (Part::L3, work.far_bytes / far),
            (Part::Memory, work.streamed_bytes / stream + work.scattered_bytes / memory),
        ];
        // Of equal parts the last.
        let busier =
            |a: (Part, f64), b: (Part, f64)| if b.1.total_cmp(&a.1).is_ge() { b } else { a };
        let [first, others @ ..] = parts;
        let (part, seconds) = others.into_iter().fold(first, busier);
        Bound { seconds, part }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, Part};
    use crate::bench::roofline::limits::{GatherLimit, Limits, Place};
    use crate::bench::roofline::work::Work;

    #[test]
    fn the_busiest_part_decides() {
        let gather =
            |place, bytes_per_second| GatherLimit { place, table_bytes: 1, bytes_per_second };
        let limits = Limits {
            threads: 1,
            value_bytes: 8,
            row_bytes: 128,
            flops: 100.0,
            read: 10.0,
            triad: 8.0,
            gathers: vec![
                gather(Place::L1, 80.0),
                gather(Place::L2, 40.0),
                gather(Place::L3, 20.0),
                gather(Place::Memory, 5.0),
            ],
        };
        let work = Work {
            flops: 100.0,
            near_bytes: 160.0,
            middle_bytes: 100.0,
            far_bytes: 60.0,
            streamed_bytes: 15.0,
            scattered_bytes: 5.0,
        };
        let least = |work: Work| {
            let Bound { seconds, part } = Bound::of(&work, &limits);
            (seconds, part)
        };
        assert_eq!(least(work), (3.0, Part::L3));
        assert_eq!(least(Work { scattered_bytes: 10.0, ..work }), (3.5, Part::Memory));
        assert_eq!(least(Work { middle_bytes: 280.0, ..work }), (7.0, Part::L2));
        assert_eq!(least(Work { near_bytes: 800.0, ..work }), (10.0, Part::Loads));
        assert_eq!(least(Work { flops: 900.0, ..work }), (9.0, Part::Arithmetic));
    }
}
