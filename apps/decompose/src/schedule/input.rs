//! What is scheduled: the expression with all that is known of its operands.

use std::collections::BTreeMap;
use std::path::Path;

use decompose_common::progress::Screen;
use decompose_core::contract::Request;
use decompose_core::einsum::{Expr, Index};
use decompose_core::kernels::MAX_ORDER;
use decompose_formats::io::{ExtentsFrom, ReadReport};
use decompose_formats::stats::grouped;
use decompose_formats::{Coo, Ints, PatternCounts, Value, Width};

use crate::failure::Failure;
use crate::input::{Input, InputArgs};
use crate::schedule::args::OperandArgs;
use crate::schedule::expr;

/// A request, and the sparse operand if there is a file of it.
pub(crate) struct ScheduleInput<V: Value> {
    pub(crate) request: Request,
    pub(crate) tensor: Option<Coo<V>>,
    pub(crate) nnz: u64,
    /// Where the sparse operand comes from, for people.
    pub(crate) source: String,
}

impl<V: Value> ScheduleInput<V> {
    /// Reads the tensor if there is one, and gives every index its extent.
    pub(crate) fn new(
        expr: Expr,
        args: &OperandArgs,
        screen: &mut Screen,
    ) -> Result<ScheduleInput<V>, Failure> {
        let given = Known::given(&expr, args.extents.iter().chain(&args.dense))?;
        let sparse = match &args.tensor {
            Some(binding) => expr::sparse_input(&expr, &binding.name)?,
            None => 0,
        };
        let indices = &expr.inputs[sparse].indices;
        if indices.len() > MAX_ORDER {
            let (name, modes) = (&expr.inputs[sparse].tensor, indices.len());
            return Err(Failure::input(format!(
                "the sparse operand {name} has {modes} modes; tensors of up to {MAX_ORDER} are supported"
            )));
        }
        let (tensor, counts, source) = match &args.tensor {
            Some(binding) => {
                let tensor = read_sparse::<V>(&binding.file, &expr, sparse, &given, screen)?.tensor;
                let counts = screen.phase("count", || PatternCounts::of(&tensor)).0;
                (Some(tensor), counts, binding.file.display().to_string())
            }
            None => (None, assumed(&expr, indices, &given, args)?, "spread evenly".to_owned()),
        };
        if tensor.is_none() {
            screen.line(format!(
                "pattern  no file is given for {}: its non-zeros are taken to be spread evenly",
                expr.inputs[sparse].tensor
            ));
        }
        let shapes = expr.inputs.iter().enumerate().map(|(input, access)| {
            let of = |index: &Index| dense_extent(&expr, *index, (indices, &counts), &given, args);
            match input == sparse {
                true => Ok(Vec::new()),
                false => access.indices.iter().map(of).collect(),
            }
        });
        let shapes = shapes.collect::<Result<Vec<Vec<u64>>, Failure>>()?;
        let nnz = counts.nnz();
        let mut request = Request::new(expr, sparse, &counts, &shapes)?;
        request.value_bytes = V::BYTES;
        Ok(ScheduleInput { request, tensor, nnz, source })
    }
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

/// Reads the sparse operand `input` of `expr`, sorts it, and gives its modes the extents that are
/// `given` where the file does not fix them.
pub(crate) fn read_sparse<V: Value>(
    file: &Path,
    expr: &Expr,
    input: usize,
    given: &Known,
    screen: &mut Screen,
) -> Result<Input<V>, Failure> {
    let args = InputArgs::of_file(file);
    let read = args.read::<V>(screen)?;
    let access = &expr.inputs[input];
    if read.tensor.order() != access.indices.len() {
        let (have, want) = (read.tensor.order(), access.indices.len());
        let file = file.display();
        return Err(Failure::input(format!(
            "{file} is of order {have} but {access} has {want} indices"
        )));
    }
    let Input { tensor, report, blake3, hash_seconds, read_seconds } = read;
    let tensor = extend(tensor, &access.indices, given, &report)?;
    let mut input = Input { tensor, report, blake3, hash_seconds, read_seconds };
    input.tidy(args.duplicates(), screen)?;
    Ok(input)
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

/// The counts of an even pattern.
fn assumed(
    expr: &Expr,
    indices: &[Index],
    given: &Known,
    args: &OperandArgs,
) -> Result<PatternCounts, Failure> {
    let name = &expr.inputs[0].tensor;
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
    (sparse, counts): (&[Index], &PatternCounts),
    given: &Known,
    args: &OperandArgs,
) -> Result<u64, Failure> {
    if let Some(mode) = sparse.iter().position(|&other| other == index) {
        return Ok(counts.extents()[mode]);
    }
    given.get(index).or(args.rank).ok_or_else(|| {
        Failure::input(format!("index `{index}` of `{expr}` has no extent"))
            .help(format!("give it with --dense {index}=16, or all such indices with --rank 16"))
    })
}
