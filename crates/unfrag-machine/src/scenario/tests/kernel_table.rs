//! `[kernel]`: the kernel of a scenario.

use super::super::{Kernel, Scenario};
use super::{SMALL, mistake};
use unfrag_eras::kernel::{CongestionWait, KswapdNap, KswapdSleep, Reserve};
use unfrag_slab::{Design, FirstAttempt};

fn with(kernel: &str) -> String {
    // Tables come after single keys.
    match kernel.starts_with('[') {
        true => format!("{SMALL}\n{kernel}\n"),
        false => format!("{kernel}\n{SMALL}"),
    }
}

fn kernel(text: &str, asked: Option<&str>) -> Kernel {
    let s = Scenario::parse("s.toml", &with(text)).unwrap_or_else(|e| panic!("{e}"));
    s.kernel(asked).unwrap_or_else(|e| panic!("{e}"))
}

#[test]
fn kernel_can_be_overridden() {
    let name = |text, asked| kernel(text, asked).name;
    assert_eq!(name("", None), "6.18");
    assert_eq!(name("kernel = \"2.6.31\"", None), "2.6.31");
    assert_eq!(name("kernel = \"2.6.31\"", Some("v19")), "v19");
    assert_eq!(name("[kernel]\nname = \"2.6.30\"", None), "2.6.30");
}

#[test]
// `spec: 4.6`
fn each_patch_of_s4_has_a_key() {
    let base = Kernel::preset("2.6.32-rc6").unwrap().rules;
    let with = |key: &str| {
        let text = format!("[kernel]\nname = \"2.6.32-rc6\"\n{key}");
        kernel(&text, None).rules
    };
    assert_eq!(with(""), base);
    let mut want = base;
    want.retry.wake_on_restart = true;
    assert_eq!(with("wake-on-restart = true"), want);
    let mut want = base;
    want.rights.realtime_in_interrupt = false;
    assert_eq!(with("realtime-in-interrupt = false"), want);
    let mut want = base;
    want.reclaim.congestion = CongestionWait::Both;
    assert_eq!(with("congestion-wait = \"both\""), want);
    let mut want = base;
    want.kswapd.sleep = KswapdSleep::Staged;
    assert_eq!(with("kswapd-sleep = \"staged\""), want);
    let mut want = base;
    want.kswapd.nap = KswapdNap::TroubleLater;
    assert_eq!(with("kswapd-nap = \"trouble-later\""), want);
    let mut want = base;
    want.kswapd.notices_order_at_once = true;
    assert_eq!(with("notices-order-at-once = true"), want);
}

#[test]
// `spec: 4.7, 6.5`
fn changes_apply_to_another_base() {
    let text = "[kernel]\nname = \"2.6.28\"\nslab = \"slub\"\nslub-max-order = 1\n\
                slub-first-attempt = \"no-wake\"\nmigrate-reserve = false\noom-killer = false";
    for asked in [None, Some("2.6.31")] {
        let k = kernel(text, asked);
        assert_eq!(k.name, asked.unwrap_or("2.6.28"));
        assert_eq!((k.slab.design, k.slab.slub.max_order), (Design::Slub, 1));
        assert_eq!(k.slab.slub.first_attempt, FirstAttempt::NoWake);
        assert_eq!((k.rules.reserve(), k.oom_killer), (Reserve::None, false));
    }
}

#[test]
// `spec: 4.10`
fn generations_are_off_unless_a_scenario_turns_them_on() {
    for name in ["6.1", "6.12", "6.18", "7.2"] {
        let with = |keys: &str| kernel(&format!("[kernel]\nname = \"{name}\"\n{keys}"), None);
        assert!(!with("").sysctl.lru_gen, "{name}");
        let k = with("lru-gen = true\nlru-gen-min-ttl-ms = 1000");
        assert_eq!(
            (k.sysctl.lru_gen, k.sysctl.lru_gen_min_ttl_ms),
            (true, 1000)
        );
        assert_eq!(k.changes, ["lru-gen = true", "lru-gen-min-ttl-ms = 1000"]);
    }
    for name in ["2.6.32", "5.9"] {
        for key in [
            "lru-gen = true",
            "lru-gen = false",
            "lru-gen-min-ttl-ms = 0",
        ] {
            let text = with(&format!("[kernel]\nname = \"{name}\"\n{key}"));
            let e = Scenario::parse("s.toml", &text).and_then(|s| s.kernel(None));
            let e = e.expect_err("it has none");
            assert!(e.message.contains(name), "{}", e.message);
            let help = e.help.expect("a way out");
            assert!(help.contains("lru-gen"), "{help}");
        }
    }
}

#[test]
fn impossible_rule_is_a_mistake() {
    let told = |text: &str| {
        let e = mistake(&with(text));
        (e.message, e.place.map(|p| p.text), e.help)
    };
    let (message, line, _) = told("kernel = \"2.4\"");
    assert!(
        message.starts_with("there is no kernel `2.4`; there are: 2.6.14,"),
        "{message}"
    );
    assert_eq!(line.as_deref(), Some("kernel = \"2.4\""));
    let (message, line, _) = told("[kernel]\ncongestion-wait = \"none\"");
    assert!(
        message.starts_with("there is no `none`; there are: sync, async,"),
        "{message}"
    );
    assert_eq!(line.as_deref(), Some("congestion-wait = \"none\""));
    let (message, ..) = told("[kernel]\npatches = 5");
    assert!(
        message.contains("`patches`") && message.contains("kswapd-nap"),
        "{message}"
    );
    let (message, _, help) = told("[kernel]\nname = \"6.1\"\nmigrate-reserve = false");
    assert_eq!(message, "6.1 has no MIGRATE_RESERVE");
    assert_eq!(help.as_deref(), Some("leave `migrate-reserve` out"));
    let (message, ..) = told("[kernel]\nname = \"6.1\"\ndefrag-mode = true");
    assert_eq!(message, "6.1 has no vm.defrag_mode");
    let (message, ..) = told("[kernel]\nname = \"2.6.28\"\nhighatomic-costly-only = true");
    assert_eq!(message, "2.6.28 has no high-atomic reserve");
    let (message, _, help) = told("[kernel]\nslab = \"slqb\"\nslub-max-order = 1");
    assert_eq!(message, "`slub-max-order` says nothing to slqb");
    assert!(help.is_some_and(|h| h.contains("slab = \"slub\"")));
    let (message, ..) = told("[kernel]\nslub-max-order = 11");
    assert_eq!(message, "there is no order 11 for `slub-max-order`");
    let s = Scenario::parse("s.toml", SMALL).unwrap();
    let e = s.kernel(Some("2.4")).unwrap_err();
    assert!(e.place.is_none() && e.message.starts_with("there is no kernel `2.4`"));
}
