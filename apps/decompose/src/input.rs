//! The tensor that a command reads, and the options that say how.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use decompose_common::progress::Screen;
use decompose_core::kernels::MAX_ORDER;
use decompose_formats::io::{self, Base, Format, Progress, ReadOptions, ReadReport, Source};
use decompose_formats::{Coo, Duplicates, ModeOrder, Value};

use crate::failure::Failure;
use crate::words::counted;

/// Where the tensor is and how its file is to be understood.
#[derive(Args, Clone, Debug)]
#[command(next_help_heading = "Input")]
pub(crate) struct InputArgs {
    /// The tensor: .tns, .mtx or .ttx (text, also with .gz, .zst, .bz2), .npy or .dtb; `-` reads
    /// standard input.
    pub(crate) file: PathBuf,
    /// From where the indices of a text file count: 0 or 1.  Default: told by the file.
    #[arg(long, alias = "index-base", value_name = "0|1", value_parser = parse_base)]
    base: Option<Base>,
    /// The extents, where the file has no header: I1,I2,...  Default: the largest indices.
    #[arg(long, value_name = "EXTENTS", value_delimiter = ',', value_parser = parse_extent)]
    dims: Option<Vec<u64>>,
    /// What becomes of entries with equal indices: sum, keep-first or error.
    #[arg(long, value_name = "WHAT", default_value = "sum", value_parser = parse_duplicates)]
    duplicates: Duplicates,
    /// The format, where the name does not tell: tns, mtx, npy or dtb.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    format: Option<Format>,
}

/// The endings of the formats.
const ENDINGS: &[&str] = &[".tns", ".mtx", ".ttx", ".npy", ".dtb"];

/// A tensor as read, not yet sorted.
pub(crate) struct Input<V: Value> {
    pub(crate) tensor: Coo<V>,
    pub(crate) report: ReadReport,
    /// The hash of the file; `None` for standard input and pipes.
    pub(crate) blake3: Option<String>,
    /// Seconds to hash the file; `None` if it was hashed while it was read, or not at all.
    pub(crate) hash_seconds: Option<f64>,
    /// Seconds to read it.
    pub(crate) read_seconds: f64,
}

impl InputArgs {
    /// Returns the options of a file about which nothing is said.
    pub(crate) fn of_file(file: &Path) -> InputArgs {
        let duplicates = Duplicates::Sum;
        InputArgs { file: file.to_owned(), base: None, dims: None, duplicates, format: None }
    }

    /// Returns the options for a file of further entries, whose indices count as `base` says.
    pub(crate) fn beside(&self, file: &Path, base: Option<Base>) -> InputArgs {
        let (dims, format) = (None, None);
        InputArgs { file: file.to_owned(), base, dims, format, ..self.clone() }
    }

    /// Returns a short name for the tensor: the file's name without the endings of formats.
    pub(crate) fn name(&self) -> String {
        let file = self.file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let strip = |name: String, endings: &[&str]| {
            let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
            stem.filter(|stem| !stem.is_empty()).map(str::to_owned).unwrap_or(name)
        };
        match file.as_str() {
            "-" => "stdin".to_owned(),
            _ => strip(strip(file, &[".gz", ".zst", ".bz2"]), ENDINGS),
        }
    }

    /// Returns what becomes of duplicates.
    pub(crate) fn duplicates(&self) -> Duplicates {
        self.duplicates
    }

    /// Reads the tensor and says on `screen` what was decided.
    ///
    /// A file that is not hashed while it is read is hashed afterwards.
    pub(crate) fn read<V: Value>(&self, screen: &mut Screen) -> Result<Input<V>, Failure> {
        let source = Source::new(&self.file);
        let hash = hashable(&self.file);
        let options = ReadOptions {
            format: self.format,
            base: self.base,
            extents: self.dims.clone(),
            hash,
            ..ReadOptions::default()
        };
        let progress = Progress::new();
        let reading = || io::read::<V>(&source, &options, &progress);
        let (read, read_seconds) = screen.reading("read", &progress, reading);
        let (tensor, mut report) = read?;
        let rate = report.bytes as f64 / 1e6 / read_seconds.max(1e-9);
        let text = report.to_string().replace('\n', "\n         ");
        screen.line(format!("read     {text}\n         {read_seconds:.2} s, {rate:.0} MB/s"));
        if tensor.order() > MAX_ORDER {
            let order = tensor.order();
            return Err(Failure::input(format!(
                "{source} is of order {order}; tensors of up to {MAX_ORDER} modes are supported"
            )));
        }
        let (blake3, hash_seconds) = match report.blake3.take() {
            None if hash => {
                let (hash, seconds) = screen.phase("hash", || io::file_hash(&self.file));
                (hash.ok(), Some(seconds))
            }
            found => (found, None),
        };
        Ok(Input { tensor, report, blake3, hash_seconds, read_seconds })
    }
}

impl<V: Value> Input<V> {
    /// Sorts by the natural order and merges duplicates; returns how many entries that removed,
    /// and the seconds.
    pub(crate) fn tidy(
        &mut self,
        policy: Duplicates,
        screen: &mut Screen,
    ) -> Result<(u64, f64), Failure> {
        let tensor = &mut self.tensor;
        let (merged, seconds) = screen.phase("sort", || {
            tensor.sort(&ModeOrder::natural(tensor.order()))?;
            tensor.merge_duplicates(policy)
        });
        let merged = merged?;
        let nnz = self.tensor.nnz();
        let (entries, merges) =
            (counted(nnz, "entry", "entries"), counted(merged, "duplicate", "duplicates"));
        screen.line(format!("sort     {entries}, {merges} merged; {seconds:.2} s"));
        Ok((merged, seconds))
    }
}

/// Tells whether the file can be read twice.
fn hashable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() > 0)
}

fn parse_base(text: &str) -> Result<Base, String> {
    match text {
        "0" => Ok(Base::Zero),
        "1" => Ok(Base::One),
        _ => Err("indices count from 0 or from 1".into()),
    }
}

/// Parses an extent of at least 1.
pub(crate) fn parse_extent(text: &str) -> Result<u64, String> {
    match text.trim().parse() {
        Ok(0) | Err(_) => Err(format!("`{text}` is no extent; give one integer from 1 on a mode")),
        Ok(extent) => Ok(extent),
    }
}

fn parse_duplicates(text: &str) -> Result<Duplicates, String> {
    let all = [Duplicates::Sum, Duplicates::KeepFirst, Duplicates::Error];
    let known = all.into_iter().find(|policy| policy.to_string() == text);
    known.ok_or_else(|| "use sum, keep-first or error".into())
}

fn parse_format(text: &str) -> Result<Format, String> {
    match text {
        "tns" => Ok(Format::Tns),
        "mtx" | "ttx" => Ok(Format::Mtx),
        "npy" => Ok(Format::Npy),
        "dtb" => Ok(Format::Dtb),
        _ => Err("use tns, mtx, npy or dtb".into()),
    }
}
