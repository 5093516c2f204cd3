//! Branched loop nests as the paper of SparseAuto writes them: each branch is a producer and its consumer.
//!
//! ```text
//! section := loops body
//! body    := product | <T; producer, consumer>        producer, consumer := section
//! ```
//!
//! A *linear* section has a product as its body.  [`Directive`] splits it or reorders its loops.
//! [`Branched::notation`] prints the whole as `i, j' <t; k' : t += B_ijk*E_kn, l : A_il += t*C_il>`; a loop that walks a level below
//! the root of a sparse operand is marked, as `j'`.
//!
//! Source: Dias et al., "SparseAuto: An Auto-scheduler for Sparse Tensor Computations using Recursive Loop Nest
//! Restructuring", OOPSLA 2024, sections 4.2 to 4.4.

use crate::einsum::{Expr, Index, IndexSet};
use crate::nest::{Forest, Node, Place};
use crate::path::{Path, Source, live_indices};
use crate::schedule::Problem;
use crate::schedule::directive::Directive;

/// A nest of branches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branched {
    expr: Expr,
    root: Section,
    /// The indices of each result that is handed on, by number.
    made: Vec<IndexSet>,
}

/// Loops around a product or a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Section {
    loops: Vec<Index>,
    body: Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Body {
    Product(Vec<Factor>),
    Branch { made: usize, producer: Box<Section>, consumer: Box<Section> },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Factor {
    Input(usize),
    /// The result of a producer, by number.
    Made(usize),
}

impl Branched {
    /// Returns the branches of `nest`: a term parts from its consumer where they share no more loops.
    ///
    /// `None` if `nest` does not hold the terms of `path`, or if terms share loops that do not lie between a producer and
    /// its consumer.
    pub fn of(expr: &Expr, path: &Path, nest: &Forest) -> Option<Branched> {
        let places = nest.places(path.terms.len()).filter(|places| !places.is_empty())?;
        let reader = Reader { path, places };
        let made = path.terms[..path.terms.len() - 1].iter().map(|term| term.output).collect();
        let root = reader.section((0..path.terms.len()).collect(), 0)?;
        let branched = Branched { expr: expr.clone(), root, made };
        let (_, back) = branched.nest();
        let shared = |nest: &Forest| {
            let mut pairs: Vec<usize> = nest_lengths(&nest.roots);
            pairs.sort_unstable();
            pairs
        };
        (shared(&back) == shared(nest)).then_some(branched)
    }

    /// Returns the path and the nest.
    pub fn nest(&self) -> (Path, Forest) {
        let mut terms = Terms { products: Vec::new(), term_of: vec![0; self.made.len()] };
        let roots = terms.nodes(&self.root, None);
        (Path::of_products(&terms.products, &self.expr), Forest { roots })
    }

    /// Applies a directive.
    ///
    /// # Errors
    ///
    /// A path to no linear section, a split behind the last factor, or an order of other loops.
    pub fn apply(&mut self, directive: &Directive) -> Result<(), String> {
        let linear = |path: &[usize]| {
            let path = path.iter().map(usize::to_string).collect::<Vec<_>>().join(",");
            format!("{{{path}}} leads to no linear section")
        };
        let (path, output) = (directive.path(), self.output(directive.path()));
        let output = output.ok_or_else(|| linear(path))?;
        let (expr, mut made) = (self.expr.clone(), self.made.clone());
        let section = self.section_mut(path).ok_or_else(|| linear(path))?;
        let Body::Product(factors) = &section.body else { return Err(linear(path)) };
        match directive {
            Directive::Reorder { order, .. } => {
                let sorted = |loops: &[Index]| {
                    let mut loops = loops.to_vec();
                    loops.sort_unstable();
                    loops
                };
                if sorted(order) != sorted(&section.loops) {
                    let have: String = section.loops.iter().map(|index| index.letter()).collect();
                    return Err(format!("the loops to be reordered are {have}"));
                }
                section.loops.clone_from(order);
            }
            Directive::Loopfuse { loc, pol, fuse, .. } => {
                let sides = factors.split_at_checked(*loc);
                let sides = sides.filter(|(left, right)| !left.is_empty() && !right.is_empty());
                let Some((left, right)) = sides else {
                    let last = factors.len() - 1;
                    return Err(format!(
                        "a product of {} is split behind factor 1 to {last}",
                        factors.len()
                    ));
                };
                let (producer, rest) = if *pol { (left, right) } else { (right, left) };
                let own = indices(&expr, &made, producer);
                let handed = live_indices(own, indices(&expr, &made, rest) | output);
                let read = indices(&expr, &made, rest) | handed;
                let number = made.len();
                made.push(handed);
                let mut consumer = rest.to_vec();
                consumer.insert(if *pol { 0 } else { rest.len() }, Factor::Made(number));
                let both =
                    section.loops.iter().take_while(|&&i| own.contains(i) && read.contains(i));
                let fused = both.count().min(fuse.unwrap_or(usize::MAX));
                let inner = |set: IndexSet, factors: &[Factor]| {
                    let loops = section.loops[fused..].iter().copied().filter(|&i| set.contains(i));
                    Box::new(Section {
                        loops: loops.collect(),
                        body: Body::Product(factors.to_vec()),
                    })
                };
                let (producer, consumer) = (inner(own, producer), inner(read, &consumer));
                section.loops.truncate(fused);
                section.body = Body::Branch { made: number, producer, consumer };
            }
        }
        self.made = made;
        Ok(())
    }

    fn section_mut(&mut self, path: &[usize]) -> Option<&mut Section> {
        path.iter().try_fold(&mut self.root, |section, &side| match (&mut section.body, side) {
            (Body::Branch { producer, .. }, 0) => Some(&mut **producer),
            (Body::Branch { consumer, .. }, 1) => Some(&mut **consumer),
            _ => None,
        })
    }

    /// The indices of what the section at `path` makes.
    fn output(&self, path: &[usize]) -> Option<IndexSet> {
        let start = (&self.root, self.expr.output.set());
        let found =
            path.iter().try_fold(start, |(section, output), &side| match (&section.body, side) {
                (Body::Branch { producer, made, .. }, 0) => Some((&**producer, self.made[*made])),
                (Body::Branch { consumer, .. }, 1) => Some((&**consumer, output)),
                _ => None,
            });
        found.map(|(_, output)| output)
    }

    /// Writes it in the notation of the paper, with the levels that `problem` walks marked.
    pub fn notation(&self, problem: &Problem) -> String {
        let output = (self.expr.output.tensor.clone(), self.expr.output.indices.clone());
        Notation { branched: self, problem, names: self.expr.operand_names() }.section(
            &self.root,
            &mut Vec::new(),
            &output,
            &mut vec![None; self.made.len()],
        )
    }
}

/// The lengths of all bodies: equal for nests with the same branches, whatever the order of siblings.
fn nest_lengths(nodes: &[Node]) -> Vec<usize> {
    let inner = nodes.iter().flat_map(|node| match node {
        Node::Loop { index, body } => {
            let own = index.number() * 100 + body.len();
            [vec![own], nest_lengths(body)].concat()
        }
        Node::Term(_) => Vec::new(),
    });
    inner.chain([nodes.len()]).collect()
}

fn indices(expr: &Expr, made: &[IndexSet], factors: &[Factor]) -> IndexSet {
    factors.iter().fold(IndexSet::EMPTY, |set, factor| match *factor {
        Factor::Input(input) => set | expr.looped(input),
        Factor::Made(number) => set | made[number],
    })
}

/// Reads sections off a nest.
struct Reader<'a> {
    path: &'a Path,
    places: Vec<Vec<Place>>,
}

impl Reader<'_> {
    /// The section of `terms`, all inside the same first `depth` loops.
    fn section(&self, terms: Vec<usize>, depth: usize) -> Option<Section> {
        let consumer = |term: usize| self.path.consumer(term).filter(|c| terms.contains(c));
        let edges = terms.iter().filter_map(|&term| {
            let pairs = self.places[term].iter().zip(&self.places[consumer(term)?]);
            Some((pairs.take_while(|(a, b)| a.0 == b.0).count(), term))
        });
        let Some((shared, cut)) = edges.min() else {
            let &term = terms.first()?;
            let factor = |source: &Source| match *source {
                Source::Input(input) => Factor::Input(input),
                Source::Term(term) => Factor::Made(term),
            };
            let factors = self.path.terms[term].inputs.iter().map(factor).collect();
            return Some(Section { loops: self.loops(term, depth), body: Body::Product(factors) });
        };
        // Those whose results reach the cut.
        let mut below = vec![cut];
        for &term in terms.iter().rev() {
            if consumer(term).is_some_and(|c| below.contains(&c)) && term != cut {
                below.push(term);
            }
        }
        below.sort_unstable();
        let rest = terms.iter().copied().filter(|term| !below.contains(term)).collect();
        let mut loops = self.loops(cut, depth);
        loops.truncate(shared.checked_sub(depth)?);
        let producer = Box::new(self.section(below, shared)?);
        let consumer = Box::new(self.section(rest, shared)?);
        Some(Section { loops, body: Body::Branch { made: cut, producer, consumer } })
    }

    fn loops(&self, term: usize, depth: usize) -> Vec<Index> {
        self.places[term].iter().skip(depth).map(|place| place.1).collect()
    }
}

/// Writes sections as products in order.
struct Terms {
    products: Vec<Vec<Source>>,
    /// The term that makes each result.
    term_of: Vec<usize>,
}

impl Terms {
    fn nodes(&mut self, section: &Section, made: Option<usize>) -> Vec<Node> {
        let inner = match &section.body {
            Body::Product(factors) => {
                let source = |factor: &Factor| match *factor {
                    Factor::Input(input) => Source::Input(input),
                    Factor::Made(number) => Source::Term(self.term_of[number]),
                };
                let product = factors.iter().map(source).collect();
                self.products.push(product);
                if let Some(made) = made {
                    self.term_of[made] = self.products.len() - 1;
                }
                vec![Node::Term(self.products.len() - 1)]
            }
            Body::Branch { made: number, producer, consumer } => {
                let mut nodes = self.nodes(producer, Some(*number));
                nodes.extend(self.nodes(consumer, made));
                nodes
            }
        };
        section.loops.iter().rev().fold(inner, |body, &index| vec![Node::Loop { index, body }])
    }
}

/// Writes a nest for people.
struct Notation<'a> {
    branched: &'a Branched,
    problem: &'a Problem,
    names: Vec<String>,
}

/// A result: its name and its indices.
type Named = (String, Vec<Index>);

impl Notation<'_> {
    fn section(
        &self,
        section: &Section,
        around: &mut Vec<Index>,
        output: &Named,
        made: &mut Vec<Option<Named>>,
    ) -> String {
        let before = around.len();
        let mut loops = Vec::new();
        for &index in &section.loops {
            let walked = |x: &crate::schedule::SparseOperand| {
                let level = x.walked(around.iter().copied());
                level > 0 && x.levels().get(level) == Some(&index)
            };
            let mark = if self.problem.sparse.iter().any(walked) { "'" } else { "" };
            loops.push(format!("{index}{mark}"));
            around.push(index);
        }
        let loops = loops.join(", ");
        let text = match &section.body {
            Body::Product(factors) => {
                let factor = |factor: &Factor| match *factor {
                    Factor::Input(input) => {
                        subscripted(&self.names[input], &self.branched.expr.inputs[input].indices)
                    }
                    Factor::Made(number) => made[number]
                        .as_ref()
                        .map_or(String::new(), |(name, indices)| subscripted(name, indices)),
                };
                let product: Vec<String> = factors.iter().map(factor).collect();
                let loops = if loops.is_empty() { String::new() } else { format!("{loops} : ") };
                format!("{loops}{} += {}", subscripted(&output.0, &output.1), product.join("*"))
            }
            Body::Branch { made: number, producer, consumer } => {
                let stored = self.branched.made[*number] - around.iter().copied().collect();
                let name = if stored.is_empty() { "t" } else { "T" };
                let several = made.len() > 1;
                let name = if several { format!("{name}{}", number + 1) } else { name.to_owned() };
                let result = (name, stored.iter().collect::<Vec<_>>());
                let first = self.section(producer, around, &result, made);
                let head = subscripted(&result.0, &result.1);
                made[*number] = Some(result);
                let second = self.section(consumer, around, output, made);
                let space = if loops.is_empty() { "" } else { " " };
                format!("{loops}{space}<{head}; {first}, {second}>")
            }
        };
        around.truncate(before);
        text
    }
}

fn subscripted(name: &str, indices: &[Index]) -> String {
    let letters: String = indices.iter().map(|index| index.letter()).collect();
    if letters.is_empty() { name.to_owned() } else { format!("{name}_{letters}") }
}
