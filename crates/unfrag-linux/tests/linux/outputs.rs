//! Outputs where somebody else, or the user, has laid something before: nothing but the file that was asked for changes.
//!
//! What needs other users is tested as root, with numbers of users that nobody has.
#![cfg(target_os = "linux")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use unfrag_linux::output::{self, Holds, Output};
use unfrag_linux::target::{self, Target};

/// Users of these tests, who have nothing else.
const ALICE: u32 = 61_001;
const BOB: u32 = 61_002;

fn is_root() -> bool {
    let is_root = fs::metadata("/proc/self").unwrap().uid() == 0;
    if !is_root {
        let _ = writeln!(
            std::io::stderr(),
            "SKIPPED: only root can make files of other users"
        );
    }
    is_root
}

fn put(path: &Path, content: &str, holds: Holds) -> std::io::Result<()> {
    output::write(&Target::of(path)?, content.as_bytes(), holds)
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().mode() & 0o7777
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn names(dir: &Path) -> Vec<String> {
    let items = fs::read_dir(dir).unwrap().map(|i| i.unwrap().file_name());
    let mut names: Vec<String> = items.map(|n| n.into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_link_stays_a_link_and_what_it_leads_to_is_written() {
    let dir = tempfile::tempdir().unwrap();
    let [file, link, other] = ["file", "link", "other"].map(|n| dir.path().join(n));
    symlink("link", &other).unwrap();
    symlink("file", &link).unwrap();
    for content in ["one", "two"] {
        put(&other, content, Holds::Answer).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), content);
    }
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::symlink_metadata(&other).unwrap().is_symlink());
    assert_eq!(names(dir.path()), ["file", "link", "other"]);
}

#[test]
fn a_pipe_is_written_to_and_stays_a_pipe() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let reader = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::read_to_string(pipe).unwrap()
    });
    output::check(&Target::of(&pipe).unwrap()).unwrap();
    put(&pipe, "hello", Holds::Recording).unwrap();
    assert_eq!(reader.join().unwrap(), "hello");
    assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
}

#[test]
fn what_lies_beside_the_output_is_untouched_whatever_it_is_called() {
    let dir = tempfile::tempdir().unwrap();
    let victim = dir.path().join("victim");
    fs::write(&victim, "victim").unwrap();
    fs::write(dir.path().join("x.partial"), "mine").unwrap();
    for name in [
        "x.tmp",
        ".x",
        ".x.tmp",
        ".x.partial",
        "x~",
        ".unfrag-x.tmp",
        "x.new",
    ] {
        symlink("victim", dir.path().join(name)).unwrap();
    }
    let before = names(dir.path());
    for content in ["one", "two"] {
        let target = Target::of(&dir.path().join("x")).unwrap();
        output::check(&target).unwrap();
        put(&dir.path().join("x"), content, Holds::Recording).unwrap();
    }
    let mut after = names(dir.path());
    after.retain(|n| n != "x");
    assert_eq!(after, before);
    assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
    assert_eq!(
        fs::read_to_string(dir.path().join("x.partial")).unwrap(),
        "mine"
    );
    assert_eq!(fs::read_to_string(dir.path().join("x")).unwrap(), "two");
}

/// (what is written, mode of the old file, its owner, mode of the new one less an umask of 022)
#[test]
fn the_mode_is_the_old_one_of_the_same_user_or_that_of_what_is_written() {
    let own = fs::metadata("/proc/self").unwrap().uid();
    let mut cases = vec![
        (Holds::Recording, None, 0o600),
        (Holds::Copies, None, 0o600),
        (Holds::Answer, None, 0o644),
        (Holds::Recording, Some((0o644, own)), 0o644),
        (Holds::Answer, Some((0o600, own)), 0o600),
        (Holds::Answer, Some((0o640, own)), 0o640),
    ];
    if is_root() {
        cases.extend([
            // Whoever laid the file here beforehand does not choose who may read a recording.
            (Holds::Recording, Some((0o666, ALICE)), 0o600),
            (Holds::Copies, Some((0o666, ALICE)), 0o600),
            (Holds::Answer, Some((0o666, ALICE)), 0o644),
        ]);
    }
    let umask = fs::read_to_string("/proc/self/status").unwrap();
    let umask = umask.lines().find_map(|l| l.strip_prefix("Umask:"));
    let umask = u32::from_str_radix(umask.unwrap().trim(), 8).unwrap();
    for (holds, old, wanted) in cases {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("x");
        if let Some((old, owner)) = old {
            fs::write(&file, "old").unwrap();
            chown(&file, Some(owner), None).unwrap();
            set_mode(&file, old);
        }
        let wanted = match (old, holds) {
            (Some((_, owner)), _) if owner == own => wanted,
            (_, Holds::Answer) => 0o666 & !umask,
            _ => wanted,
        };
        let mut output = Output::create(&Target::of(&file).unwrap(), holds).unwrap();
        let unfinished = names(dir.path())
            .into_iter()
            .find(|n| n.starts_with('.'))
            .unwrap();
        // Nobody reads it before it has its mode either.
        assert_eq!(
            mode(&dir.path().join(unfinished)) & !wanted,
            0,
            "{holds:?} {old:?}"
        );
        output.write_all(b"new").unwrap();
        output.commit().unwrap();
        assert_eq!(mode(&file), wanted, "{holds:?} {old:?}");
        assert_eq!(fs::metadata(&file).unwrap().uid(), own);
    }
}

#[test]
fn an_output_that_is_not_completed_leaves_the_old_file_and_nothing_else() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x");
    fs::write(&file, "old").unwrap();
    let begun = || Output::create(&Target::of(&file).unwrap(), Holds::Recording).unwrap();
    let mut output = begun();
    output.write_all(b"half").unwrap();
    drop(output);
    assert_eq!(fs::read_to_string(&file).unwrap(), "old");
    assert_eq!(names(dir.path()), ["x"]);
    // The place is taken by something else meanwhile.
    let mut output = begun();
    output.write_all(b"new").unwrap();
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(output.commit().is_err());
    assert_eq!(names(dir.path()), ["x"]);
    assert!(file.is_dir());
}

#[test]
fn of_many_writers_of_one_name_one_wins_whole() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("x");
    std::thread::scope(|s| {
        for n in 0..8u8 {
            let file = &file;
            s.spawn(move || {
                for _ in 0..20 {
                    let content = String::from(char::from(b'a' + n)).repeat(100_000);
                    put(file, &content, Holds::Answer).unwrap();
                    let seen = fs::read(file).unwrap();
                    assert_eq!(seen.len(), 100_000);
                    assert!(seen.iter().all(|b| *b == seen[0]));
                }
            });
        }
    });
    assert_eq!(names(dir.path()), ["x"]);
}

#[test]
fn a_hard_link_keeps_its_content() {
    let dir = tempfile::tempdir().unwrap();
    let [x, y] = ["x", "y"].map(|n| dir.path().join(n));
    fs::write(&x, "old").unwrap();
    fs::hard_link(&x, &y).unwrap();
    put(&x, "new", Holds::Answer).unwrap();
    assert_eq!(fs::read_to_string(&y).unwrap(), "old");
    assert_eq!(fs::read_to_string(&x).unwrap(), "new");
}

#[test]
fn what_cannot_be_written_is_known_before() {
    let dir = tempfile::tempdir().unwrap();
    assert!(Target::of(dir.path()).is_err(), "a directory");
    let missing = Target::of(&dir.path().join("no/file")).unwrap();
    assert!(output::check(&missing).is_err());
    assert!(output::write(&missing, b"", Holds::Answer).is_err());
    fs::write(dir.path().join("file"), "").unwrap();
    let below = Target::of(&dir.path().join("file/x")).unwrap();
    assert!(output::check(&below).is_err());
    assert!(target::directory(&dir.path().join("file")).is_err());
}

#[test]
fn what_is_exchanged_for_a_file_or_a_link_is_not_written_to() {
    let dir = tempfile::tempdir().unwrap();
    let pipe = dir.path().join("pipe");
    let victim = dir.path().join("victim");
    fs::write(&victim, "victim").unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .unwrap()
            .success()
    );
    let target = Target::of(&pipe).unwrap();
    assert_eq!(target, Target::Special(pipe.clone()));
    fs::remove_file(&pipe).unwrap();
    symlink("victim", &pipe).unwrap();
    assert!(output::write(&target, b"x", Holds::Answer).is_err());
    fs::remove_file(&pipe).unwrap();
    fs::hard_link(&victim, &pipe).unwrap();
    assert!(output::write(&target, b"x", Holds::Answer).is_err());
    assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
    // What was to become a file is replaced, and not followed.
    let file = dir.path().join("file");
    let target = Target::of(&file).unwrap();
    let mut output = Output::create(&target, Holds::Recording).unwrap();
    output.write_all(b"new").unwrap();
    symlink("victim", &file).unwrap();
    output.commit().unwrap();
    assert_eq!(fs::read_to_string(&victim).unwrap(), "victim");
    assert!(fs::symlink_metadata(&file).unwrap().is_file());
}

/// A directory of a user, with this mode.
fn directory(of: &Path, name: &str, owner: u32, mode: u32) -> PathBuf {
    let dir = of.join(name);
    fs::create_dir(&dir).unwrap();
    chown(&dir, Some(owner), None).unwrap();
    set_mode(&dir, mode);
    dir
}

/// A place where everybody may write, the home of another user, and a place of root's; they go with the first value.
fn places() -> (tempfile::TempDir, [PathBuf; 3]) {
    let all = tempfile::tempdir().unwrap();
    set_mode(all.path(), 0o755);
    let sticky = directory(all.path(), "sticky", 0, 0o1777);
    let home = directory(all.path(), "home", ALICE, 0o755);
    let system = directory(all.path(), "system", 0, 0o755);
    (all, [sticky, home, system])
}

/// Root writes where others have laid links, pipes and files.
#[test]
fn root_is_not_led_to_what_is_not_the_owners_of_a_link() {
    if !is_root() {
        return;
    }
    let (all, [sticky, home, system]) = places();
    let open = directory(all.path(), "open", 0, 0o777);
    let file = |dir: &Path, owner: u32| {
        let path = dir.join(format!("of-{owner}"));
        fs::write(&path, "old").unwrap();
        chown(&path, Some(owner), None).unwrap();
        path
    };
    let of_root = file(&system, 0);
    let of_alice = file(&home, ALICE);
    let of_bob = file(&home, BOB);
    let [new_of_root, new_of_alice] = [system.join("new"), home.join("new")];
    // (where the link lies, whose it is, where it leads to, whether it is followed)
    let cases = [
        (&sticky, ALICE, &of_root, false),
        (&sticky, ALICE, &of_alice, false),
        (&sticky, ALICE, &new_of_root, false),
        (&sticky, ALICE, &new_of_alice, false),
        (&sticky, 0, &of_root, true),
        (&open, ALICE, &of_root, false),
        (&open, ALICE, &of_alice, false),
        (&open, 0, &of_alice, true),
        (&home, ALICE, &of_root, false),
        (&home, ALICE, &of_bob, false),
        (&home, ALICE, &new_of_root, false),
        (&home, ALICE, &of_alice, true),
        (&home, ALICE, &new_of_alice, true),
        (&home, BOB, &of_alice, false),
        (&home, 0, &of_root, true),
        (&system, 0, &new_of_root, true),
    ];
    for (dir, owner, to, followed) in cases {
        let link = dir.join("link");
        symlink(to, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(owner), None).unwrap();
        let what = format!("{} of {owner} to {}", link.display(), to.display());
        let before = fs::read_to_string(to).ok();
        let done = put(&link, "new", Holds::Recording);
        assert_eq!(done.is_ok(), followed, "{what}: {done:?}");
        if let Err(e) = done {
            assert!(e.to_string().contains(&owner.to_string()), "{what}: {e}");
            assert_eq!(fs::read_to_string(to).ok(), before, "{what}");
        }
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink(), "{what}");
        // No file is a directory.
        assert!(target::directory(&link).is_err(), "{what}");
        fs::remove_file(&link).unwrap();
        let _ = fs::remove_file(&new_of_root);
        let _ = fs::remove_file(&new_of_alice);
        for (path, owner) in [(&of_root, 0), (&of_alice, ALICE)] {
            fs::write(path, "old").unwrap();
            chown(path, Some(owner), None).unwrap();
        }
    }
    // Two users' links, one after the other.
    symlink(home.join("second"), home.join("first")).unwrap();
    symlink(&of_alice, home.join("second")).unwrap();
    std::os::unix::fs::lchown(home.join("first"), Some(BOB), None).unwrap();
    std::os::unix::fs::lchown(home.join("second"), Some(ALICE), None).unwrap();
    assert!(put(&home.join("first"), "new", Holds::Answer).is_err());
    // Directories of segments and of trees.
    for (dir, followed) in [(&sticky, false), (&home, true)] {
        let link = dir.join("to-home");
        symlink(&home, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(ALICE), None).unwrap();
        assert_eq!(
            target::directory(&link).is_ok(),
            followed,
            "{}",
            dir.display()
        );
    }
}

#[test]
fn roots_output_goes_to_no_pipe_that_another_user_laid_in_a_common_directory() {
    if !is_root() {
        return;
    }
    let all = tempfile::tempdir().unwrap();
    let sticky = directory(all.path(), "sticky", 0, 0o1777);
    let home = directory(all.path(), "home", ALICE, 0o755);
    for (dir, owner, written) in [
        (&sticky, ALICE, false),
        (&sticky, 0, true),
        (&home, ALICE, true),
    ] {
        let pipe = dir.join("pipe");
        assert!(
            Command::new("mkfifo")
                .arg(&pipe)
                .status()
                .unwrap()
                .success()
        );
        chown(&pipe, Some(owner), None).unwrap();
        assert_eq!(
            Target::of(&pipe).is_ok(),
            written,
            "{owner} in {}",
            dir.display()
        );
        fs::remove_file(&pipe).unwrap();
    }
}

#[test]
fn root_is_not_led_astray_by_a_directory_on_the_way() {
    if !is_root() {
        return;
    }
    let (all, [sticky, home, system]) = places();
    // (where the link lies, whose it is, where it leads to, whether it is followed)
    let cases = [
        (&sticky, ALICE, &system, false),
        (&sticky, ALICE, &home, false),
        (&sticky, 0, &system, true),
        (&home, ALICE, &system, false),
        (&home, BOB, &home, false),
        (&home, ALICE, &home, true),
        (&home, 0, &system, true),
    ];
    for (dir, owner, to, followed) in cases {
        let (link, behind) = (dir.join("link"), all.path().join("behind"));
        symlink(to, &link).unwrap();
        std::os::unix::fs::lchown(&link, Some(owner), None).unwrap();
        // Reached by a link of root's, too.
        symlink(&link, &behind).unwrap();
        fs::create_dir_all(to.join("deeper")).unwrap();
        chown(to.join("deeper"), Some(owner), None).unwrap();
        for way in [&link, &behind] {
            for place in ["x", "deeper/x", "./deeper/../x"].map(|n| way.join(n)) {
                let what = format!("{} of {owner} to {}", place.display(), to.display());
                let done = put(&place, "new", Holds::Recording);
                assert_eq!(done.is_ok(), followed, "{what}: {done:?}");
                if let Err(e) = done {
                    assert!(e.to_string().contains(&owner.to_string()), "{what}: {e}");
                    assert!(e.to_string().contains("link"), "{what}: {e}");
                    assert!(!to.join("x").exists() && !to.join("deeper/x").exists());
                }
                let _ = fs::remove_file(to.join("x"));
                let _ = fs::remove_file(to.join("deeper/x"));
            }
        }
        fs::remove_file(&link).unwrap();
        fs::remove_file(&behind).unwrap();
    }
    // Links that go round end.
    symlink("round", all.path().join("round")).unwrap();
    assert!(put(&all.path().join("round/x"), "new", Holds::Answer).is_err());
}
