//! What is scheduled: the expression with all that is known of its operands.

use std::collections::BTreeMap;
use std::path::Path;

use decompose_common::progress::Screen;
use decompose_core::contract::Request;
use decompose_core::einsum::{Expr, Index};
use decompose_core::kernels::MAX_ORDER;
use decompose_formats::io::{ExtentsFrom, ReadReport};
use decompose_formats::stats::grouped;
use decompose_formats::{Coo, Duplicates, Ints, PatternCounts, Value, Width};

use crate::failure::Failure;
use crate::input::{Input, InputArgs};
use crate::schedule::args::OperandArgs;
use crate::schedule::expr;

/// A request, and the sparse operands if there are files of them.
pub(crate) struct ScheduleInput<V: Value> {
    pub(crate) request: Request,
    /// By input; none where no file is given.
    pub(crate) tensors: Vec<(usize, Coo<V>)>,
    /// Non-zeros of each sparse operand, and where it comes from, for people.
    pub(crate) sources: Vec<(u64, String)>,
}

impl<V: Value> ScheduleInput<V> {
    /// Reads the tensors that are given, and gives every index its extent.
    pub(crate) fn new(
        expr: Expr,
        args: &OperandArgs,
        screen: &mut Screen,
    ) -> Result<ScheduleInput<V>, Failure> {
        let mut known = Known::given(&expr, args.extents.iter().chain(&args.dense))?;
        let mut files: Vec<(usize, &Path)> = Vec::new();
        for binding in &args.tensor {
            let inputs = expr::inputs_called(&expr, &binding.name)?.into_iter();
            files.extend(inputs.map(|input| (input, binding.file.as_path())));
        }
        let sparse: Vec<usize> = match files.is_empty() {
            true => vec![0],
            false => files.iter().map(|(input, _)| *input).collect(),
        };
        check_orders(&expr, &sparse)?;
        let tensors = read_lists::<V>(&files, &expr, &mut known, screen)?;
        let (counts, sources) = match files.is_empty() {
            true => {
                let counts = assumed(&expr, &known, args)?;
                screen.line(format!(
                    "pattern  no file is given for {}: its non-zeros are taken to be spread evenly",
                    expr.inputs[0].tensor
                ));
                let sources = vec![(counts.nnz(), "spread evenly".to_owned())];
                (vec![(0, counts)], sources)
            }
            false => {
                let count = |(input, list): &(usize, Input<V>)| {
                    (*input, screen.phase("count", || PatternCounts::of(&list.tensor)).0)
                };
                let counts: Vec<(usize, PatternCounts)> = tensors.iter().map(count).collect();
                let source =
                    |((_, counts), (_, list)): (&(usize, PatternCounts), &(usize, Input<V>))| {
                        (counts.nnz(), list.report.file.clone())
                    };
                let sources = counts.iter().zip(&tensors).map(source).collect();
                (counts, sources)
            }
        };
        let shapes = expr.inputs.iter().enumerate().map(|(input, access)| {
            let of = |index: &Index| dense_extent(&expr, *index, &known, args);
            match sparse.contains(&input) {
                true => Ok(Vec::new()),
                false => access.indices.iter().map(of).collect(),
            }
        });
        let shapes = shapes.collect::<Result<Vec<Vec<u64>>, Failure>>()?;
        let counted: Vec<(usize, &PatternCounts)> =
            counts.iter().map(|(input, counts)| (*input, counts)).collect();
        let mut request = Request::joining(expr, &counted, &shapes)?;
        request.value_bytes = V::BYTES;
        request.result = args.result;
        let tensors = tensors.into_iter().map(|(input, list)| (input, list.tensor)).collect();
        Ok(ScheduleInput { request, tensors, sources })
    }
}

/// Refuses sparse operands of too many modes.
fn check_orders(expr: &Expr, sparse: &[usize]) -> Result<(), Failure> {
    let long = sparse.iter().find(|&&input| expr.inputs[input].indices.len() > MAX_ORDER);
    let Some(&input) = long else { return Ok(()) };
    let (name, modes) = (&expr.inputs[input].tensor, expr.inputs[input].indices.len());
    Err(Failure::input(format!(
        "the sparse operand {name} has {modes} modes; tensors of up to {MAX_ORDER} are supported"
    )))
}

/// Extents that are known, each with where it is known from.
#[derive(Clone, Debug, Default)]
pub(crate) struct Known(BTreeMap<Index, (u64, String)>);

impl Known {
    /// Returns the extents that options give to indices of `expr`.
    pub(crate) fn given<'a>(
        expr: &Expr,
        options: impl Iterator<Item = &'a (Index, u64)>,
    ) -> Result<Known, Failure> {
        let mut known = Known::default();
        for &(index, extent) in options {
            if !expr.all().contains(index) {
                let why =
                    format!("`{expr}` has no index `{index}`, which is given extent {extent}");
                return Err(Failure::input(why));
            }
            known.set(index, extent, "the options")?;
        }
        Ok(known)
    }

    /// Records an extent; it must be the one that is known already.
    pub(crate) fn set(&mut self, index: Index, extent: u64, from: &str) -> Result<(), Failure> {
        match self.0.get(&index) {
            Some((before, source)) if *before != extent => Err(Failure::input(format!(
                "index `{index}` runs to {before} in {source} but to {extent} in {from}"
            ))
            .help("operands that share an index need one extent of it")),
            Some(_) => Ok(()),
            None => {
                self.0.insert(index, (extent, from.to_owned()));
                Ok(())
            }
        }
    }

    /// Returns the extent of `index`, if it is known.
    pub(crate) fn get(&self, index: Index) -> Option<u64> {
        self.0.get(&index).map(|(extent, _)| *extent)
    }

    /// Returns where the extent of `index` is known from.
    fn source(&self, index: Index) -> &str {
        self.0.get(&index).map_or("the options", |(_, source)| source)
    }
}

/// Reads lists of non-zeros, each the input of `expr` that is given with it, and sorts them.
///
/// A list whose file does not fix its extents takes those that are known, or the largest of all lists with the
/// index; all of them are known afterwards.
///
/// # Errors
///
/// A file that cannot be read, has another order than the input, or contradicts what is known.
pub(crate) fn read_lists<V: Value>(
    files: &[(usize, &Path)],
    expr: &Expr,
    known: &mut Known,
    screen: &mut Screen,
) -> Result<Vec<(usize, Input<V>)>, Failure> {
    let mut lists: Vec<(usize, Input<V>)> = Vec::with_capacity(files.len());
    for (at, &(input, file)) in files.iter().enumerate() {
        // A tensor that stands twice is read once.
        let before = files[..at].iter().position(|&(_, before)| before == file);
        let read = match before {
            Some(before) => lists[before].1.clone(),
            None => InputArgs::of_file(file).read::<V>(screen)?,
        };
        let access = &expr.inputs[input];
        if read.tensor.order() != access.indices.len() {
            let (have, want) = (read.tensor.order(), access.indices.len());
            let file = file.display();
            return Err(Failure::input(format!(
                "{file} is of order {have} but {access} has {want} indices"
            )));
        }
        lists.push((input, read));
    }
    for index in expr.all().iter().filter(|&index| known.get(index).is_none()).collect::<Vec<_>>() {
        let extent = |(input, list): &(usize, Input<V>)| {
            let mode = expr.inputs[*input].indices.iter().position(|&mode| mode == index)?;
            Some((list.tensor.extents()[mode], list.report.file.clone()))
        };
        if let Some((extent, file)) = lists.iter().filter_map(extent).max_by_key(|(n, _)| *n) {
            known.set(index, extent, &file)?;
        }
    }
    let tidy = |(input, list): (usize, Input<V>)| {
        let Input { tensor, report, blake3, hash_seconds, read_seconds } = list;
        let tensor = extend(tensor, &expr.inputs[input].indices, known, &report)?;
        let mut list = Input { tensor, report, blake3, hash_seconds, read_seconds };
        list.tidy(Duplicates::default(), screen)?;
        Ok((input, list))
    };
    lists.into_iter().map(tidy).collect()
}

/// Gives a tensor larger extents where its file does not say how large they are.
fn extend<V: Value>(
    tensor: Coo<V>,
    indices: &[Index],
    given: &Known,
    report: &ReadReport,
) -> Result<Coo<V>, Failure> {
    let (mut extents, coords, values) = tensor.into_parts();
    for (extent, &index) in extents.iter_mut().zip(indices) {
        let Some(wanted) = given.get(index).filter(|wanted| wanted != extent) else { continue };
        let open = report.extents_from == ExtentsFrom::LargestIndex;
        if wanted < *extent || !open {
            let file = &report.file;
            let source = given.source(index);
            let why =
                format!("index `{index}` runs to {extent} in {file} but to {wanted} in {source}");
            return Err(Failure::input(why).help(if open {
                "the file lists a larger index than that"
            } else {
                "the file itself says how long its modes are"
            }));
        }
        *extent = wanted;
    }
    let widths = coords.into_iter().zip(&extents).map(|(column, &extent)| widen(column, extent));
    let coords = widths.collect();
    Ok(Coo::new(extents, coords, values)?)
}

/// Makes a column wide enough for `extent`.
fn widen(column: Ints, extent: u64) -> Ints {
    if column.width().bytes() >= Width::below(extent).bytes() {
        return column;
    }
    Ints::collect(column.iter(), Width::below(extent))
}

/// The counts of an even pattern of the first input.
fn assumed(expr: &Expr, given: &Known, args: &OperandArgs) -> Result<PatternCounts, Failure> {
    let (name, indices) = (&expr.inputs[0].tensor, &expr.inputs[0].indices);
    let missing = |what: String| {
        Failure::input(what).help(format!("give --tensor {name}=FILE, or --extents and --nnz"))
    };
    let extent = |&index: &Index| {
        given.get(index).ok_or_else(|| missing(format!("index `{index}` has no extent")))
    };
    let extents: Vec<u64> = indices.iter().map(extent).collect::<Result<_, _>>()?;
    if extents.is_empty() {
        return Err(missing(format!("the sparse operand {name} has no index")));
    }
    let nnz = args.nnz.ok_or_else(|| missing(format!("how many non-zeros has {name}?")))?;
    let cells = extents.iter().fold(1_u64, |cells, &extent| cells.saturating_mul(extent));
    if nnz > cells {
        let (nnz, cells) = (grouped(nnz), grouped(cells));
        return Err(Failure::input(format!("{name} has {cells} cells, not {nnz} non-zeros")));
    }
    Ok(PatternCounts::uniform(&extents, nnz))
}

/// The extent of an index of a dense operand.
fn dense_extent(
    expr: &Expr,
    index: Index,
    known: &Known,
    args: &OperandArgs,
) -> Result<u64, Failure> {
    known.get(index).or(args.rank).ok_or_else(|| {
        Failure::input(format!("index `{index}` of `{expr}` has no extent"))
            .help(format!("give it with --dense {index}=16, or all such indices with --rank 16"))
    })
}
