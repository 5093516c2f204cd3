//! The C compiler.
//!
//! The compiler is found once and cached: `$CC`, else what the `cc` crate finds for this machine.  A
//! kernel is kept in the [`KernelCache`] under a hash of its source, the flags, the compiler's version and the
//! processor's features, so that a changed kernel never meets an old file, and a warm start compiles nothing.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::runtime::cache::{CachedKernel, KernelCache};
use crate::runtime::compiler_cache::{self, FoundCompiler};
use crate::runtime::process;

/// The flags after the compiler's own: full optimisation for this processor, whole 64-byte
/// vectors, products and sums fused, and the first product of a sum in its place instead of added to
/// zero (which differs in the sign of a zero).
const FLAGS: &[&str] = &[
    "-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno",
    "-fno-signed-zeros", "-fPIC", "-shared", "-w",
];

/// Why there is no code where it is not wanted.
pub(super) const UNNEEDED: &str = "compiling takes longer than it saves";

/// Whether kernels are compiled.
#[derive(Clone, Debug)]
pub enum Toolchain {
    /// By this compiler.
    Native(Compiler),
    /// They are not, for the reason given: schedules run in the interpreter.
    Interpreter(String),
    /// They are not, since it would take longer than it saves: schedules run in the interpreter.
    Unneeded,
}

/// A C compiler with a cache folder.
#[derive(Clone, Debug)]
pub struct Compiler {
    found: FoundCompiler,
    cache: KernelCache,
    /// How long it may run.
    limit: Duration,
    /// Set when it ran into its time limit: it is not asked again.
    hangs: Arc<AtomicBool>,
}

impl Toolchain {
    /// Returns this machine's compiler, looked for once a process; without one the interpreter.
    pub fn detect() -> Toolchain {
        static FOUND: OnceLock<Toolchain> = OnceLock::new();
        let found = FOUND.get_or_init(|| match find() {
            Ok(compiler) => Toolchain::Native(compiler),
            Err(why) => Toolchain::Interpreter(why),
        });
        found.clone()
    }

    /// Returns the compiler.
    ///
    /// # Errors
    ///
    /// Why nothing is compiled.
    pub fn compiler(&self) -> Result<&Compiler, &str> {
        match self {
            Toolchain::Native(compiler) => Ok(compiler),
            Toolchain::Interpreter(why) => Err(why),
            Toolchain::Unneeded => Err(UNNEEDED),
        }
    }
}

fn find() -> Result<Compiler, String> {
    let limit = process::time_limit()?;
    let cache = KernelCache::open()?;
    let asked = std::env::var("CC").ok().filter(|cc| !cc.trim().is_empty());
    let known = compiler_cache::load(cache.folder(), asked.as_deref());
    let found = match known {
        Some(known) => known,
        None => {
            let found = look(asked.as_deref(), limit)?;
            compiler_cache::store(cache.folder(), asked.as_deref(), &found);
            found
        }
    };
    Ok(Compiler { found, cache, limit, hangs: Arc::default() })
}

/// Looks for the compiler that is `asked` for, or that of this machine, and asks for its version.
fn look(asked: Option<&str>, limit: Duration) -> Result<FoundCompiler, String> {
    let (path, arguments) = match asked {
        Some(asked) => command_of(asked),
        None => (default_compiler()?, Vec::new()),
    };
    let mut command = Command::new(&path);
    let output = process::run(command.args(&arguments).arg("--version"), limit);
    let output =
        output.map_err(|e| format!("cannot run the C compiler {}: {e}", path.display()))?;
    if !output.success {
        return Err(format!("{} --version failed", path.display()));
    }
    let version = output.out.lines().next().map(str::to_owned);
    let version = version.ok_or_else(|| format!("{} --version says nothing", path.display()))?;
    Ok(FoundCompiler { path, arguments, version })
}

/// Splits a value of `$CC` into program and arguments (`gcc -O2`, `ccache gcc`), unless it names a file.
fn command_of(asked: &str) -> (PathBuf, Vec<String>) {
    let mut words = asked.split_whitespace();
    match (Path::new(asked).is_file(), words.next()) {
        (false, Some(program)) => (program.into(), words.map(str::to_owned).collect()),
        _ => (asked.into(), Vec::new()),
    }
}

/// Asks the `cc` crate for the compiler of this machine.
fn default_compiler() -> Result<PathBuf, String> {
    let target = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let tool = cc::Build::new()
        .cargo_metadata(false)
        .cargo_warnings(false)
        .target(&target)
        .host(&target)
        .opt_level(3)
        .out_dir(std::env::temp_dir())
        .try_get_compiler();
    tool.map(|tool| tool.path().to_owned()).map_err(|e| format!("no C compiler: {e}"))
}

/// A compiled file and whether it had to be compiled.
pub(super) struct Built {
    pub(super) object: PathBuf,
    pub(super) source: PathBuf,
    /// Seconds the compiler ran; `None` if the file was in the cache.
    pub(super) compiled_in: Option<f64>,
}

impl Compiler {
    /// Returns the first line of the compiler's version.
    pub fn version(&self) -> &str {
        &self.found.version
    }

    /// Returns the cache of compiled kernels.
    pub fn cache(&self) -> &KernelCache {
        &self.cache
    }

    /// Returns the compiler with another cache folder, which must exist.
    pub fn with_cache(self, folder: PathBuf) -> Compiler {
        Compiler { cache: KernelCache::at(folder), ..self }
    }

    /// Returns the shared object of `source`, from the cache or compiled now.
    ///
    /// # Errors
    ///
    /// The compiler's message, or the system's.
    pub(super) fn build(&self, source: &str) -> Result<Built, String> {
        let key = self.key_of(source);
        if let Some(CachedKernel { object, source }) = self.cache.find(&key, source) {
            return Ok(Built { object, source, compiled_in: None });
        }
        if self.hangs.load(Ordering::Relaxed) {
            return Err("the C compiler did not end when it was asked before".to_owned());
        }
        let start = std::time::Instant::now();
        let failed = |what: &str, e: std::io::Error| format!("cannot {what} a kernel: {e}");
        let scratch = self.cache.scratch().map_err(|e| failed("make", e))?;
        let (c, so) = (scratch.path().join("kernel.c"), scratch.path().join("k.so"));
        std::fs::write(&c, source).map_err(|e| failed("write", e))?;
        let mut command = Command::new(&self.found.path);
        command.args(&self.found.arguments).args(FLAGS).arg("-o").args([&so, &c]);
        let output = process::run(&mut command, self.limit).map_err(|e| {
            self.hangs.fetch_or(e.kind() == ErrorKind::TimedOut, Ordering::Relaxed);
            failed("compile", e)
        })?;
        if !output.success {
            let kept = self.cache.keep_refused(&key, &c).map_err(|e| failed("keep", e))?;
            let compiler = self.found.path.display();
            return Err(format!("{compiler} refused {}: {}", kept.display(), output.err));
        }
        if !so.exists() {
            let compiler = self.found.path.display();
            return Err(format!("{compiler} made no file: it is no C compiler"));
        }
        let stored = self.cache.store(&key, source, &so, scratch.path());
        let CachedKernel { object, source } = stored.map_err(|e| failed("keep", e))?;
        Ok(Built { object, source, compiled_in: Some(start.elapsed().as_secs_f64()) })
    }

    fn key_of(&self, source: &str) -> String {
        let FoundCompiler { path, arguments, version } = &self.found;
        let mut hash = blake3::Hasher::new();
        let mut add = |part: &str| {
            hash.update(part.as_bytes());
            hash.update(&[0]);
        };
        [source, &path.to_string_lossy(), version, features()].into_iter().for_each(&mut add);
        arguments.iter().for_each(|argument| add(argument));
        FLAGS.iter().copied().for_each(add);
        hash.finalize().to_hex()[..32].to_owned()
    }
}

/// Returns what the compiler's `-march=native` depends on: the features of the processor as the system lists
/// them, else the processor's name.
fn features() -> &'static str {
    static FEATURES: OnceLock<String> = OnceLock::new();
    FEATURES.get_or_init(|| {
        let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        // `flags` on x86, `Features` on ARM; all processors of a machine list the same.
        let lists = |line: &&str| line.starts_with("flags") || line.starts_with("Features");
        let listed = text.lines().find(lists);
        listed.map_or_else(|| crate::cost::Machine::here().name.clone(), str::to_owned)
    })
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::command_of;

    #[test]
    fn a_compiler_may_be_given_with_arguments_or_behind_another_program() {
        assert_eq!(command_of("gcc"), (PathBuf::from("gcc"), vec![]));
        assert_eq!(command_of(" gcc -O2 "), ("gcc".into(), vec!["-O2".to_owned()]));
        assert_eq!(command_of("ccache gcc"), ("ccache".into(), vec!["gcc".to_owned()]));
        let folder = tempfile::tempdir().unwrap();
        let spaced = folder.path().join("my cc");
        std::fs::write(&spaced, "").unwrap();
        assert_eq!(command_of(spaced.to_str().unwrap()), (spaced, vec![]));
    }
}
