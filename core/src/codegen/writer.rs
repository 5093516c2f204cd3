//! The text of a kernel as it grows, and the names and places of elements in it.

use std::fmt::Write;

use decompose_formats::narrow_ints::Width;

use crate::einsum::Index;
use crate::lower::{Addressing, Array, Place, Program};

/// The text as it grows.
pub(super) struct Writer<'a> {
    pub(super) program: &'a Program,
    text: String,
    depth: usize,
}

impl<'a> Writer<'a> {
    /// Returns an empty text of the kernel of `program`.
    pub(super) fn new(program: &'a Program) -> Writer<'a> {
        Writer { program, text: String::new(), depth: 0 }
    }

    /// Returns the text.
    pub(super) fn into_text(self) -> String {
        self.text
    }
}

impl Writer<'_> {
    pub(super) fn line(&mut self, text: &str) {
        for _ in 0..self.depth {
            self.text.push_str("    ");
        }
        self.text.push_str(text);
        self.text.push('\n');
    }

    pub(super) fn open(&mut self, text: &str) {
        self.line(text);
        self.depth += 1;
    }

    /// Ends an indented part without a line of its own.
    pub(super) fn depth_back(&mut self) {
        self.depth -= 1;
    }

    pub(super) fn close(&mut self) {
        self.depth -= 1;
        self.line("}");
    }

    /// The current element of `place`.
    pub(super) fn element(&self, place: Place) -> String {
        match self.program.array(place) {
            None => {
                let tree = if let Place::Value(tree) = place { tree } else { 0 };
                let leaf = self.program.trees[tree].levels.last();
                let leaf = leaf.expect("a sparse operand has levels").index;
                let of = numbered(tree);
                format!("nonzero{of}[at{of}_{leaf}]")
            }
            Some(array) if array.indices.is_empty() && place != Place::Output => {
                if matches!(place, Place::Dense(_)) {
                    format!("{}[0]", array.name)
                } else {
                    array.name.clone()
                }
            }
            Some(array) => format!("{}[{}]", self.base(place), self.offset(place, array, None)),
        }
    }

    /// The pointer from which offsets of `place` count.
    pub(super) fn base(&self, place: Place) -> String {
        match self.program.array(place) {
            Some(array) if place != Place::Output => array.name.clone(),
            _ if self.program.is_assembled() => "cells".to_owned(),
            _ if self.program.addressing == Addressing::Positions => "row".to_owned(),
            _ if self.program.root_row().is_some() => "row".to_owned(),
            _ => "out".to_owned(),
        }
    }

    /// The distance of the current element of `place` from its base, lanes at zero.
    pub(super) fn offset(&self, place: Place, array: &Array, lanes: Option<Index>) -> String {
        let root = self.program.root_row().map(|(root, _)| root);
        let mut offset = String::new();
        for (at, &index) in array.indices.iter().enumerate() {
            if place == Place::Output && Some(index) == root || Some(index) == lanes {
                continue;
            }
            let plus = if offset.is_empty() { "" } else { " + " };
            // Writing to a string cannot fail.
            let _ = match self.stride(place, at).as_str() {
                "1" => write!(offset, "{plus}{index}"),
                stride => write!(offset, "{plus}{index} * {stride}"),
            };
        }
        if offset.is_empty() { "0".to_owned() } else { offset }
    }
}

/// Returns the number that names of a tree have in generated code; none of the first.
pub(super) fn numbered(tree: usize) -> String {
    if tree == 0 { String::new() } else { (tree + 1).to_string() }
}

pub(super) fn int_type(width: Width) -> &'static str {
    match width {
        Width::W16 => "uint16_t",
        Width::W32 => "uint32_t",
        Width::W64 => "uint64_t",
    }
}
