//! What processors of one family do, as far as kernels tell them apart.
//!
//! A family is told by the vendor that the processor names.  Its constants stand in a file of `families`, with their units,
//! what they were fitted to, and how to fit them anew.

/// The environment variable that names the family, or the file of constants, to judge schedules for, whatever the
/// processor.
pub const MACHINE_VARIABLE: &str = "DECOMPOSE_MACHINE";

/// Processors with about the same caches and speeds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Family {
    /// AMD's servers: a fast last-level cache of some ten MB.
    Zen,
    /// Intel's servers: a large second-level cache, and a last level behind a mesh whose lines take
    /// more than twice as long.
    Xeon,
    /// Processors that nothing was measured on: between the others.
    #[default]
    Neutral,
}

/// The families with their names and constants.
pub(super) const FAMILIES: [(Family, &str, &str); 3] = [
    (Family::Zen, "Zen", include_str!("families/zen.toml")),
    (Family::Xeon, "Xeon", include_str!("families/xeon.toml")),
    (Family::Neutral, "Neutral", include_str!("families/neutral.toml")),
];

impl Family {
    /// Returns the family of the processors that name this vendor (`GenuineIntel`, `AuthenticAMD`, ...).
    pub fn of_vendor(vendor: &str) -> Family {
        match vendor {
            "GenuineIntel" => Family::Xeon,
            "AuthenticAMD" | "HygonGenuine" => Family::Zen,
            _ => Family::Neutral,
        }
    }

    /// Returns the family of this name.
    pub fn named(name: &str) -> Option<Family> {
        FAMILIES.iter().find(|(_, known, _)| *known == name).map(|&(family, ..)| family)
    }
}
