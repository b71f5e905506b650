//! What was measured once stands in the book as one number, on whichever page.

use crate::support::book::read;
use crate::support::root;

/// A page's table cell: the row that begins with `row`, under the heading that begins with `column`.
fn cell(page: &str, row: &str, column: &str) -> String {
    let text = read(&root().join("docs").join(page));
    let cells = |line: &str| -> Vec<String> {
        let line = line.trim().trim_matches('|');
        line.split('|').map(|c| c.trim().to_owned()).collect()
    };
    let mut heading: Vec<String> = vec![];
    let mut before = "";
    for line in text.lines() {
        if line.starts_with("|---") {
            heading = cells(before);
        } else if line.starts_with('|') {
            let at = heading.iter().position(|h| h.starts_with(column));
            if let (true, Some(at)) = (cells(line)[0].starts_with(row), at) {
                return cells(line)[at].clone();
            }
        }
        before = line;
    }
    panic!("{page} has no row {row:?} under {column:?}");
}

/// The first number of a cell.
fn number(cell: &str) -> f64 {
    let first = cell.split_whitespace().next().expect("a number");
    first.trim_end_matches(',').parse().expect("a number")
}

#[test]
fn the_accuracy_of_reclaim_is_the_same_on_both_of_its_pages() {
    const RESULT: &str = "accuracy.md";
    const MEASURED: &str = "accuracy-measured.md";
    for (row, column, row_there, column_there) in [
        (
            "skill of free pages, exact start",
            "median of 21",
            "median of 21",
            "exact start",
        ),
        (
            "skill of free pages, from counts",
            "median of 21",
            "median of 21",
            "from counts",
        ),
        (
            "skill of free pages, exact start",
            "one replay",
            "one replay",
            "exact start",
        ),
        (
            "skill of free pages, from counts",
            "one replay",
            "one replay",
            "from counts",
        ),
        (
            "skill of free pages, exact start",
            "median of 51",
            "median of 51",
            "exact start",
        ),
        (
            "skill of free pages, from counts",
            "median of 51",
            "median of 51",
            "from counts",
        ),
    ] {
        let (a, b) = (
            cell(RESULT, row, column),
            cell(MEASURED, row_there, column_there),
        );
        assert_eq!(number(&a), number(&b), "{row}, {column}: {a:?} and {b:?}");
    }
    // In sentences there, as what a reader may expect.
    let exact = cell(RESULT, "skill of free pages, exact start", "median of 21");
    let counts = cell(RESULT, "skill of free pages, from counts", "median of 21");
    let without_swap = cell(MEASURED, "skill of free pages, median", "model");
    let page = read(&root().join("docs").join(RESULT));
    for said in [
        format!(
            "{} from an exact start, {} from counts",
            number(&exact),
            number(&counts)
        ),
        format!("skill of free pages is {}", number(&without_swap)),
    ] {
        assert!(page.contains(&said), "{RESULT} does not say {said:?}");
    }
}

#[test]
fn the_index_of_experiments_says_of_aim9_what_its_page_says() {
    let outcome = cell("experiments.md", "[`aim9`]", "outcome");
    let page = read(&root().join("docs/experiments/aim9.md"));
    for text in [&outcome, &page] {
        assert!(text.contains("shows nothing"), "{text}");
        assert!(text.contains("by construction"), "{text}");
    }
}
