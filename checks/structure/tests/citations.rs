//! Which citations are found, and which lead nowhere.

use std::fs;
use std::path::Path;

use structure::citations::Citations;
use structure::rules::Rules;

const RULES: &str = "\
# 4. Reclaim
## 4.1 Lists
## 4.2 kswapd
## 4.3 Slow path
1. First step.
2. Second step.

```
# 9. No heading: code
```
## 4.8 Later kernels
| point | change |
|---|---|
| (a) | one |
| 7 | two |
# K. Logs
## K.2 Failures
## No number
(z) belongs to no section.
";

/// What is wrong with the citations of a file with this text, each with its line. `SPEC` stands for the word that begins
/// a citation: this file must not hold one.
fn errors(name: &str, text: &str) -> (usize, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text.replace("SPEC", concat!("sp", "ec"))).unwrap();
    let rules = folder.path().join("docs/book/rules");
    fs::create_dir_all(&rules).unwrap();
    fs::write(rules.join("all.md"), RULES).unwrap();
    fs::write(folder.path().join("docs/book/page.md"), "# 8. No rule").unwrap();
    let rules = Rules::read(folder.path()).unwrap();
    assert_eq!(rules.len(), 7);
    let citations = Citations::read(folder.path(), &rules).unwrap();
    let wrong = citations.wrong.into_iter().map(|(file, line, error)| {
        assert_eq!(file, Path::new(name));
        format!("{line}: {error}")
    });
    (citations.count, wrong.collect())
}

fn rust_errors(text: &str) -> (usize, Vec<String>) {
    errors("src/a.rs", text)
}

#[test]
fn citations_that_lead_to_sections() {
    let text = "
//! Head. `SPEC: 4` and (`SPEC: 4.1-4.3, 4.8; K.2`).
/* block `SPEC: K` */
fn f() { // SPEC: 4.3.
    let s = \"SPEC: 4.2\"; let r = r#\"x SPEC: 4.1\"#; // SPEC: 4.3 (2), 4.8 (a), 4.8 (7)
}";
    assert_eq!(rust_errors(text), (7, vec![]));
}

#[test]
fn unknown_sections() {
    let text = "
// `SPEC: 4.9`
fn f() {}
/// Words.
/// `SPEC: 4.1,
/// 5`, then `SPEC: 4.1-4.8`
fn g() { \"
SPEC: 9\"; }
";
    let wrong = vec![
        "2: section 4.9 is not in the rules".to_owned(),
        "5: section 5 is not in the rules".to_owned(),
        "6: section 4.4 of 4.1-4.8 is not in the rules".to_owned(),
        "8: section 9 is not in the rules".to_owned(),
    ];
    assert_eq!(rust_errors(text), (4, wrong));
}

#[test]
fn unknown_points_and_ranges_that_are_none() {
    let text = "// `SPEC: 4.3 (3)`, `SPEC: 4.3-4.1`, `SPEC: 4-4.3`, `SPEC: K (z)`";
    let wrong = vec![
        "1: section 4.3 has no point 3".to_owned(),
        "1: 4.3-4.1 is no range".to_owned(),
        "1: 4-4.3 is no range".to_owned(),
        "1: section K has no point z".to_owned(),
    ];
    assert_eq!(rust_errors(text), (4, wrong));
}

#[test]
fn other_forms_are_told() {
    for cited in [
        "linux-mm 4.3",
        "4.3 patch 2",
        "4.3; linux-6.1 4.3",
        "4.3, and",
        "era table",
        "",
    ] {
        let (count, wrong) = rust_errors(&format!("// `SPEC: {cited}`"));
        assert_eq!((count, wrong.len()), (1, 1), "{cited}");
    }
    for text in [
        "// `SPEC: 4.3",
        "// SPEC: 4.3 and",
        "// SPEC 4.3",
        "// (SPECification 4.1)",
        "// SPEC: §4.3",
    ] {
        let (count, wrong) = rust_errors(text);
        assert_eq!((count, wrong.len()), (1, 1), "{text}");
    }
}

#[test]
fn code_is_no_citation() {
    let text = "fn f<'a>(SPEC: Spec, c: char) { let r#x = '\"'; let y = '\\''; g(SPEC: 4.9) } // in SPEC\n// a_SPEC: 4.9";
    assert_eq!(rust_errors(text), (0, vec![]));
}

#[test]
fn scripts_and_settings_beside_the_sources() {
    assert_eq!(errors("checks/x/run", "# SPEC: 4.9\n").1.len(), 1);
    assert_eq!(
        errors("fuzz/Cargo.toml", "a = 1 # `SPEC: 4.3`\n"),
        (1, vec![])
    );
    assert_eq!(errors("docs/page.md", "SPEC: 4.9").0, 0);
}

#[test]
fn two_headings_of_one_number() {
    let mut rules = Rules::default();
    rules.add("# 1. One\n## 1.1 Part").unwrap();
    assert_eq!(
        rules.add("## 1.1 Again"),
        Err("section 1.1 stands twice".to_owned())
    );
}
