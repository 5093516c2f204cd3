//! Expressions and the names of their operands, as typed.

use decompose_core::einsum::Expr;
use decompose_core::kernels;

use crate::failure::Failure;

/// Parses an expression in either notation, or a named kernel.
pub(crate) fn parse(text: &str) -> Result<Expr, Failure> {
    let expr = if text.contains(['=', '>']) { text.parse()? } else { kernels::parse(text)? };
    Ok(expr)
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
