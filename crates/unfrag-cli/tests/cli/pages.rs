//! Man pages and completions: `cargo test -p unfrag-cli --features pages --test cli pages`.

use crate::support::{stdout, text};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

fn names(directory: &Path) -> BTreeSet<String> {
    let name = |e: std::io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
    fs::read_dir(directory).unwrap().map(name).collect()
}

#[test]
fn every_command_of_the_help_has_a_page_and_is_completed() {
    let dir = tempfile::tempdir().unwrap();
    stdout(&["pages", dir.path().to_str().unwrap()]);
    let help = stdout(&["--help"]);
    // A command's line begins with two spaces and its name; other lines of the help have none of these forms.
    let commands: BTreeSet<&str> = help
        .lines()
        .filter_map(|l| l.strip_prefix("  "))
        .filter(|l| l.starts_with(|c: char| c.is_ascii_lowercase()))
        .map(|l| l.split(' ').next().unwrap())
        .collect();
    assert!(commands.len() > 15, "{commands:?}");
    let mut wanted: BTreeSet<String> = commands.iter().map(|c| format!("unfrag-{c}.1")).collect();
    wanted.insert("unfrag.1".into());
    assert_eq!(names(&dir.path().join("man")), wanted);
    let completions = dir.path().join("completions");
    let files = ["_unfrag", "unfrag.bash", "unfrag.fish"];
    assert_eq!(names(&completions), files.map(str::to_owned).into());
    for file in files {
        let script = fs::read_to_string(completions.join(file)).unwrap();
        for command in &commands {
            assert!(script.contains(command), "{file} does not know {command}");
        }
        assert!(!script.contains("guardian"), "{file} has a hidden command");
    }
}

#[test]
fn bash_completes_a_command_and_its_flags() {
    let dir = tempfile::tempdir().unwrap();
    stdout(&["pages", dir.path().to_str().unwrap()]);
    let complete = |words: &str| {
        let script = format!(
            ". {}/completions/unfrag.bash; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _unfrag unfrag \"${{COMP_WORDS[COMP_CWORD]}}\" unfrag; echo \"${{COMPREPLY[@]}}\"",
            dir.path().display()
        );
        let out = Command::new("bash").args(["-c", &script]).output().unwrap();
        assert!(out.status.success(), "{}", text(&out.stderr));
        text(&out.stdout).trim().to_owned()
    };
    assert_eq!(complete("unfrag doc"), "doctor");
    assert_eq!(complete("unfrag doctor --hug"), "--huge");
    assert_eq!(complete("unfrag pag"), "", "a hidden command");
}
