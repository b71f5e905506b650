//! `unfrag pages DIR`: man pages and completions, for packages.
//!
//! Invariant: they are made from the same description of the command line that reads it, so that none has a flag that the
//! command has not; what is hidden in the help is hidden there.

use crate::failure::{Failure, Result};
use crate::output::{check_directory, write_file};
use clap::Command;
use clap_complete::Shell;
use std::path::{Path, PathBuf};

/// Write man pages and completions into a directory
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Directory that gets `man` and `completions`
    directory: PathBuf,
}

/// Where a completion goes, by the name that its shell looks for.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "unfrag.bash"),
    (Shell::Zsh, "_unfrag"),
    (Shell::Fish, "unfrag.fish"),
];

/// Writes them.
///
/// # Errors
/// If a file cannot be written.
pub fn run(args: &Args, all: Command) -> Result<()> {
    let (man, completions) = (
        args.directory.join("man"),
        args.directory.join("completions"),
    );
    for directory in [&man, &completions] {
        check_directory("DIRECTORY", directory)?;
        std::fs::create_dir_all(directory).map_err(|e| Failure::output(directory, e))?;
    }
    for (shell, name) in COMPLETIONS {
        let mut text = vec![];
        clap_complete::generate(shell, &mut shown(&all), "unfrag", &mut text);
        write_file(&completions.join(name), &text)?;
    }
    // What `unfrag help` is for, `man` does.
    let mut all = all.disable_help_subcommand(true);
    all.build();
    page(&man, &all)?;
    for command in all.get_subcommands().filter(|c| !c.is_hide_set()) {
        page(&man, command)?;
    }
    Ok(())
}

/// The command without what its help does not show: completions list hidden commands too.
fn shown(all: &Command) -> Command {
    let left = Command::new("unfrag").version(env!("CARGO_PKG_VERSION"));
    left.propagate_version(true)
        .subcommands(all.get_subcommands().filter(|c| !c.is_hide_set()).cloned())
}

/// One page, named as `man` looks for it: `unfrag-doctor.1`.
fn page(directory: &Path, command: &Command) -> Result<()> {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let page = directory.join(format!("{name}.1"));
    let mut text = vec![];
    clap_mangen::Man::new(command.clone())
        .render(&mut text)
        .map_err(|e| Failure::output(&page, e))?;
    write_file(&page, &text)
}
