//! What is scheduled: the expression with all that is known of its operands.

use std::path::Path;

use decompose_common::progress::Screen;
use decompose_core::compute::suited_form;
use decompose_core::contract::{Request, ResultForm, count_join};
use decompose_core::einsum::{Access, Assignment, Expr, Index, IndexNames};
use decompose_core::kernels::MAX_ORDER;
use decompose_core::schedule::Format;
use decompose_formats::io::{ExtentsFrom, ReadReport};
use decompose_formats::stats::grouped;
use decompose_formats::{Coo, Duplicates, Ints, PatternCounts, Value, Width};

use crate::failure::Failure;
use crate::input::{Input, InputArgs};
use crate::run::memory;
use crate::schedule::args::{OperandArgs, check_given_once};
use crate::schedule::expr;
use crate::schedule::extents::Known;
use crate::schedule::result_format::{refuse_array, result_form};

/// A request, and the sparse operands if there are files of them.
pub(crate) struct ScheduleInput<V: Value> {
    pub(crate) request: Request,
    /// By input; none where no file is given.
    pub(crate) tensors: Vec<(usize, Coo<V>)>,
    /// Non-zeros of each sparse operand, and where it comes from, for people.
    pub(crate) sources: Vec<(u64, String)>,
    /// The names of indices.
    pub(crate) names: IndexNames,
}

impl<V: Value> ScheduleInput<V> {
    /// Reads the tensors that are given, and gives every index its extent.
    pub(crate) fn new(
        (expr, names): (Expr, IndexNames),
        (args, formats): (&OperandArgs, &[(String, Format)]),
        screen: &mut Screen,
    ) -> Result<ScheduleInput<V>, Failure> {
        let assignment = Assignment { names: names.clone(), ..Assignment::from(expr.clone()) };
        let options = args.extents.iter().chain(&args.dense);
        let mut known = Known::given(std::slice::from_ref(&assignment), options)?;
        let mut files: Vec<(usize, &Path)> = Vec::new();
        check_given_once(&args.tensor)?;
        for binding in &args.tensor {
            let inputs = expr::inputs_called(&expr, &binding.name)?.into_iter();
            files.extend(inputs.map(|input| (input, binding.file.as_path())));
        }
        let sparse: Vec<usize> = match files.is_empty() {
            true => expr::inputs_called(&expr, &expr.inputs[0].tensor)?,
            false => files.iter().map(|(input, _)| *input).collect(),
        };
        check_orders(&expr, &sparse)?;
        let form = result_form(&expr.output, formats)?;
        let lists: Vec<(&Access, &Path)> =
            files.iter().map(|&(input, file)| (&expr.inputs[input], file)).collect();
        let tensors = read_lists::<V>(&lists, &mut known, screen)?;
        let tensors: Vec<(usize, Input<V>)> =
            files.iter().map(|(input, _)| *input).zip(tensors).collect();
        let (counts, sources) = match files.is_empty() {
            true => {
                let counts = assumed(&expr, &known, args)?;
                screen.line(format!(
                    "pattern  no file is given for {}: its non-zeros are taken to be spread evenly",
                    expr.inputs[0].tensor
                ));
                let source = (counts.nnz(), "spread evenly".to_owned());
                let all = sparse.iter().map(|&input| (input, counts.clone()));
                (all.collect(), vec![source; sparse.len()])
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
            let modes = access.indices.iter().enumerate();
            let of = |(mode, _)| dense_extent((access, mode), &expr, &known, args);
            match sparse.contains(&input) {
                true => Ok(Vec::new()),
                false => modes.map(of).collect(),
            }
        });
        let shapes = shapes.collect::<Result<Vec<Vec<u64>>, Failure>>()?;
        let counted: Vec<(usize, &PatternCounts)> =
            counts.iter().map(|(input, counts)| (*input, counts)).collect();
        let mut request = Request::joining(expr, &counted, &shapes)?;
        request.value_bytes = V::BYTES;
        let tensors: Vec<(usize, Coo<V>)> =
            tensors.into_iter().map(|(input, list)| (input, list.tensor)).collect();
        if tensors.len() > 1 {
            let inputs = &request.expr.inputs;
            let operands = tensors.iter().map(|(input, list)| (&inputs[*input], list));
            let operands: Vec<_> = operands.collect();
            let output = request.expr.output.set();
            let (join, _) = screen.phase("join", || count_join(&operands, output));
            request.join = Some(join);
        }
        if form == Some(ResultForm::Dense) && request.problem_on(&[]).has_pattern_output() {
            return Err(refuse_array(&assignment.named(&assignment.output)));
        }
        request.result = match form {
            Some(form) => form,
            None if request.sparse.len() > 1 => suited_form(&request.problem_on(&[])),
            None => ResultForm::Dense,
        };
        Ok(ScheduleInput { request, tensors, sources, names })
    }
}

/// Refuses sparse operands of too many modes.
fn check_orders(expr: &Expr, sparse: &[usize]) -> Result<(), Failure> {
    let long = sparse.iter().find(|&&input| expr.inputs[input].indices.len() > MAX_ORDER);
    let Some(&input) = long else { return Ok(()) };
    let (name, modes) = (&expr.inputs[input].tensor, expr.inputs[input].indices.len());
    Err(Failure::input(format!(
        "the sparse operand {name} has {modes} modes; tensors of up to {MAX_ORDER} are supported"
    ))
    .help("take indices together that always go together, or give another operand with --tensor"))
}

/// Reads lists of non-zeros, each the tensor that is given with its number of modes, and sorts them.
///
/// A list whose file does not fix its extents takes those that are known, or the largest of all lists with the
/// index; all of them are known afterwards.
///
/// # Errors
///
/// A file that cannot be read, is of another order, or contradicts what is known.
pub(crate) fn read_lists<V: Value>(
    files: &[(&Access, &Path)],
    known: &mut Known,
    screen: &mut Screen,
) -> Result<Vec<Input<V>>, Failure> {
    let mut lists: Vec<Input<V>> = Vec::with_capacity(files.len());
    for (at, &(access, file)) in files.iter().enumerate() {
        // A file that several tensors have is read once.
        let before = files[..at].iter().position(|&(_, before)| before == file);
        let read = match before {
            Some(before) => lists[before].share(),
            None => InputArgs::of_file(file).read::<V>(screen)?,
        };
        if read.tensor.order() != access.indices.len() {
            let (have, want) = (read.tensor.order(), access.indices.len());
            let (file, access) = (file.display(), known.named(access));
            return Err(Failure::input(format!(
                "{file} is of order {have} but {access} has {want} indices"
            )));
        }
        lists.push(read);
    }
    largest(files, &lists, known)?;
    let tidy = |(&(access, _), list): (&(&Access, &Path), Input<V>)| {
        let Input { tensor, report, blake3, hash_seconds, read_seconds } = list;
        let tensor = extend(tensor, &access.tensor, known, &report)?;
        memory::sort_of(&tensor)?;
        let mut list = Input { tensor, report, blake3, hash_seconds, read_seconds };
        list.tidy(Duplicates::default(), screen)?;
        Ok(list)
    };
    files.iter().zip(lists).map(tidy).collect()
}

/// Gives every index whose extent is not known the largest that a list shows.
fn largest<V: Value>(
    files: &[(&Access, &Path)],
    lists: &[Input<V>],
    known: &mut Known,
) -> Result<(), Failure> {
    let modes = |(&(access, _), list): (&(&Access, &Path), &Input<V>)| {
        let extents = list.tensor.extents().to_vec().into_iter().enumerate();
        let (tensor, file) = (access.tensor.clone(), list.report.file.clone());
        extents
            .map(move |(mode, extent)| (extent, tensor.clone(), mode, file.clone()))
            .collect::<Vec<_>>()
    };
    let mut shown: Vec<(u64, String, usize, String)> =
        files.iter().zip(lists).flat_map(modes).collect();
    // The largest first, and of equal ones the first in the text: the sort is stable.
    shown.sort_by_key(|(extent, ..)| std::cmp::Reverse(*extent));
    for (extent, tensor, mode, file) in &shown {
        if known.get((tensor, *mode)).is_none() {
            known.set((tensor, *mode), *extent, file)?;
        }
    }
    Ok(())
}

/// Gives a tensor larger extents where its file does not say how large they are.
fn extend<V: Value>(
    tensor: Coo<V>,
    name: &str,
    known: &Known,
    report: &ReadReport,
) -> Result<Coo<V>, Failure> {
    let (mut extents, coords, values) = tensor.into_parts();
    let shape = extents.clone();
    for (mode, extent) in extents.iter_mut().enumerate() {
        let Some(wanted) = known.get((name, mode)).filter(|wanted| wanted != extent) else {
            continue;
        };
        let open = report.extents_from == ExtentsFrom::LargestIndex;
        if wanted < *extent || !open {
            let (file, index) = (&report.file, known.index((name, mode)));
            let source = known.source((name, mode));
            let why =
                format!("index `{index}` runs to {extent} in {file} but to {wanted} in {source}");
            let have = if open { "the file lists indices up to" } else { "the file says it has" };
            let all = shape.iter().map(u64::to_string).collect::<Vec<_>>().join(" x ");
            let indices = (0..shape.len()).map(|mode| known.index((name, mode)));
            let indices = indices.collect::<Vec<_>>().join(", ");
            return Err(Failure::input(why)
                .help(format!("{have} {all} for {indices}; give each index its own extent")));
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
    let extent = |(mode, _): (usize, &Index)| {
        let known = given.get((name, mode));
        let index = given.index((name, mode));
        known.ok_or_else(|| missing(format!("index `{index}` has no extent")))
    };
    let extents: Vec<u64> = indices.iter().enumerate().map(extent).collect::<Result<_, _>>()?;
    if extents.is_empty() {
        return Err(missing(format!("the sparse operand {name} has no index")));
    }
    let nnz = args.nnz.ok_or_else(|| missing(format!("how many non-zeros has {name}?")))?;
    let cells = extents.iter().fold(1_u64, |cells, &extent| cells.saturating_mul(extent));
    if nnz > cells {
        let (nnz, cells) = (grouped(nnz), grouped(cells));
        let why = format!("{name} has {cells} cells, not {nnz} non-zeros");
        return Err(
            Failure::input(why).help(format!("give --nnz {cells} at most, or larger --extents"))
        );
    }
    Ok(PatternCounts::uniform(&extents, nnz))
}

/// The extent of an index of a dense operand.
fn dense_extent(
    (access, mode): (&Access, usize),
    expr: &Expr,
    known: &Known,
    args: &OperandArgs,
) -> Result<u64, Failure> {
    known.get((&access.tensor, mode)).or(args.rank).ok_or_else(|| {
        let index = known.index((&access.tensor, mode));
        Failure::input(format!("index `{index}` of `{expr}` has no extent"))
            .help(format!("give it with --dense {index}=16, or all such indices with --rank 16"))
    })
}
