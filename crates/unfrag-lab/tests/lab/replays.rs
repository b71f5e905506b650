//! Whole replays of the sample: every era, other memory, the same twice.

use crate::recording_support::sample;
use unfrag_eras::Manager;
use unfrag_eras::kernel::kernels;
use unfrag_lab::era::settings::Setting;
use unfrag_lab::replay::answer::report::{KernelReport, Report};
use unfrag_lab::replay::model::ReplayHost;
use unfrag_lab::replay::{Mode, NoWatch, Options, StartChoice, Watch, replay};
use unfrag_linux::recording::{Recording, Snapshot};

fn options(kernels: &[&str]) -> Options {
    Options {
        kernels: kernels.iter().map(|k| k.to_string()).collect(),
        ..Options::default()
    }
}

fn run(options: &Options) -> Result<Report, String> {
    replay(sample(), "sample", options, &mut NoWatch).map_err(|e| e.to_string())
}

/// Validates every structure at each n-th snapshot and at the last.
struct Validating {
    each: usize,
    seen: usize,
    of: usize,
    validated: usize,
}

impl Watch for Validating {
    fn at_snapshot(&mut self, kernel: &str, snap: &Snapshot, m: &Manager<'_, ReplayHost>) {
        self.seen += 1;
        if (self.seen % self.of).is_multiple_of(self.each) {
            let sound = m.inspect().validate();
            assert!(sound.is_ok(), "{kernel} at {}: {sound:?}", snap.name);
            if let Some(own) = m.host().own() {
                let agrees = own.check(|zone| m.inspect().zone(zone).free_pages);
                assert!(agrees.is_ok(), "{kernel} at {}: {agrees:?}", snap.name);
            }
            self.validated += 1;
        }
    }
}

fn snapshots_within() -> usize {
    run(&options(&["6.1"])).unwrap().recorded.len()
}

#[test]
fn every_era_replays_the_sample_and_stays_sound() {
    let names: Vec<&str> = kernels().map(|p| p.name).collect();
    let of = snapshots_within();
    let mut watch = Validating {
        each: of,
        seen: 0,
        of,
        validated: 0,
    };
    let report = replay(sample(), "sample", &options(&names), &mut watch).unwrap();
    assert_eq!(watch.validated, names.len());
    assert_eq!(report.kernels.len(), names.len());
    for (k, name) in report.kernels.iter().zip(names) {
        assert_eq!(k.kernel, name);
        assert_eq!(k.recorded_era, name == "6.1");
        assert_eq!(k.accuracy.is_some(), name == "6.1");
        assert_eq!(k.samples.len(), report.recorded.len());
        assert!(
            k.totals["allocations"].unwrap() > 400_000,
            "{name}: {:?}",
            k.totals
        );
    }
}

#[test]
fn structures_are_sound_at_every_tenth_snapshot() {
    let of = snapshots_within();
    let mut watch = Validating {
        each: 10,
        seen: 0,
        of,
        validated: 0,
    };
    replay(sample(), "sample", &options(&["6.1", "v19"]), &mut watch).unwrap();
    assert!(watch.validated > 20, "{}", watch.validated);
}

#[test]
fn two_replays_give_the_same_bytes() {
    let two = options(&["6.1", "6.18"]);
    let bytes = || serde_json::to_string(&run(&two).unwrap()).unwrap();
    assert!(bytes() == bytes());
}

#[test]
fn observing_twice_gives_the_same_bytes() {
    let observe = Options {
        mode: Mode::Observe,
        ..Options::default()
    };
    let bytes = || serde_json::to_string(&run(&observe).unwrap()).unwrap();
    assert!(bytes() == bytes());
}

#[test]
fn without_a_kernel_the_recorded_era_replays() {
    let report = run(&Options::default()).unwrap();
    let names: Vec<&str> = report.kernels.iter().map(|k| &k.kernel[..]).collect();
    assert_eq!(names, ["6.1"]);
    assert_eq!((&report.start[..], &report.mode[..]), ("counts", "predict"));
}

fn with_memory(mib: u64) -> Result<Report, String> {
    run(&Options {
        memory: Some(mib << 20),
        ..options(&["6.1"])
    })
}

fn managed(k: &KernelReport) -> u64 {
    k.samples[0].zones.iter().map(|z| z.managed_pages).sum()
}

#[test]
fn the_same_work_runs_in_more_memory_and_has_more_of_it_free() {
    let own = run(&options(&["6.1"])).unwrap();
    let more = with_memory(2048).unwrap();
    let (own, more) = (&own.kernels[0], &more.kernels[0]);
    assert!(managed(more) > managed(own) * 2);
    let free = |k: &KernelReport| -> u64 {
        let last = k.samples.last().unwrap();
        last.zones.iter().map(|z| z.free_pages).sum()
    };
    assert!(free(more) > free(own) + 250_000);
    // What it says is measured against nothing, and the output says why.
    assert!(more.accuracy.is_none());
    assert!(more.notes.iter().any(|n| n.contains("placed anew")));
    assert!(more.failures.is_empty(), "{:?}", more.failures);
}

#[test]
fn in_less_memory_requests_fail_but_nothing_breaks() {
    let less = with_memory(448).unwrap();
    assert!(!less.kernels[0].failures.is_empty());
}

#[test]
fn memory_above_4_gib_has_a_normal_zone() {
    let report = with_memory(6144).unwrap();
    let zones = &report.kernels[0].samples[0].zones;
    let names: Vec<&str> = zones.iter().map(|z| &z.zone[..]).collect();
    assert_eq!(names, ["DMA", "DMA32", "Normal"]);
}

#[test]
fn too_little_memory_is_an_error_that_says_how_much_is_needed() {
    for mib in [0, 1, 16, 64] {
        let e = with_memory(mib).unwrap_err();
        assert!(
            e.contains("MiB cannot be") && e.contains("are possible"),
            "{e}"
        );
    }
    let e = with_memory(u64::MAX >> 20).unwrap_err();
    assert!(e.contains("16 TiB"), "{e}");
}

#[test]
fn a_setting_is_shown_and_takes_the_measure_away() {
    let set = Options {
        set: vec![Setting::parse("vm.min_free_kbytes=65536").unwrap()],
        ..options(&["6.1"])
    };
    let report = run(&set).unwrap();
    let k = &report.kernels[0];
    assert_eq!(k.settings["vm.min_free_kbytes"], 65536);
    assert!(k.accuracy.is_none());
}

#[test]
fn what_does_not_exist_is_an_error() {
    let e = run(&options(&["6.99"])).unwrap_err();
    assert!(e.contains("6.99"), "{e}");
    let exact = Options {
        start: StartChoice::Exact,
        ..Options::default()
    };
    assert!(run(&exact).unwrap_err().contains("free lists"));
    let e = replay(
        &Recording::default(),
        "none",
        &Options::default(),
        &mut NoWatch,
    );
    assert!(e.unwrap_err().to_string().contains("no events"));
}

#[test]
fn a_recording_without_snapshots_cannot_be_replayed() {
    let bare = Recording {
        snapshots: vec![],
        ..sample().clone()
    };
    let e = replay(&bare, "bare", &Options::default(), &mut NoWatch).unwrap_err();
    assert!(e.to_string().contains("snapshot"), "{e}");
}

fn setting(text: &str) -> Setting {
    Setting::parse(text).unwrap()
}

#[test]
fn asked_for_what_the_host_had_the_replay_is_held_against_it() {
    let had = "vm.compaction_proactiveness=20";
    for (recorded, asked, is_measured) in [
        (vec![], vec![], true),
        (vec![had], vec![], true),
        (vec![had], vec![had], true),
        (vec![had], vec!["vm.compaction_proactiveness=60"], false),
        (
            vec![
                "vm.compaction_proactiveness=0",
                "vm.compaction_proactiveness=20@8",
            ],
            vec![had],
            true,
        ),
        (vec![had], vec!["vm.compaction_proactiveness=60@8"], false),
        // Nobody says what it had: 20, the kernel's default, is assumed.
        (vec![], vec![had], true),
        (vec![], vec!["vm.compaction_proactiveness=60"], false),
    ] {
        let all = |texts: &[&str]| texts.iter().map(|t| setting(t)).collect();
        let report = run(&Options {
            set: all(&asked),
            recorded: all(&recorded),
            ..options(&["6.1"])
        });
        let k = &report.unwrap().kernels[0];
        assert!(k.recorded_era);
        let measured = k.accuracy.is_some();
        assert_eq!(
            measured, is_measured,
            "recorded {recorded:?}, asked {asked:?}"
        );
    }
}

#[test]
fn marks_cannot_be_asked_for_from_a_later_time_on() {
    let e = run(&Options {
        set: vec![setting("vm.min_free_kbytes=65536@8")],
        ..options(&["6.1"])
    });
    let e = e.unwrap_err();
    assert!(e.contains("vm.min_free_kbytes"), "{e}");
}

#[test]
fn another_kernel_begins_with_the_recorded_memory_and_a_fresh_machine_with_its_own() {
    let begin = |start| {
        let report = run(&Options {
            start,
            ..options(&["5.9", "6.1", "6.18"])
        });
        let report = report.unwrap();
        let of = |k: &KernelReport| {
            let z = k.samples[0]
                .zones
                .iter()
                .max_by_key(|z| z.managed_pages)
                .unwrap();
            (
                z.pageblocks["Unmovable"],
                z.pageblocks["Reclaimable"],
                z.free_huge_blocks,
            )
        };
        report.kernels.iter().map(of).collect::<Vec<_>>()
    };
    let inherited = begin(StartChoice::Auto);
    assert_eq!(inherited[0].0, inherited[1].0, "5.9 has the host's blocks");
    assert_eq!(inherited[2], inherited[1], "6.18 has the host's blocks");
    let anew = begin(StartChoice::Boot);
    assert!(
        anew.iter().all(|own| *own != inherited[1]),
        "{anew:?} and {inherited:?}"
    );
}
