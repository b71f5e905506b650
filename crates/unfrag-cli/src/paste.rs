//! `unfrag paste`: a host's memory as a few lines of text for an issue or a chat.

use crate::failure::Result;
use crate::output::print;
use crate::quantity::interval;
use crate::standard::say_line;
use crate::window::WindowArgs;
use std::path::PathBuf;
use unfrag_lab::find::evidence::Examine;
use unfrag_lab::paste;

/// Print a host's memory as a few lines of text for an issue or a chat, which `doctor -` reads back
///
/// At most 8 KiB: a sentence for people, then the numbers of buddyinfo, zoneinfo, meminfo, vmstat, pagetypeinfo and the
/// largest slab caches, the settings and the kernel's release. It names no program, no host, no path and no address.
/// `unfrag doctor -` says the same of it, but for what page flags tell, whatever a mail, a chat or Markdown made of its
/// lines; if a part was lost or changed on the way, it says which.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  unfrag paste
  unfrag paste samples/gcc-768M.unfrag --to 30s
  unfrag paste samples/gcc-768M.unfrag | sed 's/^/> > /' | unfrag doctor -")]
pub struct Args {
    /// An .unfrag file, a directory of segments, a directory with a copy of procfs or several, an archive of these, files of
    /// procfs pasted into one text; this host if none is given
    #[arg(value_name = "FILE|DIR", default_value = "/proc")]
    path: PathBuf,
    /// Of several snapshots, this one instead of the last
    #[arg(long, value_name = "NAME")]
    snapshot: Option<String>,
    #[command(flatten)]
    window: WindowArgs,
    /// Time between two readings of this host's counters, for the rates, such as 10 or 5m; 0 for one reading
    #[arg(long = "for", value_name = "TIME", default_value = "1s", value_parser = |text: &str| interval(text, 0.0))]
    seconds: f64,
}

/// Carries it out.
///
/// # Errors
/// If there is nothing to tell, or it is not what a kernel writes.
pub fn run(args: &Args) -> Result<()> {
    let what = Examine {
        snapshot: args.snapshot.as_deref(),
        seconds: args.seconds,
        window: args.window.window(),
    };
    let paste = paste::of(&args.path, &what)?;
    print(paste.text)?;
    if !paste.left_out.is_empty() {
        say_line(format!(
            "no room in 8 KiB for {}: send what `unfrag snapshot` and `unfrag redact` make, too",
            paste.left_out.join(", ")
        ));
    }
    Ok(())
}
