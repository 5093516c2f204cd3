//! The C compiler.
//!
//! The compiler is found once and cached: `$CC`, else what the `cc` crate finds for this machine.  A
//! kernel is kept in the [`KernelCache`] under a hash of its source, the flags, the compiler's version and the
//! processor's features, so that a changed kernel never meets an old file, and a warm start compiles nothing.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::runtime::cache::{CachedKernel, KernelCache};
use crate::runtime::compiler_cache::{self, FoundCompiler};
use crate::runtime::process;

/// The flags after the compiler's own and those of the effort: whole 64-byte vectors of this processor, products and sums
/// fused, and the first product of a sum in its place instead of added to zero (which differs in the sign of a zero).
const FLAGS: &[&str] = &[
    "-std=gnu11", "-march=native", "-ffp-contract=fast", "-fno-math-errno", "-fno-signed-zeros",
    "-fPIC", "-shared", "-w",
];

/// Full optimisation.
const ALL_EFFORT: &[&str] = &["-O3"];

/// What fuses products and sums, and takes a time in proportion to the source.
const LESS_EFFORT: &[&str] = &["-O1", "-fexpensive-optimizations"];

/// Bytes of a source from which on the compiler makes less effort.  Kernels of a dozen factors whose terms have rows of
/// their own are that long; those of solvers are not.  The analysis of memory takes the square of the length: seconds at
/// 100 kB.
const LONG: usize = 48 << 10;

/// Bytes that a folder must have room for, or a compiler that fails may have failed for want of it.
const ROOM: usize = 1 << 16;

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
    /// Where kernels go once the cache could not be written.
    stand_in: Arc<OnceLock<KernelCache>>,
}

/// Why a kernel was not made.
enum NotMade {
    /// The folder could not be written.
    Folder(io::Error),
    /// What the compiler said, or the system of it.
    Compiler(String),
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
    Ok(Compiler { found, cache, limit, hangs: Arc::default(), stand_in: Arc::default() })
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
        Compiler { cache: KernelCache::at(folder), stand_in: Arc::default(), ..self }
    }

    /// Returns the shared object of `source`, from the cache or compiled now.
    ///
    /// Where the cache cannot be written, a temporary folder stands for it from then on.
    ///
    /// # Errors
    ///
    /// The compiler's message, or the system's.
    pub(super) fn build(&self, source: &str) -> Result<Built, String> {
        let key = self.key_of(source);
        let stand_in = self.stand_in.get();
        let found = [Some(&self.cache), stand_in].into_iter().flatten();
        let found = found.filter_map(|cache| cache.find(&key, source)).next();
        if let Some(CachedKernel { object, source }) = found {
            return Ok(Built { object, source, compiled_in: None });
        }
        if self.hangs.load(Ordering::Relaxed) {
            return Err("the C compiler did not end when it was asked before".to_owned());
        }
        let cache = stand_in.unwrap_or(&self.cache);
        let made = self.compile(&key, source, cache).or_else(|not_made| match not_made {
            NotMade::Folder(error) => {
                let stand_in = cache.stand_in(&error).map_err(NotMade::Compiler)?;
                let stand_in = self.stand_in.get_or_init(|| stand_in);
                self.compile(&key, source, stand_in)
            }
            NotMade::Compiler(why) => Err(NotMade::Compiler(why)),
        });
        made.map_err(|not_made| match not_made {
            NotMade::Folder(error) => format!("cannot keep a kernel: {error}"),
            NotMade::Compiler(why) => why,
        })
    }

    /// Compiles `source` into `cache`.
    fn compile(&self, key: &str, source: &str, cache: &KernelCache) -> Result<Built, NotMade> {
        let start = std::time::Instant::now();
        let scratch = cache.scratch().map_err(NotMade::Folder)?;
        let (c, so) = (scratch.path().join("kernel.c"), scratch.path().join("k.so"));
        std::fs::write(&c, source).map_err(NotMade::Folder)?;
        let mut command = Command::new(&self.found.path);
        command
            .args(&self.found.arguments)
            .args(effort(source))
            .args(FLAGS)
            .arg("-o")
            .args([&so, &c]);
        let output = process::run(&mut command, self.limit).map_err(|e| {
            self.hangs.fetch_or(e.kind() == ErrorKind::TimedOut, Ordering::Relaxed);
            NotMade::Compiler(format!("cannot compile a kernel: {e}"))
        })?;
        let compiler = self.found.path.display();
        if !output.success {
            // A folder that is full makes a compiler fail too.
            std::fs::write(&so, [0; ROOM]).map_err(NotMade::Folder)?;
            let kept = cache.keep_refused(key, &c).map_err(NotMade::Folder)?;
            let why = format!("{compiler} refused {}: {}", kept.display(), output.err);
            return Err(NotMade::Compiler(why));
        }
        if !so.exists() {
            let why = format!("{compiler} made no file: it is no C compiler");
            return Err(NotMade::Compiler(why));
        }
        let stored = cache.store(key, source, &so, scratch.path());
        let CachedKernel { object, source } = stored.map_err(NotMade::Folder)?;
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
        effort(source).iter().chain(FLAGS).copied().for_each(add);
        hash.finalize().to_hex()[..32].to_owned()
    }
}

/// Returns the flags that say how far the compiler optimises `source`.
fn effort(source: &str) -> &'static [&'static str] {
    if source.len() < LONG { ALL_EFFORT } else { LESS_EFFORT }
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

    use super::{ALL_EFFORT, LESS_EFFORT, LONG, command_of, effort};

    #[test]
    fn long_sources_are_compiled_with_less_effort() {
        let [short, long] = [LONG - 1, LONG].map(|len| effort(&"x".repeat(len)));
        assert_eq!((short, long), (ALL_EFFORT, LESS_EFFORT));
    }

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
