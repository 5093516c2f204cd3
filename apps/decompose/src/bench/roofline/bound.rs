//! The time that work takes at the limits of the machine.

use crate::bench::roofline::limits::{Limits, TablePlace};
use crate::bench::roofline::work::Work;

/// The least seconds of some work.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub(crate) struct Bound {
    /// Seconds.
    pub(crate) seconds: f64,
    /// The part of the machine that needs them.
    pub(crate) part: MachinePart,
}

/// A part of the machine that can be the busiest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum MachinePart {
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

impl MachinePart {
    /// Returns its name, as in records.
    pub(crate) fn name(self) -> &'static str {
        match self {
            MachinePart::Arithmetic => "arithmetic",
            MachinePart::Loads => "loads",
            MachinePart::L2 => "l2",
            MachinePart::L3 => "l3",
            MachinePart::Memory => "memory",
        }
    }
}

impl Bound {
    /// Returns the time of the busiest part; see the [module](crate::bench::roofline).
    pub(crate) fn of(work: &Work, limits: &Limits) -> Bound {
        let near = limits.gathers.iter().map(|gather| gather.bytes_per_second);
        let near = near.fold(limits.stream(), f64::max);
        let memory = limits.gather(TablePlace::Memory);
        let stream = limits.stream().max(memory);
        let far = limits.gather(TablePlace::L3).max(stream);
        let middle = limits.gather(TablePlace::L2).max(far);
        let parts = [
            (MachinePart::Arithmetic, work.flops / limits.flops),
            (MachinePart::Loads, work.near_bytes / near),
            (MachinePart::L2, work.middle_bytes / middle),
            (MachinePart::L3, work.far_bytes / far),
            (MachinePart::Memory, work.streamed_bytes / stream + work.scattered_bytes / memory),
        ];
        // Of equal parts the last.
        let busier = |a: (MachinePart, f64), b: (MachinePart, f64)| {
            if b.1.total_cmp(&a.1).is_ge() { b } else { a }
        };
        let [first, others @ ..] = parts;
        let (part, seconds) = others.into_iter().fold(first, busier);
        Bound { seconds, part }
    }
}

#[cfg(test)]
mod tests {
    use super::{Bound, MachinePart};
    use crate::bench::roofline::limits::{GatherLimit, Limits, TablePlace};
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
                gather(TablePlace::L1, 80.0),
                gather(TablePlace::L2, 40.0),
                gather(TablePlace::L3, 20.0),
                gather(TablePlace::Memory, 5.0),
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
        assert_eq!(least(work), (3.0, MachinePart::L3));
        assert_eq!(least(Work { scattered_bytes: 10.0, ..work }), (3.5, MachinePart::Memory));
        assert_eq!(least(Work { middle_bytes: 280.0, ..work }), (7.0, MachinePart::L2));
        assert_eq!(least(Work { near_bytes: 800.0, ..work }), (10.0, MachinePart::Loads));
        assert_eq!(least(Work { flops: 900.0, ..work }), (9.0, MachinePart::Arithmetic));
    }
}
