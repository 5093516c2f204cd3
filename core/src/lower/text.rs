//! Programs as text.

use std::fmt;

use crate::lower::ir::{Place, Program, Stmt, Update};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program {}", self.title)?;
        for buffer in &self.buffers {
            let extents: Vec<String> = buffer.extents.iter().map(u64::to_string).collect();
            writeln!(f, "buffer {} [{}]", buffer.name, extents.join(" x "))?;
        }
        write_stmts(self, &self.body, 0, f)
    }
}

fn write_stmts(
    program: &Program,
    stmts: &[Stmt],
    depth: usize,
    f: &mut fmt::Formatter<'_>,
) -> fmt::Result {
    let pad = "  ".repeat(depth);
    for stmt in stmts {
        match stmt {
            Stmt::Walk { level, body } => {
                let index = program.levels[*level].index;
                writeln!(f, "{pad}for {index} in level {} of {}", level + 1, program.sparse)?;
                write_stmts(program, body, depth + 1, f)?;
            }
            Stmt::Range { index, extent, body } => {
                writeln!(f, "{pad}for {index} in 0..{extent}")?;
                write_stmts(program, body, depth + 1, f)?;
            }
            Stmt::Clear { buffer } => writeln!(f, "{pad}{} = 0", program.buffers[*buffer].name)?,
            Stmt::Product { target, factors, update, lanes } => {
                let factors: Vec<String> =
                    factors.iter().map(|&place| place_text(program, place)).collect();
                let sign = if *update == Update::Assign { "=" } else { "+=" };
                let lanes = lanes.map_or(String::new(), |index| format!("   over lanes {index}"));
                let target = place_text(program, *target);
                writeln!(f, "{pad}{target} {sign} {}{lanes}", factors.join(" * "))?;
            }
        }
    }
    Ok(())
}

fn place_text(program: &Program, place: Place) -> String {
    let (name, indices) = match program.array(place) {
        Some(array) => (array.name.as_str(), array.indices.clone()),
        None => (program.sparse.as_str(), program.levels.iter().map(|l| l.index).collect()),
    };
    let indices: Vec<String> = indices.iter().map(|index| index.to_string()).collect();
    format!("{name}({})", indices.join(","))
}
