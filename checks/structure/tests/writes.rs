//! Which calls are found that write files by themselves.

use structure::writes::calls;

fn found(source: &str) -> Vec<String> {
    let all = calls(source).unwrap();
    all.into_iter()
        .map(|(line, call)| format!("{line} {call}"))
        .collect()
}

#[test]
fn every_way_to_make_a_file_is_found() {
    for (line, call) in [
        ("std::fs::write(p, b\"\")", "fs::write"),
        ("fs::rename(a, b)", "fs::rename"),
        ("std::fs::File::create(p)", "File::create"),
        ("File::create_new(p)", "File::create_new"),
        ("File::options().write(true)", "File::options"),
        (
            "OpenOptions::new().append(true).open(p)",
            "OpenOptions::new",
        ),
        (
            "all.iter().for_each(fs::create_dir_all)",
            "fs::create_dir_all",
        ),
        ("DirBuilder::new()", "DirBuilder::new"),
        ("std::os::unix::fs::symlink(a, b)", "fs::symlink"),
        ("tempfile::NamedTempFile::new()", "tempfile::NamedTempFile"),
    ] {
        let source = format!("fn f() {{\n    {line};\n}}\n");
        assert!(found(&source).contains(&format!("2 {call}")), "{line}");
        let method = format!("impl T {{\n    fn f() {{ {line}; }} }}\n");
        assert!(found(&method).contains(&format!("2 {call}")), "{line}");
    }
    assert_eq!(
        found("use std::fs::{self, write};\nuse std::fs::copy as c;"),
        ["1 fs::write", "2 fs::copy"]
    );
}

#[test]
fn readers_and_tests_are_free() {
    for source in [
        "fn f() { fs::read(p); File::open(p); fs::remove_file(p); out.write_all(b); file::write(r, p); }",
        "use std::fs::{self, File, OpenOptions};",
        "#[test] fn f() { fs::write(p, b); }",
        "#[cfg(test)] mod tests { fn f() { fs::write(p, b); } }",
        "#[cfg(test)] impl T { fn f() { File::create(p); } }",
        "impl T { #[cfg(test)] fn f() { File::create(p); } }",
        "// fs::write(p, b)\nconst T: &str = \"fs::write\";",
    ] {
        assert_eq!(found(source), [""; 0], "{source}");
    }
}
