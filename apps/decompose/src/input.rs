//! The tensor that a command reads, and the options that say how.

use std::fs;
use std::path::{Path, PathBuf};

use clap::Args;
use decompose_common::memory;
use decompose_common::progress::Screen;
use decompose_core::kernels::MAX_ORDER;
use decompose_formats::io::{
    self, Base, Format, Missing, Progress, ReadOptions, ReadReport, Source,
};
use decompose_formats::{Coo, Duplicates, ModeOrder, Value, counted};

use crate::failure::Failure;
use crate::run::reading;

/// Where the tensor is and how its file is to be understood.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
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
    /// What becomes of entries with equal indices: sum, mean, first, last, min, max, or error, which
    /// refuses them.  [default: sum]
    #[arg(long, value_name = "WHAT", value_parser = parse_duplicates)]
    duplicates: Option<Duplicates>,
    /// What becomes of them where nothing is said; of commands that do not add them up.
    #[arg(skip)]
    duplicates_unasked: Option<Duplicates>,
    /// The format, where the name does not tell: tns, mtx, npy or dtb.
    #[arg(long, value_name = "FORMAT", value_parser = parse_format)]
    format: Option<Format>,
    /// What stands for unknown values; of commands that know them.
    #[arg(skip)]
    missing: Missing,
}

/// What stands for an unknown value, for commands that leave such entries out.
#[derive(Args, Clone, Copy, Debug, Default)]
#[command(next_help_heading = "Input")]
pub(crate) struct MissingArgs {
    /// What stands for an unknown value: nan.  Such entries are left out, and all other cells of a
    /// .npy array are listed, zeros too.  [default: a NaN is refused]
    #[arg(long, value_name = "nan", value_parser = parse_missing)]
    missing: Option<Missing>,
}

impl MissingArgs {
    /// Returns what stands for an unknown value.
    pub(crate) fn asked(self) -> Missing {
        self.missing.unwrap_or_default()
    }
}

/// The endings of the formats.
const ENDINGS: &[&str] = &[".tns", ".mtx", ".ttx", ".npy", ".dtb", ".csv", ".tsv"];

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
        InputArgs {
            file: file.to_owned(),
            base: None,
            dims: None,
            duplicates: None,
            duplicates_unasked: None,
            format: None,
            missing: Missing::default(),
        }
    }

    /// Returns the options for a file of further entries, whose indices count as `base` says.
    pub(crate) fn beside(&self, file: &Path, base: Option<Base>) -> InputArgs {
        let (dims, format) = (None, None);
        InputArgs { file: file.to_owned(), base, dims, format, ..self.clone() }
    }

    /// Returns a short name for the tensor: the file's name without the endings of formats.
    pub(crate) fn name(&self) -> String {
        name_of(&self.file)
    }

    /// Refuses options that say nothing of a table of named categories.
    pub(crate) fn refuse_for_tables(&self) -> Result<(), Failure> {
        let given = [
            ("--base", self.base.is_some()),
            ("--dims", self.dims.is_some()),
            ("--format", self.format.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            None => Ok(()),
            Some((option, _)) => {
                let why = format!("{option} says nothing of a table, whose labels are no indices");
                Err(Failure::input(why).help("leave it out; see --modes and --value"))
            }
        }
    }

    /// Returns what becomes of duplicates: they are added up unless the user or the command has
    /// another rule.
    pub(crate) fn duplicates(&self) -> Duplicates {
        self.duplicates.or(self.duplicates_unasked).unwrap_or_default()
    }

    /// Returns a warning about `merged` entries, if they were merged by a rule other than the sum that
    /// nobody asked for.
    pub(crate) fn warning_of(&self, merged: u64) -> Option<String> {
        let rule = self.duplicates_unasked.filter(|rule| *rule != Duplicates::default())?;
        (merged > 0 && self.duplicates.is_none()).then(|| {
            let had = counted(merged, "entry has", "entries have");
            format!(
                "{had} the indices of another one: of entries with equal indices the {rule} counts; \
                 --duplicates sum adds them up"
            )
        })
    }

    /// Returns what stands for an unknown value.
    pub(crate) fn missing(&self) -> Missing {
        self.missing
    }

    /// Returns the same file, read so that values which `missing` names are left out.
    pub(crate) fn with_missing(self, missing: MissingArgs) -> InputArgs {
        InputArgs { missing: missing.asked(), ..self }
    }

    /// Returns the same file with duplicates as `policy` says, unless the user or an earlier call says
    /// otherwise.
    pub(crate) fn with_default_duplicates(self, policy: Duplicates) -> InputArgs {
        InputArgs { duplicates_unasked: self.duplicates_unasked.or(Some(policy)), ..self }
    }

    /// Reads the tensor and says on `screen` what was decided.
    ///
    /// A file that is not hashed while it is read is hashed afterwards.
    pub(crate) fn read<V: Value>(&self, screen: &mut Screen) -> Result<Input<V>, Failure> {
        reading::foresee(&self.file, self.format, V::BYTES)?;
        let source = Source::new(&self.file);
        let hash = hashable(&self.file);
        let options = ReadOptions {
            format: self.format,
            base: self.base,
            extents: self.dims.clone(),
            hash,
            missing: self.missing,
            max_order: MAX_ORDER,
            max_bytes: memory::left(),
            ..ReadOptions::default()
        };
        let progress = Progress::new();
        let reading = || io::read::<V>(&source, &options, &progress);
        let (read, read_seconds) = screen.reading("read", &progress, reading);
        let (tensor, mut report) = read?;
        let rate = report.bytes as f64 / 1e6 / read_seconds.max(1e-9);
        let text = report.to_string().replace('\n', "\n         ");
        screen.line(format!("read     {text}\n         {read_seconds:.2} s, {rate:.0} MB/s"));
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
    /// Returns from where the indices count in the file; `None` where no text says it.
    pub(crate) fn base(&self) -> Option<Base> {
        self.report.text.as_ref().map(|text| text.base)
    }

    /// Returns the same tensor for another operand, in the same arrays.
    pub(crate) fn share(&mut self) -> Input<V> {
        Input {
            tensor: self.tensor.share(),
            report: self.report.clone(),
            blake3: self.blake3.clone(),
            hash_seconds: self.hash_seconds,
            read_seconds: self.read_seconds,
        }
    }

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

/// Returns a short name for the tensor in `file`: its name without the endings of formats.
pub(crate) fn name_of(file: &Path) -> String {
    let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let strip = |name: String, endings: &[&str]| {
        let stem = endings.iter().find_map(|ending| name.strip_suffix(ending));
        stem.filter(|stem| !stem.is_empty()).map(str::to_owned).unwrap_or(name)
    };
    match file.as_str() {
        "-" => "stdin".to_owned(),
        _ => strip(strip(file, &[".gz", ".zst", ".bz2"]), ENDINGS),
    }
}

/// Tells whether the file can be read twice.
fn hashable(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|data| data.is_file() && data.len() > 0)
}

/// Parses from where indices count.
pub(crate) fn parse_base(text: &str) -> Result<Base, String> {
    match text {
        "0" => Ok(Base::Zero),
        "1" => Ok(Base::One),
        _ => Err("indices count from 0 or from 1".into()),
    }
}

/// The largest extent: that of a signed number, which other programs read.
pub(crate) const MOST_EXTENT: u64 = i64::MAX as u64;

/// Parses an extent.
pub(crate) fn parse_extent(text: &str) -> Result<u64, String> {
    match text.trim().parse() {
        Ok(extent @ 1..=MOST_EXTENT) => Ok(extent),
        Ok(_) | Err(_) => {
            Err(format!("`{text}` is no extent; give one integer from 1 to 2^63 - 1 a mode"))
        }
    }
}

fn parse_duplicates(text: &str) -> Result<Duplicates, String> {
    // The name that `first` had once.
    let text = if text == "keep-first" { "first" } else { text };
    let known = Duplicates::ALL.into_iter().find(|policy| policy.to_string() == text);
    known.ok_or_else(|| "use sum, mean, first, last, min, max or error".into())
}

fn parse_missing(text: &str) -> Result<Missing, String> {
    match text.eq_ignore_ascii_case("nan") {
        true => Ok(Missing::Nan),
        false => Err("only nan can stand for an unknown value".into()),
    }
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
