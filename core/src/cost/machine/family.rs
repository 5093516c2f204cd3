//! What processors of one family do, as far as kernels tell them apart.
//!
//! A family is told by the vendor that the processor names.  Its constants stand in a file of `families`, with their units,
//! what they were fitted to, and how to fit them anew.

/// The environment variable that names the family to judge schedules for, whatever the processor: what tests that depend
/// on it are run for on any machine.
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

    /// Returns the family that the environment variable [`MACHINE_VARIABLE`] names, in whose place no processor is asked;
    /// `None` where it is not set.
    ///
    /// # Errors
    ///
    /// What it says, if that is no family.
    pub fn of_environment() -> Result<Option<Family>, String> {
        let Some(word) = std::env::var_os(MACHINE_VARIABLE).filter(|word| !word.is_empty()) else {
            return Ok(None);
        };
        let word = word.to_string_lossy();
        let named = FAMILIES.iter().find(|(_, name, _)| *name == word);
        let names = FAMILIES.map(|(_, name, _)| name).join(", ");
        let none = || format!("{MACHINE_VARIABLE}={word} names no family; there are {names}");
        named.map(|&(family, ..)| Some(family)).ok_or_else(none)
    }
}
