//! `unfrag blame --wakes`: who has kswapd and kcompactd work, and who compacts.

use crate::failure::{Failure, Result};
use crate::inputs::shell_word;
use crate::output::{Console, Progress, name_of, write_file};
use crate::standard::say_line;
use crate::window::{WindowArgs, Within, below_line};
use std::path::Path;
use unfrag_lab::find::recordings;
use unfrag_lab::input::MEMORY_BUDGET;
use unfrag_lab::report::window::COUNTED_FROM;
use unfrag_lab::wakes::{flame, text, wakes};
use unfrag_linux::segments::Beginning;

/// What is asked.
pub(super) struct Asked<'a> {
    pub file: &'a Path,
    pub window: &'a WindowArgs,
    pub release: Option<&'a str>,
    /// Callers that are shown.
    pub top: usize,
    pub json: bool,
    pub svg: Option<&'a Path>,
}

/// Carries it out.
///
/// # Errors
/// If the recording cannot be read or has no events that tell it, or the picture cannot be written.
pub(super) fn run(args: &Asked<'_>, console: &Console) -> Result<()> {
    let progress = Progress::new("reading");
    let recording = recordings::streamed(
        args.file,
        &[],
        args.release,
        &args.window.window(),
        Beginning::Recorded,
    )?;
    let name = args.file.file_name().unwrap_or_default().to_string_lossy();
    let found = wakes(recording.input(MEMORY_BUDGET), &name).map_err(|e| e.about(args.file))?;
    drop(progress);
    if args.svg.is_some() && !found.is_timed() {
        return Err(Failure::usage(
            "the recording does not tell how long anything worked, which a picture would show",
            "leave --svg out, or record with `unfrag record --system --stacks`",
        ));
    }
    if let Some(to) = args.svg {
        write_file(to, flame::render(&found).as_bytes())?;
    }
    let covered = recording.covered.as_ref();
    if args.json {
        console.print_json(&Within::of(covered, &found))?;
    } else {
        let text = text::render(&found, args.top, &shell_word(args.file), &console.screen());
        console.print(below_line(covered, COUNTED_FROM, &text))?;
    }
    if let Some(to) = args.svg {
        say_line(format!("wrote {}", name_of(to)));
    }
    Ok(())
}
