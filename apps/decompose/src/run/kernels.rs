//! Where the C of kernels lies, for `--explain`.

use decompose_core::runtime::Kernel;

/// Says where the generated C of the kernel called `name` lies, or why there is none.
pub(crate) fn origin(kernel: &Kernel, name: &str) -> String {
    match (kernel.origin(), kernel.interpreted()) {
        (Some(origin), _) => {
            let how = match origin.compiled_in {
                Some(seconds) => format!("compiled in {seconds:.2} s"),
                None => "from the cache".to_owned(),
            };
            format!("generated C of {name}: {} ({how})", origin.source.display())
        }
        (None, why) => format!("{name} is interpreted: {}", why.unwrap_or("no compiler")),
    }
}
