//! Vector statements.
//!
//! A statement over lanes is written out vector by vector, so that every vector of a buffer in
//! registers is a variable of its own.  Rows of more than [`UNROLLED`] vectors are looped over, and
//! rows whose length must not be known.

use std::collections::BTreeSet;

use crate::codegen::assembled;
use crate::codegen::writer::Writer;
use crate::einsum::Index;
use crate::lower::{Addressing, Place, Program, Stmt, UNROLLED, Update, common_row, lanes};

/// Returns the vector lengths that the program's statements use.
pub(super) fn lane_counts(program: &Program) -> BTreeSet<u64> {
    let arrays = program.dense.iter().chain(&program.buffers).chain([&program.output]);
    let widest = arrays.map(|array| lanes(program, array.row())).max().unwrap_or(1);
    // Sums over lanes go through all shorter ones.
    std::iter::successors(Some(widest), |&width| (width > 1).then_some(width / 2)).collect()
}

/// Declares the vectors of a buffer in registers.
pub(super) fn declare(c: &mut Writer, buffer: usize) {
    let (row, width, name) = shape_of(c, buffer);
    let names: Vec<String> = (0..row / width).map(|v| format!("{name}_{v} = {{0}}")).collect();
    c.line(&format!("vec{width} {};", names.join(", ")));
}

/// Clears the vectors of a buffer in registers.
pub(super) fn clear(c: &mut Writer, buffer: usize) {
    let (row, width, name) = shape_of(c, buffer);
    let names: Vec<String> = (0..row / width).map(|v| format!("{name}_{v}")).collect();
    c.line(&format!("{} = (vec{width}){{0}};", names.join(" = ")));
}

fn shape_of(c: &Writer, buffer: usize) -> (u64, u64, String) {
    let array = &c.program.buffers[buffer];
    (array.len, lanes(c.program, array.len), array.name.clone())
}

/// Writes a product over the lanes of `index`.
pub(super) fn product(
    c: &mut Writer,
    target: Place,
    factors: &[Place],
    update: Update,
    index: Index,
) {
    c.open("{");
    let shape = prepare(c, target, factors, index);
    if target == Place::Output && c.program.is_assembled() && !shape.reduces {
        assembled::meet_row(c, index);
    }
    shape.bind_target(c);
    if let Place::Buffer(buffer) = target
        && c.program.kept.memory.contains(&buffer)
    {
        // It is in memory here, says an empty instruction.
        let array = array_of(c, buffer);
        c.line(&format!("__asm__(\"\" : \"+m\"({array}));"));
    }
    let sign = if update == Update::Assign { "=" } else { "+=" };
    if !shape.reduces && shape.written_out(c) {
        for v in 0..shape.vectors {
            let text = shape.expression(c, &v.to_string());
            let target = shape.target_at(c, &v.to_string());
            c.line(&format!("{target} {sign} {text};"));
        }
    } else if !shape.reduces {
        let vectors = c.vectors(index, shape.vectors);
        c.line(&format!("for (size_t v = 0; v < {vectors}; ++v)"));
        let text = shape.expression(c, "v");
        let target = shape.target_at(c, "v");
        c.line(&format!("    {target} {sign} {text};"));
    } else {
        reduce(c, &shape, sign);
    }
    c.close();
}

/// A buffer as an array, wherever it is.
fn array_of(c: &Writer, buffer: usize) -> String {
    let name = &c.program.buffers[buffer].name;
    match c.program.scratch().0[buffer] {
        None => name.clone(),
        Some(_) => format!("*(value (*)[{}]){name}", c.len(Place::Buffer(buffer))),
    }
}

/// Adds up a product over its lanes.
fn reduce(c: &mut Writer, shape: &Shape, sign: &str) {
    let width = shape.width;
    c.line(&format!("vec{width} lanes = {{0}};"));
    if shape.written_out(c) {
        for v in 0..shape.vectors {
            let text = shape.expression(c, &v.to_string());
            c.line(&format!("lanes += {text};"));
        }
    } else {
        let text = shape.expression(c, "v");
        let vectors = c.vectors(shape.index, shape.vectors);
        c.line(&format!("for (size_t v = 0; v < {vectors}; ++v) lanes += {text};"));
    }
    let sum = halved(c, width);
    if let (Place::Output, Addressing::Assembled(workspace)) = (shape.target, c.program.addressing)
    {
        return assembled::add(c, workspace, &sum);
    }
    let target = c.element(shape.target);
    c.line(&format!("{target} {sign} {sum};"));
}

/// Adds up the vector `lanes` by halves, each half of its length added to the other; returns the
/// name of the sum, a vector of one value, which is a value.
fn halved(c: &mut Writer, width: u64) -> String {
    let mut name = "lanes".to_owned();
    let mut half = width / 2;
    while half > 0 {
        let next = format!("lanes_{half}");
        let parts = format!("((vec{half} *)&{name})[0] + ((vec{half} *)&{name})[1]");
        c.line(&format!("const vec{half} {next} = {parts};"));
        (name, half) = (next, half / 2);
    }
    name
}

/// Writes a level loop whose whole body adds to an array over lanes, tile by tile: each tile of the
/// array stays in registers during the loop.
pub(super) fn tiled_level_loop(c: &mut Writer, level: usize, tiles: u64, body: &[Stmt]) {
    let [Stmt::Product { target, factors, lanes: Some(index), .. }] = body else {
        unreachable!("tiles of {body:?}");
    };
    let array = c.program.array(*target).expect("a row in memory");
    let (row, name) = (array.row(), array.name.clone());
    let offset = c.offset(*target, array, Some(*index));
    let width = lanes(c.program, row);
    let vectors = row / width;
    for tile in 0..tiles {
        let (first, end) = (tile * vectors / tiles, (tile + 1) * vectors / tiles);
        c.open("{");
        c.line(&format!("vec{width} *const sums = (vec{width} *)({name} + {offset});"));
        for v in first..end {
            c.line(&format!("vec{width} tile_{v} = sums[{v}];"));
        }
        c.open_level_loop(level);
        if tile == 0 {
            c.prefetches(level);
        }
        let shape = prepare(c, *target, factors, *index);
        for v in first..end {
            let text = shape.expression(c, &v.to_string());
            c.line(&format!("tile_{v} += {text};"));
        }
        c.close();
        for v in first..end {
            c.line(&format!("sums[{v}] = tile_{v};"));
        }
        c.close();
    }
}

/// A product over lanes, the row pointers of its factors and their scalar factor declared.
pub(super) struct Shape {
    target: Place,
    index: Index,
    pub(super) width: u64,
    vectors: u64,
    /// The target lacks the index: lanes are added up.
    reduces: bool,
    /// The name of the scalar factor.
    scale: Option<&'static str>,
    /// The factors over lanes, with the names of their row pointers.
    rows: Vec<(Place, String)>,
}

/// Declares the row pointers of the factors and the scalar factor of a product over the lanes of `index`.
pub(super) fn prepare(c: &mut Writer, target: Place, factors: &[Place], index: Index) -> Shape {
    let has = |place: Place| has_index(c, place, index);
    let row = common_row(c.program, target, factors, index);
    let (long, short): (Vec<Place>, Vec<Place>) = factors.iter().partition(|f| has(**f));
    let width = lanes(c.program, row);
    let reduces = !has(target);
    let scale = (!short.is_empty()).then_some("scale");
    if scale.is_some() {
        let names: Vec<String> = short.iter().map(|&place| c.element(place)).collect();
        c.line(&format!("const value scale = {};", names.join(" * ")));
    }
    let mut rows = Vec::new();
    for (at, &place) in long.iter().enumerate() {
        let name = format!("row_{at}");
        bind_row(c, place, index, (width, &name));
        rows.push((place, name));
    }
    Shape { target, index, width, vectors: row / width, reduces, scale, rows }
}

fn has_index(c: &Writer, place: Place, index: Index) -> bool {
    c.program.array(place).is_some_and(|array| array.indices.contains(&index))
}

/// Declares a pointer to the current row of `place`, unless it is in registers.
fn bind_row(c: &mut Writer, place: Place, index: Index, (width, name): (u64, &str)) {
    if matches!(place, Place::Buffer(buffer) if c.program.kept.registers.contains(&buffer)) {
        return;
    }
    let Some(array) = c.program.array(place) else { return };
    let place_text = format!("{} + {}", c.base(place), c.offset(place, array, Some(index)));
    let constant = if matches!(place, Place::Dense(_)) { "const " } else { "" };
    c.line(&format!(
        "{constant}vec{width} *const {name} = ({constant}vec{width} *)({place_text});"
    ));
}

impl Shape {
    /// Tells whether the statement is written out vector by vector.
    fn written_out(&self, c: &Writer) -> bool {
        c.literal() && self.vectors <= UNROLLED
    }

    /// The product of vector `v` of every factor.
    pub(super) fn expression(&self, c: &Writer, v: &str) -> String {
        let scale = self.scale.map(str::to_owned).into_iter();
        let rows = self.rows.iter().map(|(place, name)| self.vector_of(c, *place, name, v));
        let factors: Vec<String> = scale.chain(rows).collect();
        if self.rows.is_empty() {
            return format!("{} + (vec{}){{0}}", factors.join(" * "), self.width);
        }
        factors.join(" * ")
    }

    /// Vector `v` of the target.
    pub(super) fn target_at(&self, c: &Writer, v: &str) -> String {
        self.vector_of(c, self.target, "result", v)
    }

    /// Declares the row pointer of the target, unless lanes are added up.
    pub(super) fn bind_target(&self, c: &mut Writer) {
        if !self.reduces {
            bind_row(c, self.target, self.index, (self.width, "result"));
        }
    }

    fn vector_of(&self, c: &Writer, place: Place, name: &str, v: &str) -> String {
        match place {
            Place::Buffer(buffer) if c.program.kept.registers.contains(&buffer) => {
                debug_assert_eq!(c.program.buffers[buffer].indices, [self.index]);
                format!("{}_{v}", c.program.buffers[buffer].name)
            }
            _ => format!("{name}[{v}]"),
        }
    }
}
