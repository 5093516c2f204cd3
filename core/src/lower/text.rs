//! Programs as text.

use std::fmt;

use crate::lower::ir::{Pieces, Place, Program, Stmt, Together, TreeParam, Update};
use crate::schedule::{Chunks, TreeLevel, Visited};

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "program {}", self.title)?;
        for (number, buffer) in self.buffers.iter().enumerate() {
            let extents: Vec<String> = buffer.extents.iter().map(u64::to_string).collect();
            let marked = if self.marked.contains(&number) { ", marked" } else { "" };
            let kept = if self.kept.registers.contains(&number) { ", in registers" } else { "" };
            writeln!(f, "buffer {} [{}]{marked}{kept}", buffer.name, extents.join(" x "))?;
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
            Stmt::LevelLoop { lead, located, together, body } => {
                let index = program.index_of(*lead);
                let level = |at: &Visited| visited_text(program, *at);
                let joined: Vec<String> = std::iter::once(lead).chain(located).map(level).collect();
                let together = together_text(*together);
                writeln!(f, "{pad}for {index} in {}{together}", joined.join(" and "))?;
                write_stmts(program, body, depth + 1, f)?;
            }
            Stmt::Union { leads, body } => {
                let level = |at: &TreeLevel| visited_text(program, Visited::Level(*at));
                let united: Vec<String> = leads.iter().map(level).collect();
                let index = leads.first().map(|&at| program.level(at).index.to_string());
                let index = index.unwrap_or_default();
                writeln!(f, "{pad}for {index} in {}", united.join(" or "))?;
                write_stmts(program, body, depth + 1, f)?;
            }
            Stmt::Within { lead, body } => {
                writeln!(f, "{pad}if in {}", visited_text(program, Visited::Level(*lead)))?;
                write_stmts(program, body, depth + 1, f)?;
            }
            Stmt::DenseLoop { index, extent, together, body } => {
                writeln!(f, "{pad}for {index} in 0..{extent}{}", together_text(*together))?;
                write_stmts(program, body, depth + 1, f)?;
            }
            Stmt::Append { outside } => {
                let at: Vec<String> = outside.iter().map(ToString::to_string).collect();
                writeln!(f, "{pad}append {} at ({})", program.output.name, at.join(","))?;
            }
            Stmt::Mark { buffer } => {
                let array = &program.buffers[*buffer];
                writeln!(f, "{pad}mark {} at {}", array.name, array.indices[0])?;
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

/// Which iterations are taken together, as a loop says it.
fn together_text(together: Together) -> String {
    match together {
        Together::One => String::new(),
        Together::Sums { parts } => format!(", {parts} sums"),
        Together::Tiles { tiles: 1 } => ", row in 1 tile".into(),
        Together::Tiles { tiles } => format!(", row in {tiles} tiles"),
        Together::Batch { nodes } => format!(", {nodes} at a time"),
        Together::ShortRows { nodes } => format!(", rows of up to {nodes} nodes at once"),
    }
}

fn visited_text(program: &Program, at: Visited) -> String {
    let (tree, at) = match at {
        Visited::Level(at) => (&program.trees[at.tree], at.level),
        Visited::Buffer(buffer) => {
            return format!("marked cells of {}", program.buffers[buffer].name);
        }
    };
    let kind = tree.levels[at].kind.adjective();
    let level = format!("{kind}level {} of {}", tree.stored_place(at) + 1, tree.name);
    let pieces = |Pieces { command, factor, chunks }| {
        let strided = if chunks == Chunks::Strided { ", strided" } else { "" };
        format!("pieces of {level} ({command} {factor}{strided})")
    };
    tree.levels[at].pieces.map_or(level.clone(), pieces)
}

fn place_text(program: &Program, place: Place) -> String {
    let (name, indices) = match (place, program.array(place)) {
        (_, Some(array)) => (array.name.as_str(), array.indices.clone()),
        (Place::Value(tree), None) => {
            let TreeParam { name, levels } = &program.trees[tree];
            (name.as_str(), levels.iter().map(|level| level.index).collect())
        }
        (_, None) => ("", Vec::new()),
    };
    let indices: Vec<String> = indices.iter().map(|index| index.to_string()).collect();
    format!("{name}({})", indices.join(","))
}
