//! Which rank to choose.

use decompose_common::restarts::seed_of;
use decompose_complete::{
    CompleteConfig, Data, ModelKind, Parts, RankFit, RankRow, Recommendation, Scores, Start,
    recommend, solve, with_zeros,
};
use decompose_core::runtime::Toolchain;
use decompose_cp::CpConfig;
use decompose_formats::{Coo, Value};
use numpy::PyArray1;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::complete::{self, divide, wide};
use crate::cp::{self, Init};
use crate::fault::Fault;
use crate::options::{Course, check_process, check_room};
use crate::tensor::Tensor;
use crate::watch::{Watch, watched};

/// The options of `decompose.rank` beside those of a completion.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Options {
    /// The ranks to compare, ascending.
    compared: Vec<usize>,
    /// What elements that are not listed are: unknown (`complete`) or zero (`cp`).
    method: String,
}

/// The work of a scan.
struct Scan<'a> {
    ranks: &'a [usize],
    parts: &'a Parts,
    config: &'a CompleteConfig,
    restarts: usize,
    /// The tensor whose CP decompositions give fit and match, if they do.
    whole: Option<&'a Coo<f64>>,
}

/// Fits models of several ranks to `tensor`; returns a column for each number of `rank.csv`, and the ranks to choose.
#[pyfunction]
pub(crate) fn rank<'py>(
    py: Python<'py>,
    tensor: &Tensor,
    held_out: (Option<PyRef<'py, Tensor>>, Option<PyRef<'py, Tensor>>),
    options: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyDict>> {
    let course: Course = options.extract()?;
    let Options { compared, method } = options.extract()?;
    let options: complete::Options = options.extract()?;
    let cp = match method.as_str() {
        "complete" => false,
        "cp" => true,
        other => {
            return Err(Fault::Input(format!("method is `{other}`; use complete or cp")).into());
        }
    };
    check_process()?;
    let (val, test) = (wide(&held_out.0)?, wide(&held_out.1)?);
    let (parts, whole, config) = py.detach(|| {
        let listed = tensor.list.wide()?;
        let (train, whole) = match cp {
            true => (with_zeros(&listed, listed.nnz() as u64, course.seed)?, Some(listed)),
            false => (listed, None),
        };
        let parts = divide(Parts { train, val, test }, &options, course.seed)?;
        let config = complete::config(&options, &parts.train, &course)?;
        Ok::<_, Fault>((parts, whole, config))
    })?;
    let scan = Scan {
        ranks: &compared,
        parts: &parts,
        config: &config,
        restarts: course.restarts,
        whole: whole.as_ref(),
    };
    let rows = watched(py, course.callback.as_ref(), course.threads, |watch| scan.run(watch))?;
    let chosen = match parts.only_value() {
        Some(_) => Recommendation::none(),
        None => recommend(&rows),
    };
    let dict = PyDict::new(py);
    dict.set_item("error", Scores::of_means(config.loss, &[], &[]).error_name())?;
    let told = |rank: usize| (rank > 0).then_some(rank);
    dict.set_item("recommended", told(chosen.rank))?;
    dict.set_item("for_prediction", told(chosen.for_prediction))?;
    dict.set_item("why", chosen.why)?;
    dict.set_item("table", columns(py, &rows)?)?;
    Ok(dict)
}

impl Scan<'_> {
    /// Fits every rank from every start.
    fn run(&self, watch: &Watch<'_>) -> Result<Vec<RankRow>, Fault> {
        let train = &self.parts.train;
        let largest = self.ranks.iter().copied().max().unwrap_or(1);
        check_room(train.extents(), &[largest], f64::BYTES)?;
        let mut rows = Vec::new();
        for &rank in self.ranks {
            let fits = self.fits(rank, watch)?;
            if watch.is_stopped() {
                break;
            }
            let mut row = RankRow::of(rank, &fits, train)?;
            if let Some(whole) = self.whole {
                self.decompose(whole, &mut row, watch)?;
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// Fits models of one rank; fewer than all starts when the user stops the work.
    fn fits(&self, rank: usize, watch: &Watch<'_>) -> Result<Vec<RankFit>, Fault> {
        let Parts { train, val, test } = self.parts;
        let data = Data { train, val: val.as_ref(), test: test.as_ref() };
        let silent = watch.silent();
        let mut fits = Vec::new();
        for restart in 0..self.restarts {
            let config = CompleteConfig {
                model: ModelKind::Cp { rank },
                seed: seed_of(self.config.seed, restart),
                restarts: 1,
                ..self.config.clone()
            };
            config.check(train.extents())?;
            let begun = std::time::Instant::now();
            let toolchain = Toolchain::detect();
            let outcome =
                solve(data, Start::Random, &config, &toolchain, &mut |_| silent.see(0, 0, 0.0))?;
            let fit = RankFit::of(&outcome, rank, begun.elapsed().as_secs_f64())?;
            let flow = watch.see(rank, restart + 1, fit.deciding());
            fits.push(fit);
            if flow.is_break() {
                break;
            }
        }
        Ok(fits)
    }

    /// Takes fit and match from CP decompositions of `whole`.
    fn decompose(
        &self,
        whole: &Coo<f64>,
        row: &mut RankRow,
        watch: &Watch<'_>,
    ) -> Result<(), Fault> {
        let begun = std::time::Instant::now();
        let config =
            CpConfig { seed: self.config.seed, restarts: self.restarts, ..CpConfig::new(row.rank) };
        let outcome = cp::decompose(whole, &config, Init::Random, &watch.silent())?;
        let fits: Vec<f64> = outcome.restarts.iter().map(|start| start.fit).collect();
        row.decomposed(&fits, &outcome.match_scores);
        row.seconds += begun.elapsed().as_secs_f64();
        Ok(())
    }
}

/// The columns of `rank.csv` as arrays; `NaN` where there is no number.
fn columns<'py>(py: Python<'py>, rows: &[RankRow]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let whole = |of: &dyn Fn(&RankRow) -> usize| {
        PyArray1::from_iter(py, rows.iter().map(|row| of(row) as i64))
    };
    let number = |of: &dyn Fn(&RankRow) -> Option<f64>| {
        PyArray1::from_iter(py, rows.iter().map(|row| of(row).unwrap_or(f64::NAN)))
    };
    dict.set_item("rank", whole(&|row| row.rank))?;
    dict.set_item("train", number(&|row| Some(row.train)))?;
    dict.set_item("val", number(&|row| row.val))?;
    dict.set_item("test", number(&|row| row.test))?;
    dict.set_item("worst", number(&|row| Some(row.worst)))?;
    dict.set_item("fit", number(&|row| Some(row.fit)))?;
    dict.set_item("match", number(&|row| row.matched))?;
    dict.set_item("reached", whole(&|row| row.reached))?;
    dict.set_item("agreement", number(&|row| row.agreement))?;
    dict.set_item("seconds", number(&|row| Some(row.seconds)))?;
    Ok(dict)
}
