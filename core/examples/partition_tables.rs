//! Counts the split schedules, templates and schedules of SpMV, SpMM and MTTKRP, beside the numbers of their source.
//!
//! ```text
//! cargo run --release -p decompose-core --example partition_tables [KERNEL]
//! ```
//!
//! With the name of a kernel, such as `SpMM, GPU`, prints its templates as commands instead, a line each.
//!
//! Prints three tables as Markdown.  The first has the numbers of each kernel.  The second has what each trimming pass
//! removes.  The third has the split schedules with their templates and schedules.
//!
//! Source: Wang, "Automatic Optimization of Sparse Tensor Algebra Programs", MIT, 2020, chapter 3.
//!
//! Why numbers differ:
//!
//! - The source lists no templates.  Its text leaves open whether both loops over positions stand inside the level above,
//!   whether a vector loop makes a cut useful, and whether a whole loop may run in vectors.  Here all three hold: of many
//!   readings this one was taken since its numbers come near those of the source for SpMV and SpMM; none gives both.
//! - With these, SpMV on processors has the 87 schedules of the source with a cut, and two without.
//! - The column `literal` follows the text of pass 0, where the loop with a fixed number of iterations is free.
//! - SpMM is counted without its tenth split schedule, as in the source, and MTTKRP on processors with a precomputed
//!   product, which pins two loops.  What is missing of their numbers would need the list of the source.
//! - The source gives no rule for the values of GPU parameters.  Here a warp has 32 lanes and a block 16 warps at most.
//!   Of 4, 16 and 64 that leaves one size of pieces for lanes and two numbers of warps: 4 schedules of SpMV, not 50.
//! - Pass GPU-6 takes loops of blocks and warps to be outermost.  A whole dense index is then known before all others, and
//!   templates that share it among blocks are removed; MTTKRP has fewer therefore.
//! - In the source most GPU schedules of MTTKRP do not compile; here all are counted.
//! - MTTKRP may fuse its first two levels.  The source does not name this, although its rule allows it.
//! - The source does not tell blocks from warps where it counts naive mappings; the second table does.

use std::error::Error;
use std::io::Write;

use decompose_core::autoschedule::partition::{
    CPU_PASSES, Choices, Counted, GPU_PASSES, IterationSpace, Parameters, PartitionConfig, Pass,
    PositionLoops, Target, count, templates,
};

/// A kernel with the numbers of the source.
struct Kernel {
    name: &'static str,
    space: fn() -> IterationSpace,
    target: Target,
    /// Which parallel loops the passes choose among: any sets, or where those are too many one loop at each level.
    choices: Choices,
    /// How many split schedules count.
    counted: usize,
    /// What the source says of templates and of schedules.
    published: [&'static str; 2],
}

const KERNELS: [Kernel; 6] = [
    Kernel {
        name: "SpMV, processor",
        space: IterationSpace::spmv,
        target: Target::Cpu,
        choices: Choices::Sets,
        counted: usize::MAX,
        published: ["", "87"],
    },
    Kernel {
        name: "SpMM, processor",
        space: IterationSpace::spmm,
        target: Target::Cpu,
        choices: Choices::Sets,
        counted: 9,
        published: ["", "798"],
    },
    Kernel {
        name: "MTTKRP, processor",
        space: IterationSpace::mttkrp_precomputed,
        target: Target::Cpu,
        choices: Choices::One,
        counted: usize::MAX,
        published: ["27", "about 120"],
    },
    Kernel {
        name: "SpMV, GPU",
        space: IterationSpace::spmv,
        target: Target::Gpu,
        choices: Choices::Sets,
        counted: usize::MAX,
        published: ["", "50"],
    },
    Kernel {
        name: "SpMM, GPU",
        space: IterationSpace::spmm_by_columns,
        target: Target::Gpu,
        choices: Choices::Sets,
        counted: 9,
        published: ["", "1039"],
    },
    Kernel {
        name: "MTTKRP, GPU",
        space: IterationSpace::mttkrp,
        target: Target::Gpu,
        choices: Choices::One,
        counted: usize::MAX,
        published: ["about 1000", "about 200 compile"],
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    if let Some(name) = std::env::args().nth(1) {
        let kernel = KERNELS.iter().find(|kernel| kernel.name == name);
        return print_templates(kernel.ok_or("the kernels are named in the first table")?);
    }
    let mut tables = [
        String::from(
            "| kernel | split schedules | naive | templates | source | schedules | source | literal |\n\
             |---|---|---|---|---|---|---|---|\n",
        ),
        String::from("| kernel | mappings | removed by each pass | left |\n|---|---|---|---|\n"),
        String::from(
            "| kernel | split schedule | naive | templates | schedules |\n|---|---|---|---|---|\n",
        ),
    ];
    for kernel in &KERNELS {
        let counted = counts(kernel, PositionLoops::Both);
        let literal = counts(kernel, PositionLoops::Bounded);
        let [templates, schedules] = kernel.published;
        let sum = |of: &dyn Fn(&Counted) -> u64, all: &[Counted]| all.iter().map(of).sum::<u64>();
        tables[0] += &format!(
            "| {} | {} | {} | {} | {templates} | {} | {schedules} | {} |\n",
            kernel.name,
            counted.len(),
            sum(&|one| one.naive, &counted),
            sum(&|one| one.templates as u64, &counted),
            sum(&|one| one.schedules as u64, &counted),
            sum(&|one| one.schedules as u64, &literal),
        );
        tables[1] += &removed(kernel, &counted);
        for one in &counted {
            let text = one.split.to_string();
            let text = if text.is_empty() { "Empty" } else { &text };
            let (naive, templates, schedules) = (one.naive, one.templates, one.schedules);
            tables[2] +=
                &format!("| {} | `{text}` | {naive} | {templates} | {schedules} |\n", kernel.name);
        }
    }
    let mut out = std::io::stdout();
    for table in tables {
        writeln!(out, "{table}")?;
    }
    Ok(())
}

/// Prints the templates of a kernel as commands.
fn print_templates(kernel: &Kernel) -> Result<(), Box<dyn Error>> {
    let config = PartitionConfig::default();
    let all = templates(&(kernel.space)(), &config, kernel.target, &parameters(kernel));
    let mut out = std::io::stdout();
    for (template, _) in all.iter().take(kernel.counted).flat_map(|split| &split.templates) {
        writeln!(out, "{template}")?;
    }
    Ok(())
}

fn parameters(kernel: &Kernel) -> Parameters {
    match kernel.target {
        Target::Cpu => Parameters::cpu(),
        Target::Gpu => Parameters::gpu(),
    }
}

/// What there is of each split schedule that counts.
fn counts(kernel: &Kernel, positions: PositionLoops) -> Vec<Counted> {
    let mut counted =
        count(&(kernel.space)(), (kernel.target, kernel.choices), &parameters(kernel), positions);
    counted.truncate(kernel.counted);
    counted
}

/// What each pass removes of all split schedules.
fn removed(kernel: &Kernel, counted: &[Counted]) -> String {
    let passes: &[Pass] = match kernel.target {
        Target::Cpu => CPU_PASSES,
        Target::Gpu => GPU_PASSES,
    };
    let of = |(place, pass): (usize, &Pass)| {
        let removed: u64 = counted.iter().map(|one| one.trimmed.removed[place]).sum();
        format!("{} {}: {removed}", pass.number, pass.name)
    };
    let removed: Vec<String> = passes.iter().enumerate().map(of).collect();
    let all: u64 = counted.iter().map(|one| one.trimmed.all).sum();
    let left: usize = counted.iter().map(|one| one.trimmed.kept.len()).sum();
    format!("| {} | {all} | {} | {left} |\n", kernel.name, removed.join("; "))
}
