//! The C compiler and the cache of compiled kernels.
//!
//! The compiler is found once and remembered: `$CC`, else what the `cc` crate finds for this machine.  A
//! kernel's file is named by a hash of its source, the flags, the compiler's version and the processor, so
//! that a changed kernel never meets an old file, and a warm start compiles nothing.  Files are
//! written under a temporary name and renamed: runs side by side do not disturb each other.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::cost::Machine;
use crate::runtime::remembered::{self, Found};

/// The flags after the compiler's own: full optimisation for this processor, whole 64-byte
/// vectors, products and sums fused, and the first product of a sum in its place instead of added to
/// zero (which differs in the sign of a zero).
const FLAGS: &[&str] = &[
    "-std=gnu11", "-O3", "-march=native", "-ffp-contract=fast", "-fno-math-errno",
    "-fno-signed-zeros", "-fPIC", "-shared", "-w",
];

/// Whether kernels are compiled.
#[derive(Clone, Debug)]
pub enum Toolchain {
    /// By this compiler.
    Native(Compiler),
    /// They are not, for the reason given: schedules run in the interpreter.
    Interpreter(String),
}

/// A C compiler with a cache folder.
#[derive(Clone, Debug)]
pub struct Compiler {
    path: PathBuf,
    version: String,
    cache: PathBuf,
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
}

fn find() -> Result<Compiler, String> {
    let cache = cache_folder();
    std::fs::create_dir_all(&cache)
        .map_err(|e| format!("cannot make the kernel cache {}: {e}", cache.display()))?;
    let asked = std::env::var_os("CC").filter(|cc| !cc.is_empty()).map(PathBuf::from);
    let known = remembered::recall(&cache, asked.as_deref());
    let Found { path, version } = match known {
        Some(known) => known,
        None => {
            let found = look(asked.clone())?;
            remembered::keep(&cache, asked.as_deref(), &found);
            found
        }
    };
    Ok(Compiler { path, version, cache })
}

/// Looks for the compiler that is `asked` for, or that of this machine, and asks for its version.
fn look(asked: Option<PathBuf>) -> Result<Found, String> {
    let path = asked.map_or_else(default_compiler, Ok)?;
    let output = Command::new(&path).arg("--version").stdin(Stdio::null()).output();
    let output =
        output.map_err(|e| format!("cannot run the C compiler {}: {e}", path.display()))?;
    if !output.status.success() {
        return Err(format!("{} --version failed", path.display()));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let version = text.lines().next().unwrap_or_default().to_owned();
    Ok(Found { path, version })
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

fn cache_folder() -> PathBuf {
    if let Some(folder) = std::env::var_os("DECOMPOSE_CACHE").filter(|f| !f.is_empty()) {
        return PathBuf::from(folder);
    }
    let dirs = directories::ProjectDirs::from("", "", "decompose");
    let base = dirs.map_or_else(std::env::temp_dir, |dirs| dirs.cache_dir().to_owned());
    base.join("kernels")
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
        &self.version
    }

    /// Returns the folder of compiled kernels.
    pub fn cache(&self) -> &Path {
        &self.cache
    }

    /// Returns the compiler with another cache folder, which must exist.
    pub fn with_cache(self, cache: PathBuf) -> Compiler {
        Compiler { cache, ..self }
    }

    /// Returns the shared object of `source`, from the cache or compiled now.
    ///
    /// # Errors
    ///
    /// The compiler's message, or the system's.
    pub(super) fn build(&self, source: &str) -> Result<Built, String> {
        let name = self.name_of(source);
        let object = self.cache.join(format!("{name}.so"));
        let c = self.cache.join(format!("{name}.c"));
        if object.is_file() && c.is_file() {
            return Ok(Built { object, source: c, compiled_in: None });
        }
        let start = std::time::Instant::now();
        let failed = |what: &str, e: std::io::Error| format!("cannot {what} a kernel: {e}");
        let scratch = tempfile::tempdir_in(&self.cache).map_err(|e| failed("make", e))?;
        let (new_c, new_object) = (scratch.path().join("kernel.c"), scratch.path().join("k.so"));
        std::fs::write(&new_c, source).map_err(|e| failed("write", e))?;
        let output = Command::new(&self.path)
            .args(FLAGS)
            .arg("-o")
            .args([&new_object, &new_c])
            .stdin(Stdio::null())
            .output()
            .map_err(|e| failed("compile", e))?;
        if !output.status.success() {
            let message = String::from_utf8_lossy(&output.stderr);
            std::fs::rename(&new_c, &c).map_err(|e| failed("keep", e))?;
            return Err(format!("{} refused {}: {message}", self.path.display(), c.display()));
        }
        // The source goes last: both present means both whole.
        std::fs::rename(&new_object, &object).map_err(|e| failed("keep", e))?;
        std::fs::rename(&new_c, &c).map_err(|e| failed("keep", e))?;
        let compiled_in = Some(start.elapsed().as_secs_f64());
        Ok(Built { object, source: c, compiled_in })
    }

    fn name_of(&self, source: &str) -> String {
        let mut hash = blake3::Hasher::new();
        let path = self.path.to_string_lossy();
        for part in [source, &path, &self.version, &Machine::here().name] {
            hash.update(part.as_bytes());
            hash.update(&[0]);
        }
        FLAGS.iter().for_each(|flag| {
            hash.update(flag.as_bytes());
        });
        hash.finalize().to_hex()[..32].to_owned()
    }
}
