//! `decompose rerun` of a product in a study: its command is in `outcome.json`, and its result a file or a number.

use std::fs;
use std::path::{Path, PathBuf};

use decompose_common::interrupt;
use decompose_common::progress::{Screen, Verbosity};
use decompose_formats::{Coo, Duplicates};

use crate::cli::Done;
use crate::experiment::rerun::{RerunArgs, largest_difference, repeat};
use crate::experiment::work::child;
use crate::experiment::work::outcome::Outcome;
use crate::failure::Failure;
use crate::input::InputArgs;
use crate::stdout;

/// The file of a result, and that of a number.
const RESULT: &str = "result.dtb";
const NUMBER: &str = "output.txt";

/// Computes the product of a run once more, and compares the results.
///
/// # Errors
///
/// A run that fails, results that differ.
pub(super) fn run(args: &RerunArgs, outcome: &Outcome) -> Result<Done, Failure> {
    let temporary = tempfile::tempdir()
        .map_err(|error| Failure::input(format!("cannot make a temporary folder: {error}")))?;
    let out = args.out.clone().unwrap_or_else(|| temporary.path().join("rerun"));
    let out = std::path::absolute(&out).unwrap_or(out);
    if args.out.is_some() && out.exists() {
        let why = format!("{} exists", out.display());
        return Err(Failure::input(why).help("choose another folder with --out"));
    }
    let fail = |error| Failure::input(format!("cannot start the run: {error}"));
    fs::create_dir_all(&out).map_err(fail)?;
    let is_file = args.dir.join(RESULT).is_file();
    let mut words = words(&outcome.command, args.input.as_deref());
    words.extend(is_file.then(|| format!("--out={}", out.join(RESULT).display())));
    interrupt::install_saying("stopping: the run is not repeated; once more ends at once");
    let mut command = child::command()?;
    command.args(&words).arg("--quiet");
    command.stdout(match is_file {
        true => std::process::Stdio::null(),
        false => child::log(&out.join(NUMBER))?,
    });
    if let Done::Interrupted = repeat(&mut command, &words)? {
        return Ok(Done::Interrupted);
    }
    let name = if is_file { RESULT } else { NUMBER };
    compare((&args.dir, &out), name, args.tolerance)?;
    Ok(Done::Complete)
}

/// Returns what is typed to compute the product again; `input` replaces the file of the first operand.
fn words(command: &[String], input: Option<&Path>) -> Vec<String> {
    let file =
        |word: &str| word.strip_prefix("--tensor=")?.split_once('=').map(|(_, f)| f.to_owned());
    let old = command.iter().find_map(|word| file(word));
    let input = input.map(|path| std::path::absolute(path).unwrap_or(path.to_owned()));
    let word = |word: &String| match (&input, &old) {
        (Some(input), Some(old)) if file(word).as_ref() == Some(old) => {
            let binding = word.strip_suffix(old.as_str()).unwrap_or(word);
            format!("{binding}{}", input.display())
        }
        _ => word.clone(),
    };
    command.iter().filter(|word| !word.starts_with("--out=")).map(word).collect()
}

/// Compares the results in two folders; without a tolerance bit by bit.
fn compare(folders: (&Path, &Path), name: &str, tolerance: Option<f64>) -> Result<(), Failure> {
    let [first, second] = [folders.0, folders.1].map(|folder| folder.join(name));
    let bytes = |path: &PathBuf| {
        fs::read(path)
            .map_err(|error| Failure::input(format!("cannot read {}: {error}", path.display())))
    };
    if bytes(&first)? == bytes(&second)? {
        return stdout::line(format!("same     {name}, bit by bit"));
    }
    let most = match name {
        RESULT => of_lists(&first, &second)?,
        _ => of_numbers(&first, &second),
    };
    let told = most.map_or("elsewhere is something else than zero".to_owned(), |most| {
        format!("by up to {most:.2e} of the largest element")
    });
    match (most, tolerance) {
        (Some(most), Some(tolerance)) if most <= tolerance => stdout::line(format!(
            "same     {name} within {most:.2e} of the largest element, {tolerance:e} allowed"
        )),
        _ => Err(Failure::differs(format!("the results are not the same: {name} differs, {told}"))
            .help("--tolerance X compares to a tolerance")),
    }
}

/// Returns the largest difference between two lists, over the largest element; `None` of other places.
fn of_lists(first: &Path, second: &Path) -> Result<Option<f64>, Failure> {
    let read = |path: &Path| -> Result<Coo<f64>, Failure> {
        let mut screen = Screen::new(Verbosity::Quiet);
        let mut read = InputArgs::of_file(path).read::<f64>(&mut screen)?;
        read.tidy(Duplicates::default(), &mut screen)?;
        Ok(read.tensor)
    };
    let (a, b) = (read(first)?, read(second)?);
    let of_mode = |mode: usize| {
        let (a, b) = (a.coords(mode), b.coords(mode));
        (0..a.len()).all(|at| a.get(at) == b.get(at))
    };
    let shape = a.extents() == b.extents() && a.nnz() == b.nnz();
    let same = shape && (0..a.order()).all(of_mode);
    Ok(same.then(|| largest_difference(a.values(), b.values())))
}

/// Returns the difference between two printed numbers, over the larger; `None` of what is no number.
fn of_numbers(first: &Path, second: &Path) -> Option<f64> {
    let read = |path: &Path| -> Option<f64> {
        fs::read_to_string(path).ok()?.rsplit_once('=')?.1.trim().parse().ok()
    };
    Some(largest_difference(&[read(first)?], &[read(second)?]))
}

#[cfg(test)]
mod tests {
    use super::words;

    #[test]
    fn another_file_takes_the_place_of_the_tensor() {
        let command =
            ["einsum", "s() = X(i) * Y(i) * B(i)", "--tensor=X=/a.tns", "--tensor=Y=/a.tns"];
        let rest = ["--tensor=B=/b.tns", "--out=run/result.dtb", "--threads=2"];
        let command: Vec<String> = command.into_iter().chain(rest).map(str::to_owned).collect();
        let found = words(&command, Some("/c.tns".as_ref()));
        assert_eq!(
            found[2..],
            ["--tensor=X=/c.tns", "--tensor=Y=/c.tns", "--tensor=B=/b.tns", "--threads=2"]
        );
        assert_eq!(words(&command, None)[2..4], ["--tensor=X=/a.tns", "--tensor=Y=/a.tns"]);
    }
}
