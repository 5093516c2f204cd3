//! Checks the architecture itself: module layering, unsafe code and file length, here and in `plot`.

use std::{fs, path::Path};

/// The pipeline, bottom first: a module may use only itself and the modules before it.
const LAYERS: &[&str] = &[
    "technique", "einsum", "kernels", "path", "nest", "schedule", "lower", "codegen", "cost",
    "runtime", "autoschedule", "sweep", "contract",
];

/// The longest file allowed, unit tests included.
const MAX_LINES: usize = 600;

#[test]
fn a_layer_uses_only_the_layers_below_it() {
    for_each_source("src", |module, path, text| {
        let Some(own) = LAYERS.iter().position(|layer| *layer == module) else { return };
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            assert!(!line.contains("crate::{"), "{path}: one `use crate::module::...` per module");
            for above in &LAYERS[own + 1..] {
                let used = format!("crate::{above}::");
                assert!(!line.contains(&used), "{path}: `{module}` uses `{above}`");
            }
        }
    });
}

#[test]
fn unsafe_code_stays_where_compiled_code_is_called() {
    let check = |_: &str, path: &str, text: &str| {
        let has = text.lines().any(|line| line.contains("unsafe {"));
        let may = ["kernel.rs", "probe.rs", "slices.rs", "steps.rs"];
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
