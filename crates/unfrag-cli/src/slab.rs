//! `unfrag slab`: what SLAB, SLUB and SLQB would have held for the allocations of a trace.

use crate::failure::{Failure, Result};
use crate::output::{Console, Progress, check_not_input, write_file};
use crate::quantity;
use crate::window::{WindowArgs, Within, below_line};
use clap::ValueEnum;
use std::path::PathBuf;
use unfrag_lab::find::recordings;
use unfrag_lab::slab::{Options, replay, text};
use unfrag_linux::procfs::SlabInfo;
use unfrag_linux::segments::Beginning;
use unfrag_slab::{Design, FirstAttempt, Rules};

/// Replay a slab trace on SLAB, SLUB and SLQB: pages, waste and page orders side by side
///
/// The trace says what was allocated and freed, on which CPU; each allocator decides how many pages
/// that takes. It needs the events kmem:kmem_cache_alloc, kmem:kmem_cache_free, kmem:kmalloc and
/// kmem:kfree.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag slab samples/slab-find.unfrag
  unfrag slab samples/slab-find.unfrag --allocator slub --slub-max-order 0 --json
  unfrag slab samples/slab-find.unfrag --allocator slab --cpus 8 --slabinfo slabinfo")]
pub struct Args {
    /// A trace with slab events (trace.dat, perf.data, text), an .unfrag file of one, or a directory of segments
    file: PathBuf,
    #[command(flatten)]
    window: WindowArgs,
    /// Allocators, separated by commas
    #[arg(
        long,
        value_name = "NAME,…",
        value_delimiter = ',',
        default_value = "slab,slub,slqb"
    )]
    allocator: Vec<Allocator>,
    /// Rules: those of 6.x, or those of 2.6.28 (source of the report that large orders hurt)
    #[arg(long, value_enum, default_value_t = Era::Modern)]
    rules: Era,
    /// How SLUB asks for more than the least order, if not as the rules say
    #[arg(long, value_enum)]
    first_attempt: Option<Attempt>,
    /// Largest order that SLUB chooses for the sake of more objects (slub_max_order)
    #[arg(long, value_name = "ORDER", value_parser = clap::value_parser!(u8).range(0..=10))]
    slub_max_order: Option<u8>,
    /// Least order of SLUB's slabs (slub_min_order)
    #[arg(long, value_name = "ORDER", value_parser = clap::value_parser!(u8).range(0..=10))]
    slub_min_order: Option<u8>,
    /// Objects that SLUB wants in a slab (slub_min_objects); by the number of CPUs if not given
    #[arg(long, value_name = "N")]
    slub_min_objects: Option<u32>,
    /// CPUs by which orders and limits are chosen; the recorded ones if not given
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    cpus: Option<u16>,
    /// Size of memory
    #[arg(long, value_name = "SIZE", value_parser = quantity::size, default_value = "1G")]
    memory: u64,
    /// Kernel that was recorded (`uname -r`), where the recording does not say
    #[arg(long, value_name = "UNAME-R")]
    release: Option<String>,
    /// Write the caches at the end as /proc/slabinfo shows them; of one allocator
    #[arg(long, value_name = "FILE")]
    slabinfo: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Allocator {
    Slab,
    Slub,
    Slqb,
}

impl From<Allocator> for Design {
    fn from(a: Allocator) -> Design {
        match a {
            Allocator::Slab => Design::Slab,
            Allocator::Slub => Design::Slub,
            Allocator::Slqb => Design::Slqb,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Era {
    /// 6.x
    Modern,
    /// 2.6.28
    #[value(name = "2.6.28")]
    S2,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Attempt {
    /// As the caller asked, without retry (2.6.28)
    Historic,
    /// Only while more than an eighth of memory is free
    IfPlentyFree,
    /// Without direct reclaim; kswapd is woken
    NoWait,
    /// Without direct reclaim and without waking kswapd (6.x)
    NoWake,
    /// As no-wake, with only one pass over the free lists
    FirstPassOnly,
}

impl From<Attempt> for FirstAttempt {
    fn from(a: Attempt) -> FirstAttempt {
        match a {
            Attempt::Historic => FirstAttempt::Historic,
            Attempt::IfPlentyFree => FirstAttempt::IfPlentyFree,
            Attempt::NoWait => FirstAttempt::NoWait,
            Attempt::NoWake => FirstAttempt::NoWake,
            Attempt::FirstPassOnly => FirstAttempt::FirstPassOnly,
        }
    }
}

/// Carries it out.
///
/// # Errors
/// If the trace has no slab events, or is not what it should be.
pub fn run(args: &Args) -> Result<()> {
    args.slabinfo
        .iter()
        .try_for_each(|to| check_not_input(to, &args.file))?;
    let console = Console::beside([("--slabinfo", args.slabinfo.as_deref())], args.json)?;
    let mut designs: Vec<Design> = vec![];
    for a in &args.allocator {
        let design = Design::from(*a);
        if !designs.contains(&design) {
            designs.push(design);
        }
    }
    if args.slabinfo.is_some() && designs.len() != 1 {
        return Err(Failure::usage(
            "--slabinfo writes the caches of one allocator",
            "name it: --allocator slub",
        ));
    }
    let progress = Progress::new("reading");
    let (rec, covered) = recordings::recording(
        &args.file,
        &[],
        args.release.as_deref(),
        &args.window.window(),
        Beginning::Exact,
    )?;
    progress.message("replaying".into());
    let options = Options {
        designs,
        rules: rules(args)?,
        cpus: args.cpus,
        memory: args.memory,
    };
    let source = args.file.display().to_string();
    let report = replay(&rec, &source, &options).map_err(|e| e.in_file(&args.file))?;
    drop(progress);
    if let (Some(path), [only]) = (&args.slabinfo, report.allocators.as_slice()) {
        write_file(path, SlabInfo::of(&only.infos).write().as_bytes())?;
    }
    if args.json {
        console.print_json(&Within::of(Some(&covered), &report))
    } else {
        let text = text::render(&report, &console.screen());
        console.print(below_line(Some(&covered), "", &text))
    }
}

fn rules(args: &Args) -> Result<Rules> {
    let mut rules = match args.rules {
        Era::Modern => Rules::MODERN,
        Era::S2 => Rules::S2,
    };
    let slub = &mut rules.slub;
    slub.first_attempt = args.first_attempt.map_or(slub.first_attempt, Into::into);
    slub.max_order = args.slub_max_order.unwrap_or(slub.max_order);
    slub.min_order = args.slub_min_order.unwrap_or(slub.min_order);
    slub.min_objects = args.slub_min_objects.unwrap_or(slub.min_objects);
    if slub.min_order > slub.max_order {
        return Err(Failure::usage(
            format!(
                "--slub-min-order {} is above the largest order, {}",
                slub.min_order, slub.max_order
            ),
            "raise --slub-max-order, or lower --slub-min-order",
        ));
    }
    Ok(rules)
}
