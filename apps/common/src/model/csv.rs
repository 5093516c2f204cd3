//! Comma-separated tables: `weights.csv` and `factor_1.csv`, ..., with headers.

use std::io::BufWriter;
use std::path::{Path, PathBuf};

use decompose_formats::Value;

use crate::error::CommonError;
use crate::files;
use crate::model::CpModel;

/// Writes `weights.csv`, `factor_1.csv`, ...; indices and components count from 1, numbers have
/// as many digits as they need to read back exactly.  A factor whose mode has labels ends with a column of them.
pub(super) fn write<V: Value>(
    model: &CpModel<V>,
    folder: &Path,
    labels: &[&[String]],
) -> Result<Vec<PathBuf>, CommonError> {
    let path = folder.join("weights.csv");
    let weights = model.weights().iter().zip(1_usize..);
    let lines = weights.map(|(weight, r)| vec![r.to_string(), weight.to_string()]);
    write_table(&path, vec!["component".into(), "weight".into()], lines)?;
    let mut written = vec![path];
    for (factor, mode) in model.factors().iter().zip(1..) {
        let path = folder.join(format!("factor_{mode}.csv"));
        let mut header = vec!["index".to_owned()];
        header.extend((1..=model.rank()).map(|r| format!("component_{r}")));
        let labels = labels.get(mode - 1).copied().filter(|labels| !labels.is_empty());
        header.extend(labels.map(|_| "label".to_owned()));
        let lines = (0..factor.rows()).map(|i| {
            let values = factor.row(i).iter().map(V::to_string);
            let label = labels.map(|labels| labels.get(i).cloned().unwrap_or_default());
            std::iter::once((i + 1).to_string()).chain(values).chain(label).collect()
        });
        write_table(&path, header, lines)?;
        written.push(path);
    }
    Ok(written)
}

fn write_table(
    path: &Path,
    header: Vec<String>,
    mut lines: impl Iterator<Item = Vec<String>>,
) -> Result<(), CommonError> {
    files::replace(path, |out: &mut BufWriter<_>| {
        let mut table = ::csv::Writer::from_writer(out);
        table.write_record(header).map_err(files::table_error)?;
        lines.try_for_each(|line| table.write_record(line).map_err(files::table_error))?;
        table.flush()
    })
}
