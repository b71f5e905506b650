//! A replay of a recording that holds little of what its host allocated is refused, and says what to do.

use crate::recording_support::sample;
use unfrag_lab::error::Remedy;
use unfrag_lab::input::Input;
use unfrag_lab::replay::answer::LEAST_SHARE;
use unfrag_lab::replay::view::trust::trust;
use unfrag_lab::replay::{Mode, NoWatch, Options, Report, replay};
use unfrag_lab::summary::summarize;
use unfrag_linux::recording::{Lost, Recording};
use unfrag_linux::share::Share;

/// The sample, whose host allocated so many times the pages that it did; 0 for one that does not count them.
fn of_busier_host(times: u64) -> Recording {
    let mut rec = sample().clone();
    for file in rec.snapshots.iter_mut().flat_map(|s| &mut s.files) {
        if file.name != "vmstat" {
            continue;
        }
        let text = String::from_utf8(file.content.bytes().into_owned()).unwrap();
        let line = |line: &str| match line.split_once(' ') {
            Some((name, _)) if name.starts_with("pgalloc_") && times == 0 => String::new(),
            Some((name, n)) if name.starts_with("pgalloc_") => {
                format!("{name} {}\n", n.parse::<u64>().unwrap() * times)
            }
            _ => format!("{line}\n"),
        };
        file.content = text
            .lines()
            .map(line)
            .collect::<String>()
            .into_bytes()
            .into();
    }
    rec
}

fn share(rec: &Recording) -> Option<f64> {
    Input::from(rec).share().unwrap().map(Share::fraction)
}

fn ask(rec: &Recording, mode: Mode, any_share: bool) -> Result<Report, unfrag_lab::error::Error> {
    let options = Options {
        mode,
        any_share,
        members: Some(1),
        ..Options::default()
    };
    replay(rec, "a recording", &options, &mut NoWatch)
}

#[test]
fn the_sample_holds_nearly_all_that_its_host_allocated() {
    let whole = share(sample()).unwrap();
    assert!((0.97..=1.0).contains(&whole), "{whole}");
    let busier = share(&of_busier_host(4)).unwrap();
    assert!((busier * 4.0 / whole - 1.0).abs() < 0.03, "{busier}");
    let told = summarize(sample(), "a recording").unwrap();
    assert_eq!(told.share_of_allocations, Some(whole));
    assert_eq!(share(&of_busier_host(0)), None);
}

#[test]
fn too_small_a_share_is_refused_unless_nothing_is_predicted_or_the_answer_is_wanted_all_the_same() {
    let mut rec = of_busier_host(10);
    assert!(share(&rec).unwrap() < LEAST_SHARE);
    let refused = |rec: &Recording| ask(rec, Mode::Predict, false).map(drop).unwrap_err();
    let e = refused(&rec);
    assert_eq!(e.remedy, Remedy::RecordHost);
    assert!(
        e.to_string()
            .contains(" % of the pages that the host allocated"),
        "{e}"
    );
    // What was lost is no reason where most was never asked for.
    rec.meta.lost = vec![Lost {
        cpu: 0,
        before_event: 9,
        count: Some(7),
    }];
    rec.meta.facts.insert("scope".into(), "command".into());
    assert_eq!(refused(&rec).remedy, Remedy::RecordHost);
    rec.meta.facts.insert("scope".into(), "system".into());
    assert_eq!(refused(&rec).remedy, Remedy::RecordWithoutLoss);
    assert!(ask(&rec, Mode::Observe, false).is_ok());
    let report = ask(&rec, Mode::Predict, true).unwrap();
    let told = report.recording.share_of_allocations.unwrap();
    assert!((0.05..0.15).contains(&told), "{told}");
    let sentences = trust(&report).sentences.concat();
    assert!(
        sentences.contains("of the pages that the host allocated."),
        "{sentences}"
    );
}

#[test]
fn a_share_that_is_not_known_refuses_nothing() {
    let report = ask(&of_busier_host(0), Mode::Predict, false).unwrap();
    assert_eq!(report.recording.share_of_allocations, None);
    let sentences = trust(&report).sentences.concat();
    assert!(
        !sentences.contains("of the pages that the host allocated."),
        "{sentences}"
    );
}
