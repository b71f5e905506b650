//! The blocks of commands that pages show, and the commands of this project among their words.
//!
//! A `console` block is one script: its lines that begin with `$ `, and those that go on after a `\`. Its other lines are shown
//! output. HTML comments directly before it, which the book does not show, say what a test needs to know:
//!
//! | comment | what it says |
//! |---|---|
//! | `<!-- needs: perf root -->` | what the host must have |
//! | `<!-- run by: .ci/run -->` | who runs it instead of the test |
//! | `<!-- before: SCRIPT -->` | what makes the files that the commands take |
//! | `<!-- test: SCRIPT -->` | what is run in place of the commands, where these take days or end with a status |
//!
//! A script may go over several lines.

use super::book::name;
use std::fs;
use std::path::Path;

/// A block of commands.
pub struct Block {
    /// Where it stands.
    pub place: String,
    /// The commands, as they are shown.
    pub script: String,
    /// Lines that they print.
    pub shown: Vec<String>,
    /// What they need.
    pub needs: Vec<String>,
    /// Who runs them instead of the test.
    pub run_by: Option<String>,
    /// What is run before them.
    pub before: Option<String>,
    /// What is run in their place.
    pub test: Option<String>,
}

impl Block {
    /// A command without a page.
    pub fn of(place: &str, script: &str) -> Self {
        Self {
            place: place.to_owned(),
            script: script.to_owned(),
            shown: vec![],
            needs: vec![],
            run_by: None,
            before: None,
            test: None,
        }
    }

    /// What a test runs.
    pub fn to_run(&self) -> String {
        let before = self.before.as_deref().unwrap_or_default();
        let commands = self.test.as_deref().unwrap_or(&self.script);
        format!("{before}\n{commands}")
    }
}

/// The blocks of a page.
pub fn blocks(page: &Path) -> Vec<Block> {
    let content = fs::read_to_string(page).unwrap();
    let mut all: Vec<Block> = vec![];
    let mut comments: Vec<String> = vec![];
    let mut lines = content.lines().enumerate();
    while let Some((n, line)) = lines.next() {
        // What belongs to a point of a list stands as far in as its text.
        let far_in = line.len() - line.trim_start().len();
        let line = line.trim_start();
        if line.starts_with("<!--") {
            let mut comment = line.to_owned();
            while !comment.ends_with("-->") {
                let (_, more) = lines.next().expect("a comment ends");
                comment.push('\n');
                comment += more;
            }
            comments.push(comment);
        } else if line == "```console" {
            let mut block = Block::of(&format!("{}:{}", name(page), n + 1), "");
            for comment in comments.drain(..) {
                mark(&mut block, &comment);
            }
            let rest = lines
                .by_ref()
                .map(|(_, line)| line.get(far_in..).unwrap_or_default());
            read_body(&mut block, rest.take_while(|line| *line != "```"));
            assert!(!block.script.is_empty(), "{}: no command", block.place);
            all.push(block);
        } else if !line.is_empty() {
            comments.clear();
        }
    }
    all
}

/// Takes what a comment says of a block.
fn mark(block: &mut Block, comment: &str) {
    let inner = comment.trim_start_matches("<!--").trim_end_matches("-->");
    let (key, value) = inner
        .split_once(':')
        .unwrap_or_else(|| panic!("{}: what does {comment:?} say?", block.place));
    let value = value.trim().to_owned();
    match key.trim() {
        "needs" => block.needs = value.split_whitespace().map(str::to_owned).collect(),
        "run by" => block.run_by = Some(value),
        "before" => block.before = Some(value),
        "test" => block.test = Some(value),
        other => panic!("{}: what is {other:?}?", block.place),
    }
}

/// Takes commands and shown lines.
fn read_body<'a>(block: &mut Block, lines: impl Iterator<Item = &'a str>) {
    let mut goes_on = false;
    for line in lines {
        let command = match line.strip_prefix("$ ") {
            None if goes_on => Some(line),
            command => command,
        };
        goes_on = command.is_some_and(|c| c.ends_with('\\'));
        match command {
            Some(command) => {
                block.script += command;
                block.script.push('\n');
            }
            None => block.shown.push(line.trim_end().to_owned()),
        }
    }
}

/// The words of each call of `unfrag` in a script, without its own name, redirections and what it is piped into.
pub fn calls(script: &str) -> Vec<Vec<String>> {
    let script = script
        .replace("\\\n", " ")
        .replace("cargo run --release -p unfrag-cli --", "unfrag")
        .replace("cargo run -p unfrag-cli --", "unfrag");
    commands(&script)
        .into_iter()
        .filter_map(|words| {
            let own = words.iter().position(|w| w != "sudo" && w != "exec")?;
            (words[own] == "unfrag").then(|| words[own + 1..].to_vec())
        })
        .collect()
}

/// The simple commands of a script of a shell, without redirections. Of its syntax, what pages use is known: quotes, pipes,
/// lists, redirections and comments.
fn commands(script: &str) -> Vec<Vec<String>> {
    let mut commands = vec![vec![]];
    let mut word: Option<String> = None;
    // The next word names a file that the shell opens.
    let mut is_target = false;
    let mut chars = script.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\'' | '"' => {
                let text = chars.by_ref().take_while(|&q| q != c);
                word.get_or_insert_default().extend(text);
                continue;
            }
            '\\' => {
                word.get_or_insert_default().extend(chars.next());
                continue;
            }
            '#' if word.is_none() => while chars.next_if(|&c| c != '\n').is_some() {},
            _ if !" \n|&;()<>".contains(c) => {
                word.get_or_insert_default().push(c);
                continue;
            }
            _ => {}
        }
        let is_descriptor = word.as_deref().is_some_and(|w| w == "1" || w == "2");
        match word.take() {
            Some(_) if "<>".contains(c) && is_descriptor => {}
            Some(_) if is_target => is_target = false,
            Some(word) => commands.last_mut().expect("one").push(word),
            None => {}
        }
        match c {
            '<' | '>' => {
                while chars.next_if(|&c| c == '>' || c == '&').is_some() {}
                is_target = true;
            }
            ' ' | '#' => {}
            _ => commands.push(vec![]),
        }
    }
    if let (Some(word), false) = (word, is_target) {
        commands.last_mut().expect("one").push(word);
    }
    commands.retain(|words| !words.is_empty());
    commands
}

#[test]
fn calls_are_found_whatever_the_shell_does_with_them() {
    let words = |script: &str| {
        let calls = calls(script);
        calls.iter().map(|w| w.join(" ")).collect::<Vec<_>>()
    };
    assert_eq!(words("unfrag doctor > out.txt"), ["doctor"]);
    assert_eq!(words("sudo unfrag doctor 2>&1 | head -3"), ["doctor"]);
    assert_eq!(
        words("cat log | unfrag explain - || unfrag doctor # why"),
        ["explain -", "doctor"]
    );
    assert_eq!(
        words("unfrag record -o a \\\n  -- sh -c 'x; unfrag y'"),
        ["record -o a -- sh -c x; unfrag y"]
    );
    assert_eq!(
        words("unfrag blame d --from \"yesterday 02:00\"\nunfrag top"),
        ["blame d --from yesterday 02:00", "top"]
    );
    assert_eq!(words("unfrag doctor - < mail.txt"), ["doctor -"]);
    assert_eq!(words("make unfrag"), Vec::<String>::new());
}
