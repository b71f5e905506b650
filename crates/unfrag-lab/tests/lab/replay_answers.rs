//! What a replay answers first: the same kernel, another that differs, one that does not, one of which nothing can be said, one
//! that begins elsewhere, one that broke down; on the terminal and on the page, in short and with all numbers.

use crate::report_support::{example_breakdown, example_report};
use unfrag_lab::replay::Report;
use unfrag_lab::replay::answer::what_if::change::BEGIN_DIFFERENTLY;
use unfrag_lab::replay::answer::what_if::found::{Change, Verdict};
use unfrag_lab::replay::view::detail::Detail;
use unfrag_lab::replay::view::said::{KernelAnswer, Says, Told};
use unfrag_lab::replay::view::{html, svg, terminal};
use unfrag_lab::report::screen::Screen;

const WIDE: Screen = Screen {
    width: 300,
    color: false,
    unicode: true,
};

fn text(report: &Report, detail: Detail) -> String {
    terminal::render(report, &WIDE, detail).to_string()
}

/// With single spaces, on one line.
fn words(report: &Report, detail: Detail) -> String {
    let text = text(report, detail);
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The example, each change of its second kernel changed.
fn changed(change: impl Fn(&mut Change)) -> Report {
    let mut report = example_report();
    let what_if = report.kernels[1].what_if.as_mut().unwrap();
    what_if.changes.iter_mut().for_each(change);
    report
}

/// The second kernel differs in nothing that can be told.
fn same() -> Report {
    changed(|c| (c.verdict, c.reason) = (Some(Verdict::Same), None))
}

/// Of the second kernel nothing can be said.
fn unknown() -> Report {
    changed(|c| {
        c.verdict = None;
        c.reason = Some("the bar of the difference is wider than the difference".into());
    })
}

/// The second kernel begins with other memory.
fn apart() -> Report {
    changed(|c| {
        if c.name == "free_huge_blocks_end" {
            (c.verdict, c.reason) = (None, Some(BEGIN_DIFFERENTLY.into()));
        }
    })
}

fn own() -> Report {
    let mut report = example_report();
    report.kernels.truncate(1);
    report
}

/// The first answer.
fn first(report: &Report) -> KernelAnswer {
    Told::of(report).answer.kernels.remove(0)
}

#[test]
fn each_kind_of_answer_is_said_first() {
    let cases: [(&str, Report, Says, &[&str]); 6] = [
        (
            "own",
            own(),
            Says::Follows,
            &[
                "The model follows this host fairly well: ",
                "the host had 42",
            ],
        ),
        (
            "differs",
            example_report(),
            Says::Differs,
            &[
                "Under 2.6.32 fewer waits for reclaim: 20 to 60 instead of 178; more pages moved by compaction: 9,000 to 15,000 instead of 1,204",
                "higher share of free memory in pieces below 2 MiB at the end: 0.800 to 1.000 instead of 0.609.",
                "four of five such hosts should end with 2 to 60, so whether more or fewer cannot be said.",
            ],
        ),
        (
            "same",
            same(),
            Says::Same,
            &[
                "Under 2.6.32 no difference that can be told: about as much of huge pages given at page faults, waits for reclaim",
            ],
        ),
        (
            "unknown",
            unknown(),
            Says::CannotSay,
            &[
                "Cannot say whether 2.6.32 would be better or worse: several numbers may come out above or below what the host had (four of five such hosts lie between).",
            ],
        ),
        (
            "apart",
            apart(),
            Says::NotComparable,
            &[
                "Under 2.6.32 not comparable as it stands: it begins with other memory than the host.",
                "is evidence.",
            ],
        ),
        (
            "broken",
            example_breakdown(),
            Says::NoAnswer,
            &["No answer under 2.6.32: the model ran out of memory"],
        ),
    ];
    for (name, report, says, sentences) in cases {
        let answer = first(&report);
        assert_eq!(answer.says, says, "{name}: {answer:?}");
        let said = answer.sentences.join(" ");
        let page = html::render(&report, Detail::Short);
        let text = words(&report, Detail::Short);
        for sentence in sentences {
            assert!(
                said.contains(sentence),
                "{name}: `{sentence}` is not in {said}"
            );
            assert!(page.contains(sentence), "{name}: the page");
            assert!(text.contains(sentence), "{name}: the terminal");
        }
        let (before, after) = text.split_once("Answer: ").expect("an answer");
        assert!(before.contains("replayed under 6.1"), "{name}: {before}");
        assert!(after.starts_with(&answer.sentences[0]), "{name}: {after}");
    }
}

#[test]
fn the_answer_stands_before_trust_tables_and_what_to_ask_next() {
    let report = example_report();
    for detail in [Detail::Short, Detail::All] {
        let text = text(&report, detail);
        let at = |words: &str| {
            text.find(words)
                .unwrap_or_else(|| panic!("{words}: {text}"))
        };
        let order = [
            "pressure.unfrag: kernel",
            "Answer: ",
            "Trust: ",
            "What would be different",
            "DMA32 at the end",
            "Whole replay",
            "Notes",
            "Next: ",
        ];
        assert_eq!(at(order[0]), 0);
        let order = order.map(at);
        assert!(order.is_sorted(), "{order:?}");
        assert!(text.lines().last().is_some_and(|l| l.starts_with("Next: ")));
    }
}

#[test]
fn of_what_nothing_can_be_said_there_is_no_table_but_with_all() {
    let report = unknown();
    let short = text(&report, Detail::Short);
    assert!(!short.contains("What would be different"), "{short}");
    let heads = |text: &str| {
        let heads = text
            .lines()
            .filter(|l| l.trim_start().starts_with("recorded "));
        heads.filter(|l| l.contains("2.6.32")).count()
    };
    assert_eq!(heads(&short), 0, "{short}");
    assert!(!short.contains("2.6.32 predicted"), "{short}");
    let page = html::render(&report, Detail::Short);
    assert!(
        !page.contains(
            "<th scope=\"col\">2.6.32</th></tr></thead><tbody>\n<tr><th scope=\"row\">Free"
        )
    );
    assert!(!page.contains("cannot say</td>"));
    let all = text(&report, Detail::All);
    assert!(
        all.contains("2 to 60: cannot say") && heads(&all) > 1,
        "{all}"
    );
    assert!(html::render(&report, Detail::All).contains("cannot say</td>"));
}

#[test]
fn what_begins_elsewhere_says_so_and_shows_begin_end_and_change() {
    let report = apart();
    let short = text(&report, Detail::Short);
    assert!(short.contains("2.6.32 (other start)"), "{short}");
    assert!(!short.contains("What would be different"), "{short}");
    assert!(
        !short.contains("instead of"),
        "no direction is named: {short}"
    );
    let told = Told::of(&report);
    let free = told.answer.kernels[0].free.as_ref().unwrap();
    let huge = &free.huge_pages;
    assert_eq!(huge.end as i64 - huge.begin as i64, huge.change);
    let said = format!("from {} to {} ({})", huge.begin, huge.end, huge.change);
    assert!(short.contains(&said), "{said}: {short}");
}

#[test]
fn rows_that_are_zero_on_all_sides_come_back_with_all() {
    let mut report = example_report();
    for kernel in &mut report.kernels {
        kernel.totals.insert("compact_stall".into(), Some(0));
        kernel
            .totals
            .insert("compact_stall_recorded".into(), Some(0));
        kernel.totals.insert("thp_fault_alloc".into(), Some(9));
        kernel
            .totals
            .insert("thp_fault_alloc_recorded".into(), Some(9));
    }
    let zero = [
        "Waits for compaction (compact_stall)",
        "HighAtomic",
        "0 to 4: about the same",
    ];
    let views = |detail| [text(&report, detail), html::render(&report, detail)];
    for (view, page) in ["terminal", "page"].iter().zip(views(Detail::Short)) {
        // What the scripts of a page read is no table.
        let page = page.split("<script").next().unwrap_or_default();
        for row in zero {
            assert!(!page.contains(row), "{view} shows `{row}`");
        }
        assert!(
            page.contains("Huge pages given at page faults (thp_fault_alloc)"),
            "{view}"
        );
        assert!(page.contains("--all"), "{view} says how to see them");
    }
    for (view, page) in ["terminal", "page"].iter().zip(views(Detail::All)) {
        for row in zero {
            assert!(page.contains(row), "{view} does not show `{row}`");
        }
    }
    let text = text(&report, Detail::Short);
    let left = text.lines().find(|l| l.starts_with("Left out: "));
    let left = left.expect("a line says what is left out");
    let shown = text.lines().count();
    let all = self::text(&report, Detail::All).lines().count();
    let n: usize = left.split_whitespace().nth(2).unwrap().parse().unwrap();
    assert!(n > 20 && n < all - shown, "{n} of {all} - {shown}");
}

#[test]
fn where_the_model_broke_down_no_view_has_a_number_of_it() {
    let report = example_breakdown();
    let text = text(&report, Detail::All);
    let page = html::render(&report, Detail::All);
    let svg = svg::render(&report);
    for (view, text) in [("text", &text), ("page", &page), ("picture", &svg)] {
        let words: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(words.contains("No answer under 2.6.32"), "{view}");
        assert!(!words.contains("instead of 178"), "{view}");
    }
    assert!(
        text.contains("milder setting"),
        "what the user can do: {text}"
    );
    assert!(!text.contains("         2.6.32\n"), "no column: {text}");
}

/// The first kernel of the example is the recorded one as it was, of which nothing would be different.
#[test]
fn what_can_be_said_is_said_with_its_bar_and_what_cannot_is_named() {
    let words = words(&example_report(), Detail::All);
    for said in [
        "About the same: huge pages given at page faults.",
        "Cannot say whether more or less of: free huge pages (2 MiB blocks) at the end and pageblocks of unmovable kernel memory at the end.",
        "2 to 60: cannot say",
        "about 74: cannot say",
        "held against real kernels; loads: build, service.",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    assert!(!words.contains("Under 6.1"), "{words}");
    assert!(
        !words.contains("fewer waits for compaction"),
        "of none there are none"
    );
    assert!(!text(&own(), Detail::All).contains("different"));
}

/// The recorded kernel was not asked for, so that nothing else tells how far its model is off.
#[test]
fn a_number_that_the_recorded_kernels_model_misses_has_its_error_in_place_of_a_bar() {
    let mut report = example_report();
    report.kernels.remove(0);
    let what_if = report.kernels[0].what_if.as_mut().unwrap();
    let stalls = what_if.changes.iter_mut().find(|c| c.name == "allocstall");
    let stalls = stalls.unwrap();
    stalls.own = Some(1_900.0);
    stalls.verdict = None;
    stalls.reason =
        Some("the model of the recorded kernel is far off what the host had of this number".into());
    for detail in [Detail::Short, Detail::All] {
        let words = words(&report, detail);
        for said in [
            "is far off in: waits for reclaim: 1,900, the host 178.",
            "Under 2.6.32 more pages moved",
        ] {
            assert!(words.contains(said), "{said}: {words}");
        }
        assert!(!words.contains("20 to 60"), "{words}");
    }
    let page = html::render(&report, Detail::All);
    assert!(page.contains("cannot say</td>") && !page.contains("20 to 60"));
}

#[test]
fn the_table_of_what_differs_has_no_row_that_is_the_same_for_all() {
    let short = text(&example_report(), Detail::Short);
    assert!(!short.contains(": about the same"), "{short}");
    assert!(
        short.contains("About the same: huge pages given"),
        "{short}"
    );
}

#[test]
fn requests_without_memory_are_told_beside_those_of_the_host_where_there_are_more() {
    for (model, host, said) in [
        (291, Some(3_512), None),
        (291, None, None),
        (
            3_512,
            Some(291),
            Some("Requests that found no memory: 3,512 in the model of 2.6.32, 291 on the host."),
        ),
    ] {
        let mut report = example_report();
        let totals = &mut report.kernels[1].totals;
        totals.insert("failures".into(), Some(model));
        totals.insert("failures_recorded".into(), host);
        let told = Told::of(&report);
        let sentences = told.answer.kernels[0].sentences.join(" ");
        match said {
            Some(said) => assert!(sentences.contains(said), "{sentences}"),
            None => assert!(!sentences.contains("found no memory"), "{sentences}"),
        }
    }
}

/// That nobody measured what was asked of another kernel says nothing of how well the recorded one's model does.
#[test]
fn how_well_the_model_follows_does_not_depend_on_what_else_was_asked() {
    let last = |r: &Report| Told::of(r).answer.kernels.pop().unwrap().says;
    let mut report = example_report();
    assert_eq!(last(&report), Says::Follows);
    report.kernels[1].what_if.as_mut().unwrap().comparisons = 0;
    assert_eq!(last(&report), Says::Follows);
}

#[test]
fn that_nothing_happened_is_said_only_where_all_of_it_was_counted() {
    let nothing = |known: usize| {
        let mut report = own();
        let what_if = report.kernels[0].what_if.as_mut().unwrap();
        let change = what_if.changes.remove(0);
        let names = [
            "thp_fault_alloc",
            "thp_fault_fallback",
            "allocstall",
            "compact_stall",
        ];
        let all = names.iter().enumerate().map(|(i, name)| Change {
            name,
            asked: 0.0,
            recorded: (i < known).then_some(0.0),
            ..change.clone()
        });
        what_if.changes = all.collect();
        first(&report).sentences.join(" ")
    };
    assert!(nothing(4).contains("Nobody waited for memory"));
    for known in 0..4 {
        assert!(
            !nothing(known).contains("Nobody"),
            "{known}: {}",
            nothing(known)
        );
    }
}

/// A bar of what was never measured is a guess, and the answer itself says so.
#[test]
fn an_answer_by_guesses_says_so() {
    let mut report = example_report();
    report.kernels[1].what_if.as_mut().unwrap().comparisons = 0;
    let said = first(&report).sentences.join(" ");
    assert!(said.contains("ranges that are guesses"), "{said}");
    assert!(said.contains("(a guess)"), "{said}");
}

#[test]
fn what_to_ask_next_fits_what_was_asked() {
    let next = |report: &Report| {
        let text = text(report, Detail::Short);
        text.lines().last().unwrap_or_default().to_string()
    };
    let mut other = example_report();
    other.kernels.remove(0);
    let mut booted = apart();
    booted.start = "boot".into();
    for (report, wanted) in [
        (own(), "--kernel 6.1,6.18"),
        (other, "--kernel 6.1,2.6.32"),
        (booted, "leave out --start boot"),
        (unknown(), "unfrag record --system"),
        (example_report(), "--html"),
    ] {
        assert!(
            next(&report).contains(wanted),
            "{wanted}: {}",
            next(&report)
        );
        assert!(next(&report).contains("--all"));
    }
}

/// The recorded kernel was not asked for, and its model follows free memory worse than counting pages would.
#[test]
fn where_the_recorded_kernels_own_model_is_worse_than_counting_that_is_said_first() {
    const WORSE: &str =
        "under its own kernel the model follows free memory worse than counting pages would";
    let withheld = |c: &mut Change| {
        if ["free_", "unusable_", "thp_fault_"]
            .iter()
            .any(|of| c.name.starts_with(of))
        {
            (c.verdict, c.reason) = (None, Some(WORSE.into()));
        }
    };
    let mut report = changed(withheld);
    let mut own = report.kernels.remove(0);
    let a = own.accuracy.as_mut().unwrap();
    (a.free_pages_error.p90, a.free_pages_error.max) = (1.6, 2.0);
    a.free_pages_error.skill = Some(-1.27);
    assert!(a.is_worse_than_counting());
    report.own = Some(own);
    let shown = words(&report, Detail::Short);
    for said in [
        "Answer: This recording cannot say what 2.6.32 would do to free memory and huge pages: under its own kernel the model already follows free memory worse than counting pages would (see Trust). Under 2.6.32 fewer waits for reclaim",
        "Trust: none for free memory and huge pages. What decides is the amount of free memory",
        "replayed only for that",
    ] {
        assert!(shown.contains(said), "{said}: {shown}");
    }
    for not_said in [
        "Free huge pages",
        "DMA32",
        "2.6.32 predicted",
        "Cannot say whether 2.6.32",
        "Allocations that failed",
    ] {
        assert!(!shown.contains(not_said), "{not_said}: {shown}");
    }
    // Huge pages that the model has and the host has not are the plainest reason.
    let what_if = report.kernels[0].what_if.as_mut().unwrap();
    let mut changes = what_if.changes.iter_mut();
    let huge = changes.find(|c| c.name == "free_huge_blocks_end").unwrap();
    (huge.own, huge.recorded) = (Some(9.0), Some(0.0));
    let shown = words(&report, Detail::Short);
    let said = "under its own kernel the model already has 9 free huge pages (2 MiB blocks) at the end where the host had 0.";
    assert!(shown.contains(said), "{shown}");
    let all = text(&report, Detail::All);
    assert!(all.contains("DMA32 at the end"), "{all}");
}

#[test]
fn kernels_that_were_asked_for_are_compared_with_each_other() {
    let mut report = example_report();
    let mut third = report.kernels[1].clone();
    third.kernel = "6.18".into();
    report.kernels.push(third.clone());
    let shown = words(&report, Detail::Short);
    assert!(
        shown.contains("2.6.32 and 6.18 cannot be told apart."),
        "{shown}"
    );
    let what_if = report.kernels[2].what_if.as_mut().unwrap();
    let mut changes = what_if.changes.iter_mut();
    let stalls = changes.find(|c| c.name == "allocstall").unwrap();
    (stalls.asked, stalls.predicted, stalls.bar) = (99.0, 99.0, Some([90.0, 120.0]));
    let shown = words(&report, Detail::Short);
    let said = "6.18 beside 2.6.32: more waits for reclaim: 90 to 120 (20 to 60 under 2.6.32).";
    assert!(shown.contains(said), "{shown}");
}

#[test]
fn a_kernel_of_which_nothing_is_said_is_named_where_it_is_missing() {
    let mut report = example_report();
    let mut silent = unknown().kernels.remove(1);
    silent.kernel = "6.18".into();
    report.kernels.push(silent);
    let shown = text(&report, Detail::Short);
    let said = "In no table, as nothing can be said of it: 6.18.";
    assert!(shown.contains(said), "{shown}");
    assert!(!shown.contains("failed under 6.18"), "{shown}");
}
