//! What becomes of an earlier result in the folder that a command writes to.

/// What happens if a folder with something in it bears the name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Existing {
    /// It stays as it is, and this is an error.
    #[default]
    Refuse,
    /// The files of an earlier run in it are replaced; others stay.
    Replace,
    /// The run whose checkpoint it holds goes on and replaces its files; others stay.
    Resume,
}
