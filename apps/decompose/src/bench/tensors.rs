//! The tensors that are measured: read from files or generated.

use std::path::PathBuf;

use decompose_common::progress::Screen;
use decompose_formats::io::{self, Overwrite, WriteOptions};
use decompose_formats::synth::{SynthConfig, generate};
use decompose_formats::{Coo, PatternCounts, Value, counted};
use tempfile::TempPath;

use crate::bench::record::MeasuredTensor;
use crate::bench::settings::{Settings, What};
use crate::failure::Failure;
use crate::input::InputArgs;

/// Where a tensor comes from.
pub(crate) enum TensorSource {
    /// A file.
    File(PathBuf),
    /// Random numbers.
    Like { name: String, config: SynthConfig },
}

/// A tensor to be measured.
pub(crate) struct Subject<V: Value> {
    pub(crate) name: String,
    source: String,
    /// Sorted, without duplicates.
    pub(crate) tensor: Coo<V>,
    pub(crate) counts: PatternCounts,
    /// The file whose ingest is measured.
    pub(crate) file: Option<PathBuf>,
    /// Removes the file of a generated tensor.
    _written: Option<TempPath>,
}

impl TensorSource {
    /// Reads or generates the tensor; a generated one is written to a file if ingest is measured.
    ///
    /// # Errors
    ///
    /// Those of reading, generating and writing.
    pub(crate) fn load<V: Value>(
        &self,
        settings: &Settings,
        screen: &mut Screen,
    ) -> Result<Subject<V>, Failure> {
        let (name, source, tensor, written) = match self {
            TensorSource::File(file) => {
                let args = InputArgs::of_file(file);
                let mut input = args.read::<V>(screen)?;
                input.tidy(args.duplicates(), screen)?;
                (args.name(), file.display().to_string(), input.tensor, None)
            }
            TensorSource::Like { name, config } => {
                let (tensor, seconds) = screen.phase("generate", || generate::<V>(config));
                let tensor = tensor?;
                let entries = counted(tensor.nnz(), "entry", "entries");
                screen.line(format!("generate {name}: {entries}; {seconds:.2} s"));
                let ingest = settings.asks(What::Ingest);
                let written = ingest.then(|| write(&tensor, settings, screen)).transpose()?;
                let source = format!("decompose generate power-law --like {name}");
                (name.clone(), source, tensor, written)
            }
        };
        let file = match (self, &written) {
            (TensorSource::File(file), _) => Some(file.clone()),
            (TensorSource::Like { .. }, written) => written.as_ref().map(|path| path.to_path_buf()),
        };
        let counts = PatternCounts::of(&tensor);
        Ok(Subject { name, source, tensor, counts, file, _written: written })
    }
}

impl<V: Value> Subject<V> {
    /// Returns what is recorded of it.
    pub(crate) fn facts(&self) -> MeasuredTensor {
        MeasuredTensor {
            name: self.name.clone(),
            source: self.source.clone(),
            extents: self.tensor.extents().to_vec(),
            nnz: self.tensor.nnz(),
        }
    }
}

/// Writes the tensor as text to a file that is there as long as it is needed.
fn write<V: Value>(
    tensor: &Coo<V>,
    settings: &Settings,
    screen: &mut Screen,
) -> Result<TempPath, Failure> {
    let folder = settings.folder.work();
    let place = io::temporary(folder, ".tns");
    let place = place.map_err(|error| {
        Failure::input(format!("cannot write to {}: {error}", folder.display())).while_writing()
    })?;
    let place = place.into_temp_path();
    let options = WriteOptions { overwrite: Overwrite::Replace, ..WriteOptions::default() };
    screen.phase("write", || io::write(tensor, &place, &options)).0?;
    Ok(place)
}
