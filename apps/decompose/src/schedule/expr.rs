//! Expressions and the names of their operands, as typed.

use decompose_core::einsum::{Assignment, Expr, IndexNames};
use decompose_core::kernels;

use crate::failure::Failure;

/// Parses an expression in either notation, or a named kernel; returns the names of its indices too.
pub(crate) fn parse(text: &str) -> Result<(Expr, IndexNames), Failure> {
    if !text.contains(['=', '>']) {
        return Ok((kernels::parse(text)?, IndexNames::default()));
    }
    // A text that is wrong says what is wrong with it; a sum is no fault of its own.
    let assignment: Assignment = text.parse()?;
    let names = assignment.names.clone();
    assignment.into_product().map(|expr| (expr, names)).ok_or_else(|| {
        Failure::input(format!(
            "`{text}` is not a single product of tensors, and a schedule is about one"
        ))
        .help("`decompose einsum` computes sums, diagonals and functions, and shows each schedule")
    })
}

/// Returns the inputs called `name`; a tensor may stand in an expression more than once.
pub(crate) fn inputs_called(expr: &Expr, name: &str) -> Result<Vec<usize>, Failure> {
    let inputs = expr.inputs.iter().enumerate();
    let called: Vec<usize> =
        inputs.filter(|(_, access)| access.tensor == name).map(|(input, _)| input).collect();
    if called.is_empty() {
        let mut names: Vec<&str> = expr.inputs.iter().map(|a| a.tensor.as_str()).collect();
        names.dedup();
        let have = names.join(", ");
        return Err(Failure::input(format!("`{expr}` has no operand `{name}`"))
            .help(format!("its operands are {have}")));
    }
    Ok(called)
}
