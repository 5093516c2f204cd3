//! The tensors of a study, made where they are recipes, and hashed.

use std::fs;
use std::path::{Path, PathBuf};

use decompose_formats::io::file_hash;

use crate::experiment::study::tensors::{Origin, TensorSpec};
use crate::experiment::work::child;
use crate::experiment::work::outcome::reason;
use crate::failure::Failure;
use crate::labels::LabelPlace;

/// A tensor that is there.
#[derive(Clone, Debug)]
pub(crate) struct ReadyTensor {
    pub(crate) name: String,
    /// Absolute.
    pub(crate) path: PathBuf,
    pub(crate) blake3: String,
    pub(crate) labels: Vec<LabelPlace>,
    /// What it has in common with tensors of other sizes.
    pub(crate) family: Option<String>,
}

/// Makes those that are missing in `folder`, and hashes all; `None` if the user wanted to stop.
///
/// # Errors
///
/// A recipe that `generate` refuses, or a file that cannot be read.
pub(crate) fn ready(
    specs: &[TensorSpec],
    folder: &Path,
    mut tell: impl FnMut(&str),
) -> Result<Option<Vec<ReadyTensor>>, Failure> {
    let mut found = Vec::new();
    for spec in specs {
        let path = match &spec.origin {
            Origin::File(path) => path.clone(),
            Origin::Recipe(recipe) => match made(&spec.name, recipe, folder, &mut tell)? {
                Some(path) => path,
                None => return Ok(None),
            },
        };
        let blake3 = file_hash(&path)
            .map_err(|error| Failure::input(format!("cannot read {}: {error}", path.display())))?;
        let (name, labels) = (spec.name.clone(), spec.labels.clone());
        let family = spec.origin.family();
        found.push(ReadyTensor { name, path, blake3, labels, family });
    }
    Ok(Some(found))
}

/// Returns the file of a recipe, which is made where it is missing.
fn made(
    name: &str,
    recipe: &[String],
    folder: &Path,
    tell: &mut impl FnMut(&str),
) -> Result<Option<PathBuf>, Failure> {
    let version = env!("CARGO_PKG_VERSION");
    let hash = blake3::hash(format!("{version}\n{}", recipe.join("\n")).as_bytes());
    let place = folder.join(&hash.to_hex()[..12]);
    let path = std::path::absolute(place.join(format!("{name}.dtb"))).unwrap_or(place.clone());
    if path.is_file() {
        return Ok(Some(path));
    }
    tell(&format!("generate {name}"));
    let fail =
        |error: std::io::Error| Failure::input(format!("cannot make the tensor {name}: {error}"));
    fs::create_dir_all(&place).map_err(fail)?;
    let log = place.join("log.txt");
    let mut command = child::command()?;
    command.arg("generate").args(recipe).arg("--out").arg(&path);
    command.stdout(std::process::Stdio::null()).stderr(child::log(&log)?);
    let status = child::wait(&mut command.spawn().map_err(fail)?).map_err(fail)?;
    match status {
        None => Ok(None),
        Some(status) if status.success() => Ok(Some(path)),
        Some(status) => {
            let said = fs::read_to_string(&log).unwrap_or_default();
            let why = reason(&said).unwrap_or_else(|| status.to_string());
            let words = recipe.join(" ");
            Err(Failure::input(format!("[tensors.{name}]: {why}"))
                .help(format!("the recipe is `decompose generate {words}`")))
        }
    }
}
