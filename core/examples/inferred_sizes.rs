//! Prints how many elements results are inferred to have, beside the exact numbers.
//!
//! ```text
//! cargo run --release -p decompose-core --example inferred_sizes -- FILE...
//! ```
//!
//! Of each square matrix `A` the results are `A A`, `A A^T`, `A A A`, the rows of `A A`, and the elements of `A A` that `A`
//! has. They are inferred from the numbers of non-zeros alone, from counts of coordinate tuples, and from
//! a sample of the join.  Prints
//! `matrix,result,known,inferred,exact`.

use std::error::Error;
use std::io::{self, Write};

use decompose_core::contract::{Request, ResultForm, count_join};
use decompose_core::einsum::{Expr, IndexSet};
use decompose_core::schedule::{Pattern, infer};
use decompose_formats::io::{Progress, ReadOptions, Source, read};
use decompose_formats::{Coo, PatternCounts};

/// The results: a name, the expression, and how the exact number is counted.
const RESULTS: [(&str, &str, Exact); 5] = [
    ("A A", "Y(i,k) = X(i,j) * Z(j,k)", Exact::Elements),
    ("A A^T", "Y(i,k) = X(i,j) * Z(k,j)", Exact::Transposed),
    ("A A A", "Y(i,l) = X(i,j) * Z(j,k) * W(k,l)", Exact::Twice),
    ("rows of A A", "y(i) = X(i,j) * Z(j,k)", Exact::Rows),
    ("A A in A", "Y(i,k) = X(i,j) * Z(j,k) * W(i,k)", Exact::Masked),
];

/// What is counted of the rows of a product.
#[derive(Clone, Copy)]
enum Exact {
    Elements,
    Transposed,
    Twice,
    Rows,
    Masked,
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut out = io::stdout().lock();
    writeln!(out, "matrix,result,known,inferred,exact")?;
    for file in std::env::args().skip(1) {
        let (list, _) =
            read::<f64>(&Source::new(&file), &ReadOptions::default(), &Progress::new())?;
        let rows = Rows::of(&list);
        let transposed = Rows::of(&turned(&list)?);
        for (name, expr, exact) in RESULTS {
            let exact = rows.count(&transposed, exact);
            for (known, inferred) in estimates(expr, &list)? {
                writeln!(out, "{file},{name},{known},{inferred:.0},{exact}")?;
            }
        }
    }
    Ok(())
}

/// Returns what is inferred of the result of `expr`, all of whose operands are `list`, by what is known.
fn estimates(expr: &str, list: &Coo<f64>) -> Result<Vec<(&'static str, f64)>, Box<dyn Error>> {
    let expr: Expr = expr.parse()?;
    let counts = PatternCounts::of(list);
    let inputs = expr.inputs.len();
    let counted: Vec<(usize, &PatternCounts)> = (0..inputs).map(|at| (at, &counts)).collect();
    let mut request = Request::joining(expr, &counted, &vec![Vec::new(); inputs])?;
    request.result = ResultForm::Sparse;
    let mut known = vec![("counts", infer(&request.problem_on(&[])).elements)];
    for sparse in &mut request.sparse {
        let all: IndexSet = request.expr.inputs[sparse.input].indices.iter().copied().collect();
        sparse.pattern = Pattern::from_iter([(all, list.nnz() as u64)]);
    }
    known.push(("non-zeros", infer(&request.problem_on(&[])).elements));
    let operands: Vec<_> = request.expr.inputs.iter().map(|access| (access, list)).collect();
    request.join = Some(count_join(&operands, request.expr.output.set()));
    known.push(("join", infer(&request.problem_on(&[])).elements));
    Ok(known)
}

/// Returns the transpose of a matrix.
fn turned(list: &Coo<f64>) -> Result<Coo<f64>, Box<dyn Error>> {
    let (mut extents, mut coords, values) = list.clone().into_parts();
    extents.reverse();
    coords.reverse();
    Ok(Coo::new(extents, coords, values)?)
}

/// The columns of each row of a matrix.
struct Rows(Vec<Vec<usize>>);

impl Rows {
    fn of(list: &Coo<f64>) -> Rows {
        let mut rows = vec![Vec::new(); list.extents()[0] as usize];
        for entry in 0..list.nnz() {
            rows[list.coords(0).get(entry) as usize].push(list.coords(1).get(entry) as usize);
        }
        Rows(rows)
    }

    /// Counts exactly what is asked of the products of the matrix.
    fn count(&self, transposed: &Rows, exact: Exact) -> u64 {
        let columns = self.0.len().max(transposed.0.len());
        let mut seen = [vec![usize::MAX; columns], vec![usize::MAX; columns]];
        let [seen, seen_twice] = &mut seen;
        let mut count = 0;
        for (row, own) in self.0.iter().enumerate() {
            let other = if matches!(exact, Exact::Transposed) { transposed } else { self };
            let product = other.reached(own, (row, &mut *seen));
            count += match exact {
                Exact::Elements | Exact::Transposed => product.len(),
                Exact::Twice => self.reached(&product, (row, &mut *seen_twice)).len(),
                Exact::Rows => usize::from(!product.is_empty()),
                Exact::Masked => own.iter().filter(|&&column| seen[column] == row).count(),
            };
        }
        count as u64
    }

    /// Returns the columns of the rows `from`, each once; `seen` keeps the number of the last row in which a column was met.
    fn reached(&self, from: &[usize], (row, seen): (usize, &mut [usize])) -> Vec<usize> {
        let mut reached = Vec::new();
        for &column in from.iter().flat_map(|&at| &self.0[at]) {
            if seen[column] != row {
                seen[column] = row;
                reached.push(column);
            }
        }
        reached
    }
}
