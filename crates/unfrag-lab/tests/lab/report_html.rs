//! The page: it loads nothing, carries its data unharmed, and lets no name break out.

use crate::report_support::{BLOCKS, SAMPLES, example_report};
use unfrag_lab::replay::{Report, view::detail::Detail, view::html};

fn render(report: &Report) -> String {
    html::render(report, Detail::Short)
}

/// The JSON that the page carries, as text.
fn data_text(page: &str) -> &str {
    let (_, rest) = page
        .split_once("<script type=\"application/json\" id=\"data\">")
        .expect("the page carries data");
    rest.split_once("</script>").expect("the element ends").0
}

/// The JSON that the page carries.
fn data(page: &str) -> serde_json::Value {
    serde_json::from_str(data_text(page)).expect("the data is JSON")
}

/// Whether the page carries this very report, every digit and every character of it.
fn carries(page: &str, report: &Report) -> bool {
    let all = data_text(page).replace("\\u003c", "<");
    let json = serde_json::to_string(report).expect("a report is plain data");
    all.starts_with(&format!("{{\"report\":{json},"))
}

/// The page without the insides of its scripts and of its style sheet.
fn markup(page: &str) -> String {
    let mut out = String::new();
    let mut rest = page;
    while let Some((before, after)) = rest.split_once("<script") {
        out.push_str(before);
        out.push_str("<script");
        let (open, body) = after.split_once('>').expect("the element opens");
        out.push_str(open);
        rest = body.split_once("</script>").expect("the element ends").1;
    }
    out + rest
}

#[test]
fn the_page_loads_nothing() {
    let page = render(&example_report());
    for word in [
        " src=", "<link", "<img", "<iframe", "@import", "url(", "http://", "https://",
    ] {
        assert!(!markup(&page).contains(word), "{word}");
    }
    assert!(page.contains("default-src 'none'"));
    for call in ["fetch(", "XMLHttpRequest", "WebSocket", "import("] {
        assert!(!page.contains(call), "{call}");
    }
}

#[test]
fn the_data_comes_back_as_it_went_in() {
    let report = example_report();
    let page = render(&report);
    let found = data(&page);
    assert!(carries(&page, &report));
    assert_eq!(found["zones"][0]["zone"], "DMA32");
    assert_eq!(found["zones"][1]["zone"], "DMA");
    let map = &found["report"]["kernels"][1]["block_map"];
    assert_eq!(map["types"].as_array().map(Vec::len), Some(SAMPLES));
    assert_eq!(map["types"][0].as_str().map(str::len), Some(BLOCKS));
}

#[test]
fn no_name_breaks_out_of_its_place() {
    let evil = "</script><script>alert(1)</script><b title=\"x\" y='z'>&<!--";
    let mut report = example_report();
    let elements = render(&report).matches("<script").count();
    report.recording.file = evil.into();
    report.recording.kernel_release = evil.into();
    let kernel = &mut report.kernels[1];
    kernel.kernel = evil.into();
    kernel.notes.push(evil.into());
    kernel.failures[0].gfp = evil.into();
    kernel.settings.insert(evil.into(), evil.into());
    kernel.totals.insert(evil.into(), Some(1));
    kernel.block_map.as_mut().unwrap().type_names[0] = evil.into();
    for sample in &mut kernel.samples {
        sample.name = evil.into();
        sample.zones[0].zone = evil.into();
        sample.zones[0].pageblocks.insert(evil.into(), 1);
    }
    let page = render(&report);
    assert!(!page.contains("alert(1)</script>"));
    assert!(!page.contains("<b title"));
    assert_eq!(page.matches("<script").count(), elements);
    assert!(carries(&page, &report));
    assert!(data(&page).is_object());
}

#[test]
fn the_same_report_gives_the_same_bytes() {
    assert!(render(&example_report()) == render(&example_report()));
}

#[test]
fn a_page_of_an_empty_replay_is_still_made() {
    let mut report = example_report();
    report.recorded.clear();
    report.kernels.clear();
    let page = render(&report);
    assert!(page.contains("not measured"));
    assert_eq!(data(&page)["zones"], serde_json::json!([]));
}

#[test]
fn a_huge_replay_is_cut_down_and_says_so() {
    let mut report = example_report();
    let map = report.kernels[0].block_map.as_mut().unwrap();
    for row in map.types.iter_mut().chain(&mut map.fullness) {
        *row = row.repeat(40);
    }
    let page = render(&report);
    assert!(
        page.contains("13 neighbouring pageblocks as one"),
        "not said"
    );
    let map = &data(&page)["report"]["kernels"][0]["block_map"];
    assert_eq!(map["types"][0].as_str().map(str::len), Some(985));
    assert_eq!(map["block_pages"], 512 * 13);
}

#[test]
fn what_would_be_different_comes_first() {
    let page = render(&example_report());
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}"));
    assert!(at("fewer waits for reclaim: 20 to 60 instead of 178") < at("class=\"trust\""));
    assert!(at("class=\"trust\"") < at("id=\"changes\""));
    assert!(at("20 to 60: fewer") < at("id=\"over-time\""));
    let mut own = example_report();
    own.kernels.truncate(1);
    assert!(!render(&own).contains("id=\"changes\""));
}
