//! Who has kswapd and kcompactd work, on small recordings made by hand.

use crate::recording_support::synthetic::Maker;
use unfrag_lab::input::Input;
use unfrag_lab::report::screen::Screen;
use unfrag_lab::wakes::report::{Measure, Row, Stacks};
use unfrag_lab::wakes::{Wakes, flame, text, wakes};
use unfrag_linux::event::coverage::EVENTS_RECORDED;
use unfrag_linux::gfp_text::Era;
use unfrag_linux::recording::{FieldKind, Recording};

const MS: u64 = 1_000_000;
const DRIVER: &str = "entry;do_ioctl;open_ring [nic];alloc_block [nic];__alloc_pages;wakeup_kswapd";
const FAULT: &str = "entry;exc_page_fault;do_anonymous_page;vma_alloc_folio;wakeup_kswapd";

fn gfp(text: &str) -> u64 {
    Era::of_release("6.1.0").unwrap().parse(text).unwrap()
}

/// A recording that grows.
struct Made {
    m: Maker,
}

impl Made {
    fn new() -> Made {
        let mut m = Maker::default();
        m.rec.meta.kernel_release = "6.1.0".into();
        // The numbers of tasks are their places.
        for comm in ["<idle>", "kswapd0", "kcompactd0", "driver", "fault"] {
            m.task(comm);
        }
        Made { m }
    }

    fn at(&mut self, ms: u64) -> &mut Made {
        self.m.now = 1_000_000_000 + ms * MS;
        self
    }

    fn event(&mut self, comm: &str, name: &str, fields: &[(&str, u64)]) -> &mut Made {
        self.m.task(comm).event(name, fields);
        self
    }

    fn stack(&mut self, comm: &str, stack: &str) -> &mut Made {
        let strings = &mut self.m.rec.strings;
        let at = strings.iter().position(|s| s == stack);
        let at = at.unwrap_or_else(|| {
            strings.push(stack.into());
            strings.len() - 1
        });
        self.event(comm, "kernel_stack", &[("stack", at as u64)])
    }

    fn wakes_kswapd(&mut self, comm: &str, order: u64, flags: &str) -> &mut Made {
        let fields = [("nid", 0), ("order", order), ("gfp_flags", gfp(flags))];
        self.event(comm, "mm_vmscan_wakeup_kswapd", &fields)
    }

    fn switch(&mut self, from: u64, to: u64) -> &mut Made {
        let fields = [("prev_pid", from), ("next_pid", to)];
        self.event("<idle>", "sched_switch", &fields)
    }

    /// kswapd is awake and on a CPU in this time.
    fn kswapd_runs(&mut self, from: u64, to: u64) -> &mut Made {
        let node = [("nid", 0)];
        let woken = [("nid", 0), ("order", 0)];
        self.at(from).switch(0, 1);
        self.event("kswapd0", "mm_vmscan_kswapd_wake", &woken);
        self.at(to)
            .event("kswapd0", "mm_vmscan_kswapd_sleep", &node);
        self.m.now = 1_000_000_000 + to * MS;
        self.switch(1, 0)
    }

    fn recording(mut self) -> Recording {
        for table in &mut self.m.rec.events.tables {
            if table.name == "kernel_stack" {
                table.fields[0].kind = FieldKind::String;
            }
        }
        self.m.rec
    }

    fn wakes(self) -> Wakes {
        wakes(&self.recording(), "made").unwrap()
    }
}

fn ms(seconds: Option<f64>) -> u64 {
    (seconds.unwrap() * 1e3).round() as u64
}

fn named<'w>(w: &'w Wakes, program: &str) -> &'w Row {
    let mut rows = w.callers.iter();
    rows.find(|r| r.programs[0].name == program).expect(program)
}

#[test]
fn the_time_of_a_daemon_is_that_of_whoever_woke_it() {
    let mut made = Made::new();
    made.at(10)
        .wakes_kswapd("driver", 10, "GFP_KERNEL|__GFP_NORETRY");
    made.stack("driver", DRIVER).kswapd_runs(11, 41);
    made.at(50).wakes_kswapd("fault", 0, "GFP_HIGHUSER_MOVABLE");
    made.stack("fault", FAULT).kswapd_runs(51, 61);
    let w = made.wakes();
    let first = &w.callers[0];
    let functions = first.functions.as_ref().unwrap();
    assert_eq!(functions[0], "alloc_block [nic]");
    assert_eq!(first.module.as_deref(), Some("nic"));
    assert_eq!(
        (first.programs[0].name.as_str(), first.order),
        ("driver", Some(10))
    );
    assert_eq!(
        (ms(first.kswapd_seconds), first.kswapd_wakes),
        (30, Some(1))
    );
    assert!((first.share.unwrap() - 0.75).abs() < 1e-3, "{first:?}");
    assert_eq!(
        named(&w, "fault").functions.as_ref().unwrap()[0],
        "do_anonymous_page"
    );
    assert_eq!(w.kswapd.unwrap().measure, Measure::OnCpu);
    assert_eq!(
        w.stacks,
        Stacks::Addresses,
        "a recorder that says so names them"
    );
}

#[test]
fn without_stacks_it_is_the_program_its_order_and_its_flags() {
    let mut made = Made::new();
    made.at(10)
        .wakes_kswapd("driver", 10, "GFP_KERNEL|__GFP_NORETRY")
        .kswapd_runs(11, 41);
    let w = made.wakes();
    let row = named(&w, "driver");
    assert_eq!((&row.functions, w.stacks), (&None, Stacks::None));
    assert_eq!(row.flags.as_deref(), Some("GFP_KERNEL|__GFP_NORETRY"));
    let shown = text::render(&w, 9, "made", &Screen::default());
    assert!(
        shown.contains("--stacks") && shown.contains("soon"),
        "{}",
        &*shown
    );
}

#[test]
fn without_switches_of_tasks_it_is_measured_from_waking_to_sleeping() {
    let mut made = Made::new();
    made.at(10).wakes_kswapd("driver", 3, "GFP_KERNEL");
    made.at(12).event(
        "kswapd0",
        "mm_vmscan_kswapd_wake",
        &[("nid", 0), ("order", 3)],
    );
    made.at(112)
        .event("kswapd0", "mm_vmscan_kswapd_sleep", &[("nid", 0)]);
    let w = made.wakes();
    assert_eq!(w.kswapd.unwrap().measure, Measure::Awake);
    assert_eq!(ms(named(&w, "driver").kswapd_seconds), 100);
    // What was not recorded is not zero.
    assert_eq!(w.kcompactd, None);
    assert_eq!(named(&w, "driver").kcompactd_seconds, None);
    let shown = text::render(&w, 9, "made", &Screen::default());
    assert!(shown.contains("kcompactd not known"), "{}", &*shown);
}

#[test]
fn what_kswapd_has_kcompactd_do_is_that_of_whoever_woke_kswapd() {
    let mut made = Made::new();
    let woken = [("nid", 0), ("order", 10)];
    made.at(10)
        .wakes_kswapd("driver", 10, "GFP_KERNEL")
        .stack("driver", DRIVER);
    made.at(11).switch(0, 1);
    made.event("kswapd0", "mm_vmscan_kswapd_wake", &woken);
    made.at(20)
        .event("kswapd0", "mm_compaction_wakeup_kcompactd", &woken);
    made.stack("kswapd0", "ret_from_fork;kthread;kswapd;wakeup_kcompactd");
    made.event("kswapd0", "mm_vmscan_kswapd_sleep", &[("nid", 0)]);
    made.switch(1, 2)
        .event("kcompactd0", "mm_compaction_kcompactd_wake", &woken);
    made.at(60)
        .event("kcompactd0", "mm_compaction_kcompactd_sleep", &[("nid", 0)]);
    made.switch(2, 0);
    // Nobody wakes it: its own timer does.
    made.at(500).switch(0, 2).at(505).switch(2, 0);
    let w = made.wakes();
    assert_eq!(w.callers.len(), 1, "{:?}", w.callers);
    assert_eq!(ms(w.callers[0].kcompactd_seconds), 40);
    assert_eq!(
        (w.callers[0].kswapd_wakes, w.callers[0].kcompactd_wakes),
        (Some(1), Some(1))
    );
    assert_eq!(ms(w.kcompactd.map(|k| k.own_timer_seconds)), 5);
}

#[test]
fn a_request_that_compacts_itself_is_told_with_its_order_and_flags() {
    let mut made = Made::new();
    let huge = gfp("GFP_TRANSHUGE");
    made.at(10).event(
        "fault",
        "mm_compaction_try_to_compact_pages",
        &[("order", 9), ("gfp_mask", huge)],
    );
    made.event("fault", "mm_compaction_begin", &[("zone_start", 0)])
        .stack("fault", FAULT);
    made.at(17)
        .event("fault", "mm_compaction_end", &[("status", 0)]);
    let request = [("pfn", u64::MAX), ("order", 9), ("gfp_flags", huge)];
    made.event("fault", "mm_page_alloc", &request)
        .stack("fault", FAULT);
    // All of memory, for no request.
    made.at(30)
        .event("driver", "mm_compaction_begin", &[("zone_start", 0)]);
    made.stack(
        "driver",
        "entry;sysctl_compaction_handler;compact_nodes;compact_node;compact_zone",
    );
    made.at(33)
        .event("driver", "mm_compaction_end", &[("status", 0)]);
    let w = made.wakes();
    let fault = named(&w, "fault");
    assert_eq!(
        (fault.order, ms(fault.direct_seconds), fault.direct_runs),
        (Some(9), 7, Some(1))
    );
    assert_eq!((fault.requests, fault.failed), (Some(1), Some(1)));
    let all = named(&w, "driver");
    assert_eq!(
        (all.order, ms(all.direct_seconds), all.is_no_request),
        (Some(-1), 3, true)
    );
    assert_eq!(
        all.functions.as_ref().unwrap()[0],
        "sysctl_compaction_handler"
    );
}

#[test]
fn an_interrupt_between_an_event_and_its_stack_has_its_own() {
    let mut made = Made::new();
    made.at(10).wakes_kswapd("driver", 10, "GFP_KERNEL");
    made.m.flags = 0x10;
    made.wakes_kswapd("driver", 0, "GFP_ATOMIC")
        .stack("driver", "entry;irq;rx [nic];__alloc_pages");
    made.m.flags = 0;
    made.stack("driver", DRIVER).kswapd_runs(11, 21);
    let w = made.wakes();
    let interrupt = named(&w, "(interrupt)");
    assert_eq!(interrupt.functions.as_ref().unwrap()[0], "rx [nic]");
    assert_eq!(
        named(&w, "driver").functions.as_ref().unwrap()[0],
        "alloc_block [nic]"
    );
    assert_eq!(ms(interrupt.kswapd_seconds), 0, "the first wake-up counts");
}

#[test]
fn of_a_window_only_its_own_time_and_wake_ups_count() {
    let mut made = Made::new();
    made.at(10)
        .wakes_kswapd("driver", 10, "GFP_KERNEL")
        .stack("driver", DRIVER);
    made.kswapd_runs(11, 41);
    made.at(50)
        .wakes_kswapd("fault", 0, "GFP_KERNEL")
        .stack("fault", FAULT)
        .kswapd_runs(51, 61);
    let rec = made.recording();
    let input = Input::from(&rec).asked_from(1_000_000_000 + 31 * MS);
    let w = wakes(input, "made").unwrap();
    let driver = named(&w, "driver");
    assert_eq!(
        (ms(driver.kswapd_seconds), driver.kswapd_wakes),
        (10, Some(0))
    );
    assert_eq!(w.kswapd.unwrap().count, 1);
}

#[test]
fn the_flame_graph_has_the_whole_stack_under_its_program_and_is_the_same_each_time() {
    let made = || {
        let mut made = Made::new();
        made.at(10)
            .wakes_kswapd("driver", 10, "GFP_KERNEL")
            .stack("driver", DRIVER);
        made.kswapd_runs(11, 41);
        made.wakes()
    };
    let picture = flame::render(&made());
    assert_eq!(picture, flame::render(&made()));
    for name in [
        "kswapd",
        "driver",
        "do_ioctl",
        "alloc_block [nic]",
        "wakeup_kswapd",
    ] {
        assert!(
            picture.contains(&format!("<title>{name}: 30.00 ms, 100 %")),
            "{name}\n{picture}"
        );
    }
}

#[test]
fn a_recording_that_tells_nothing_is_refused_and_one_in_which_nothing_happened_says_so() {
    let mut made = Made::new();
    made.event("driver", "mm_page_free", &[("pfn", 1), ("order", 0)]);
    let mut rec = made.recording();
    let error = wakes(&rec, "made").unwrap_err();
    assert!(error.to_string().contains("no wake-ups"), "{error}");
    let recorded =
        "vmscan:mm_vmscan_wakeup_kswapd vmscan:mm_vmscan_kswapd_wake vmscan:mm_vmscan_kswapd_sleep";
    rec.meta
        .facts
        .insert(EVENTS_RECORDED.into(), recorded.into());
    let w = wakes(&rec, "made").unwrap();
    assert!(
        w.answer
            .starts_with("nobody that is known: kswapd did nothing"),
        "{}",
        w.answer
    );
    assert_eq!(w.kswapd.map(|k| k.seconds), Some(0.0));
}

#[test]
fn of_wake_ups_alone_their_number_is_told_and_no_time() {
    let mut made = Made::new();
    for i in 0..4 {
        let who = if i == 0 { "fault" } else { "driver" };
        made.at(10 + i).wakes_kswapd(who, 4, "GFP_KERNEL");
    }
    let w = made.wakes();
    assert_eq!((w.kswapd, w.kcompactd, w.direct), (None, None, None));
    assert_eq!((w.kswapd_wakes, w.kcompactd_wakes), (Some(4), None));
    let driver = named(&w, "driver");
    assert_eq!(w.callers[0].programs[0].name, "driver");
    assert_eq!((driver.share, driver.wakes_share), (None, Some(0.75)));
    assert_eq!(
        (driver.kswapd_wakes, driver.kcompactd_wakes),
        (Some(3), None)
    );
    assert_eq!(
        (driver.direct_runs, driver.requests, driver.failed),
        (None, None, None)
    );
    assert!(
        w.answer
            .starts_with("driver, order 4: 75 % of 4 wake-ups of kswapd;")
            && w.answer.contains("not known"),
        "{}",
        w.answer
    );
    let shown = text::render(&w, 9, "made", &Screen::default());
    assert!(!shown.contains("nothing"), "{}", &*shown);
}

/// What kswapd says of itself.
fn says(made: &mut Made, ms: u64, sleeps: bool) {
    let node = [("nid", 0)];
    let woken = [("nid", 0), ("order", 4)];
    match sleeps {
        true => made
            .at(ms)
            .event("kswapd0", "mm_vmscan_kswapd_sleep", &node),
        false => made
            .at(ms)
            .event("kswapd0", "mm_vmscan_kswapd_wake", &woken),
    };
}

#[test]
fn a_run_that_the_edges_of_the_recording_cut_is_no_timers_and_not_nothing() {
    // It begins in a run, of which it has the end alone; then it has all of one, and the beginning of a last one.
    let mut made = Made::new();
    made.at(0)
        .event("driver", "mm_page_free", &[("pfn", 1), ("order", 0)]);
    says(&mut made, 40, true);
    made.at(50).wakes_kswapd("driver", 4, "GFP_KERNEL");
    says(&mut made, 50, false);
    says(&mut made, 60, true);
    made.at(70).wakes_kswapd("driver", 4, "GFP_KERNEL");
    says(&mut made, 71, false);
    made.at(91)
        .event("driver", "mm_page_free", &[("pfn", 2), ("order", 0)]);
    let rec = made.recording();
    let w = wakes(&rec, "made").unwrap();
    let kswapd = w.kswapd.unwrap();
    assert_eq!(kswapd.measure, Measure::Awake);
    assert_eq!(ms(Some(kswapd.not_recorded_seconds)), 40);
    assert_eq!(ms(Some(kswapd.own_timer_seconds)), 0);
    assert_eq!(ms(Some(kswapd.seconds)), 40 + 10 + 20);
    assert!(kswapd.at_work_at_end);
    // A window has its own edges, whatever happens in it.
    let at = |ms: u64| Some(1_000_000_000 + ms * MS);
    let w = wakes(Input::from(&rec).within((None, at(95))), "made").unwrap();
    assert_eq!(
        (ms(w.kswapd.map(|k| k.seconds)), ms(Some(w.seconds))),
        (74, 95)
    );
}

#[test]
fn a_window_in_a_run_gives_its_time_to_no_timer() {
    let mut made = Made::new();
    // Switches are there, and what woke it is not.
    made.at(5)
        .switch(0, 1)
        .at(20)
        .switch(1, 0)
        .at(25)
        .switch(0, 1);
    says(&mut made, 30, true);
    made.switch(1, 0);
    made.at(35)
        .wakes_kswapd("fault", 0, "GFP_KERNEL")
        .kswapd_runs(36, 40);
    let w = made.wakes();
    let kswapd = w.kswapd.unwrap();
    assert_eq!(kswapd.measure, Measure::OnCpu);
    assert_eq!(ms(Some(kswapd.own_timer_seconds)), 0);
    assert_eq!(ms(Some(kswapd.not_recorded_seconds)), 20);
}

#[test]
fn a_daemon_that_wakes_last_of_all_is_not_said_to_have_done_nothing() {
    let mut made = Made::new();
    made.at(10).wakes_kswapd("driver", 4, "GFP_KERNEL");
    says(&mut made, 11, false);
    let mut rec = made.recording();
    let recorded =
        "vmscan:mm_vmscan_wakeup_kswapd vmscan:mm_vmscan_kswapd_wake vmscan:mm_vmscan_kswapd_sleep";
    rec.meta
        .facts
        .insert(EVENTS_RECORDED.into(), recorded.into());
    let w = wakes(&rec, "made").unwrap();
    assert!(
        w.answer.starts_with("not known: kswapd had work to do"),
        "{}",
        w.answer
    );
    assert!(w.kswapd.unwrap().at_work_at_end);
}

#[test]
fn a_request_that_compacts_already_when_the_recording_begins_counts() {
    let mut made = Made::new();
    made.at(0).wakes_kswapd("driver", 4, "GFP_KERNEL");
    made.at(8)
        .event("fault", "mm_compaction_end", &[("status", 0)]);
    made.at(10)
        .event("fault", "mm_compaction_begin", &[("zone_start", 0)]);
    made.at(13)
        .event("fault", "mm_compaction_end", &[("status", 0)]);
    let w = made.wakes();
    let direct = w.direct.unwrap();
    assert_eq!(
        (
            ms(Some(direct.seconds)),
            ms(Some(direct.not_recorded_seconds))
        ),
        (11, 8)
    );
}

/// The part of a sample from one moment to another, in seconds after its beginning.
fn part(sample: &str, from: Option<f64>, to: Option<f64>) -> Wakes {
    use unfrag_lab::find::recordings::streamed;
    use unfrag_linux::segments::{Beginning, Moment, Window};
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../samples")
        .join(sample);
    let moment = |s: f64| Moment::After((s * 1e9) as u64);
    let window = Window {
        from: from.map(moment),
        to: to.map(moment),
        ..Window::default()
    };
    let part = streamed(&path, &[], None, &window, Beginning::Recorded).unwrap();
    wakes(part.input(1 << 27), sample).unwrap()
}

#[test]
fn windows_that_meet_have_together_what_the_whole_has() {
    let sums = |w: &Wakes| {
        let of = |f: fn(&unfrag_lab::wakes::report::Worked) -> f64| {
            [w.kswapd, w.kcompactd, w.direct].map(|d| d.map_or(0.0, |d| f(&d)))
        };
        let counts = [w.kswapd_wakes, w.kcompactd_wakes].map(|n| n.unwrap_or(0));
        (of(|d| d.seconds), of(|d| d.own_timer_seconds), counts)
    };
    for (sample, moments) in [
        (
            "rings-1024M.unfrag",
            [0.2, 0.55, 0.6, 0.62, 0.64, 0.68, 0.9, 1.5],
        ),
        (
            "fragmented-384M.unfrag",
            [0.5, 3.0, 7.7, 12.3, 20.0, 28.8, 35.1, 40.0],
        ),
    ] {
        let whole = sums(&part(sample, None, None));
        for at in moments {
            let parts =
                [part(sample, None, Some(at)), part(sample, Some(at), None)].map(|w| sums(&w));
            for of in 0..3 {
                let time: f64 = parts.iter().map(|p| p.0[of]).sum();
                let own: f64 = parts.iter().map(|p| p.1[of]).sum();
                assert!(
                    (time - whole.0[of]).abs() < 1e-6,
                    "{sample} at {at}: {parts:?} of {whole:?}"
                );
                assert!(
                    (own - whole.1[of]).abs() < 1e-6,
                    "{sample} at {at}: {parts:?} of {whole:?}"
                );
            }
            for of in 0..2 {
                assert_eq!(
                    parts[0].2[of] + parts[1].2[of],
                    whole.2[of],
                    "{sample} at {at}"
                );
            }
        }
    }
}

#[test]
fn a_window_inside_of_a_run_has_all_of_its_time() {
    // kcompactd has the CPU from .57 s on, for 225 ms.
    let inside = part("rings-1024M.unfrag", Some(0.64), Some(0.68));
    let kcompactd = inside.kcompactd.unwrap();
    assert!((kcompactd.seconds - 0.04).abs() < 1e-3, "{kcompactd:?}");
    assert_eq!(kcompactd.own_timer_seconds, 0.0);
    assert!(!inside.answer.contains("nobody"), "{}", inside.answer);
}

#[test]
fn a_program_that_calls_itself_kcompactd_is_none() {
    let mut made = Made::new();
    made.at(0).wakes_kswapd("driver", 3, "GFP_KERNEL");
    made.kswapd_runs(1, 11);
    let mut rec = {
        let order = [("nid", 0), ("order", 3)];
        made.at(19)
            .event("driver", "mm_compaction_wakeup_kcompactd", &order);
        made.at(20).switch(0, 4242);
        made.at(520).switch(4242, 0);
        made.at(600).switch(0, 2);
        made.at(603).switch(2, 0);
        made.recording()
    };
    for pid in [2, 4242] {
        let mut task = rec.tasks[2].clone();
        task.pid = pid;
        rec.tasks.push(task);
    }
    let w = wakes(&rec, "made").unwrap();
    let time = |d: Option<unfrag_lab::wakes::report::Worked>| d.map(|d| (d.seconds * 1e3).round());
    assert_eq!((time(w.kswapd), time(w.kcompactd)), (Some(10.0), Some(3.0)));
}

#[test]
fn of_wakings_alone_their_time_is_told_and_who_it_was_is_not_known() {
    let mut made = Made::new();
    made.at(10).event(
        "kswapd0",
        "mm_vmscan_kswapd_wake",
        &[("nid", 0), ("order", 0)],
    );
    made.at(40)
        .event("kswapd0", "mm_vmscan_kswapd_sleep", &[("nid", 0)]);
    let w = wakes(&made.recording(), "made").unwrap();
    let kswapd = w.kswapd.unwrap();
    assert_eq!(kswapd.measure, Measure::Awake);
    assert_eq!((kswapd.seconds, kswapd.not_recorded_seconds), (0.03, 0.03));
    assert_eq!(w.kswapd_wakes, None);
}
