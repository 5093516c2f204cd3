//! Checks the architecture itself: module layering, unsafe code and file length, here and in `plot`.

use std::collections::{BTreeMap, BTreeSet};
use std::{fs, path::Path};

/// The pipeline, bottom first: a module may use only itself and the modules before it.
const LAYERS: &[&str] = &[
    "optimisation", "einsum", "kernels", "path", "nest", "schedule", "lower", "codegen", "cost",
    "runtime", "autoschedule", "sweep", "contract", "compute",
];

/// Files of `src` that all layers use, or that name them.
const BESIDE: &[&str] = &["error.rs", "lib.rs", "small_map.rs"];

/// The longest file allowed, unit tests included.
const MAX_LINES: usize = 600;

#[test]
fn a_layer_uses_only_the_layers_below_it() {
    for_each_source("src", |module, path, text| {
        let Some(own) = LAYERS.iter().position(|layer| *layer == module) else { return };
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            assert!(!line.contains("crate::{"), "{path}: one `use crate::module::...` per module");
            for above in &LAYERS[own + 1..] {
                assert!(!uses(line, above), "{path}: `{module}` uses `{above}`");
            }
        }
    });
}

/// Tells whether `line` names the module `crate::{name}` or something in it.
fn uses(line: &str, name: &str) -> bool {
    let mut after = line.split("crate::").skip(1).filter_map(|rest| rest.strip_prefix(name));
    after.any(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

#[test]
fn every_module_is_a_layer_and_every_layer_a_module() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let entries = fs::read_dir(src).expect("readable folder").map(|entry| {
        let name = entry.expect("readable entry").file_name();
        name.into_string().expect("a name in UTF-8")
    });
    let (beside, mut modules): (Vec<String>, Vec<String>) =
        entries.partition(|name| BESIDE.contains(&name.as_str()));
    modules.iter_mut().for_each(|name| name.truncate(name.trim_end_matches(".rs").len()));
    modules.sort();
    let mut layers = LAYERS.to_vec();
    layers.sort_unstable();
    assert_eq!(modules, layers, "give every folder of `src` its place in `LAYERS`, and no other");
    assert_eq!(beside.len(), BESIDE.len(), "{beside:?}");
}

#[test]
fn unsafe_code_stays_where_compiled_code_is_called() {
    let check = |_: &str, path: &str, text: &str| {
        let has = text.lines().any(|line| line.contains("unsafe {"));
        let may = ["kernel.rs", "probe.rs", "normal_equations.rs", "sgd_steps.rs"];
        let may = path.strip_prefix("runtime/").is_some_and(|file| may.contains(&file));
        assert!(!has || may, "{path} has unsafe code");
    };
    for_each_source("src", check);
    for_each_source("plot/src", check);
}

#[test]
fn no_file_is_longer_than_the_limit() {
    let check = |_: &str, path: &str, text: &str| {
        let lines = text.lines().count();
        assert!(lines <= MAX_LINES, "{path}: {lines} lines, split it");
    };
    for_each_source("src", check);
    for_each_source("plot/src", check);
}

/// Calls `check(top-level module, path, text)` for every file below `folder` of this package.
fn for_each_source(folder: &str, mut check: impl FnMut(&str, &str, &str)) {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut pending = vec![src.clone()];
    while let Some(dir) = pending.pop() {
        for entry in fs::read_dir(dir).expect("readable folder") {
            let path = entry.expect("readable entry").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let local = path.strip_prefix(&src).expect("below src");
            let module = local.iter().next().expect("named").to_string_lossy();
            let text = fs::read_to_string(&path).expect("UTF-8 source");
            check(module.trim_end_matches(".rs"), &local.to_string_lossy(), &text);
        }
    }
}

/// Looks at what files name by the path `crate::layer::file`, unit tests apart.
#[test]
fn files_of_a_layer_do_not_use_each_other_in_circles() {
    let mut uses: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for_each_source("src", |module, path, text| {
        let own = path.rsplit('/').next().unwrap_or(path).trim_end_matches(".rs");
        let code = text.split("#[cfg(test)]").next().unwrap_or(text).lines();
        let code = code.filter(|line| !line.trim_start().starts_with("//"));
        let start = format!("crate::{module}::");
        let named = code.flat_map(|line| line.split(&start).skip(1));
        let files = named.filter_map(|rest| rest.split_once("::").map(|(file, _)| file.to_owned()));
        uses.entry(format!("{module}::{own}")).or_default().extend(
            files.map(|file| format!("{module}::{file}")).filter(|file| !file.contains('{')),
        );
    });
    for start in uses.keys() {
        let mut reached = BTreeSet::new();
        let mut open: Vec<&String> = uses[start].iter().collect();
        while let Some(file) = open.pop() {
            if reached.insert(file) {
                open.extend(uses.get(file).into_iter().flatten());
            }
        }
        assert!(!reached.contains(start), "{start} uses itself through {reached:?}");
    }
}
