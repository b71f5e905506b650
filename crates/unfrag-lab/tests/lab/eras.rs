//! What numbers mean, by the kernel that wrote them. `spec: 2.5, 2.6, 7.6, 7.7`

use unfrag_eras::{Gfp, MigrateType, preset};
use unfrag_lab::era::Era;

fn era(release: &str) -> Era {
    Era::of(release).unwrap()
}

#[test]
fn movable_and_reclaimable_changed_places_in_4_4() {
    use MigrateType::{HighAtomic, Movable, Reclaimable, Reserve, Unmovable};
    let types = |release: &str| [0, 1, 2, 3].map(|n| era(release).migratetype(n).unwrap());
    assert_eq!(types("2.6.32"), [Unmovable, Reclaimable, Movable, Reserve]);
    assert_eq!(types("4.3.9"), [Unmovable, Reclaimable, Movable, Reserve]);
    assert_eq!(
        types("4.4.0"),
        [Unmovable, Movable, Reclaimable, HighAtomic]
    );
    assert_eq!(
        types("6.18.2"),
        [Unmovable, Movable, Reclaimable, HighAtomic]
    );
}

#[test]
fn a_number_without_a_type_has_none() {
    assert_eq!(era("6.1").migratetype(6), None);
    assert_eq!(era("6.1").migratetype(u64::MAX), None);
}

#[test]
fn without_cma_isolate_is_the_fourth() {
    let e = era("6.1.0");
    assert_eq!(e.migratetype_without_cma(4), Some(MigrateType::Isolate));
    assert_eq!(e.migratetype_without_cma(1), Some(MigrateType::Movable));
}

#[test]
fn masks_of_6_1_are_read_as_they_are() {
    let user = era("6.1.0-56-cloud-amd64").gfp(0x14_0dca);
    assert_eq!(user, Gfp::HIGHUSER_MOVABLE | Gfp::COMP | Gfp::ZERO);
    assert_eq!(user.mobility(), Some(MigrateType::Movable));
}

#[test]
fn masks_of_old_kernels_are_read_by_what_their_bits_meant() {
    // __GFP_WAIT, __GFP_IO, __GFP_FS: waiting was reclaiming and waking kswapd in one.
    assert_eq!(era("2.6.32").gfp(0xd0), Gfp::KERNEL);
    // GFP_HIGHUSER_MOVABLE, then with zeroing.
    let user = era("2.6.32").gfp(0x2_00da);
    assert_eq!(user, Gfp::HIGHUSER_MOVABLE);
    assert_eq!(era("2.6.32").gfp(0x2_80da), user | Gfp::ZERO);
    // GFP_ATOMIC was __GFP_HIGH alone: it may not wait.
    let atomic = era("2.6.32").gfp(0x20);
    assert!(atomic.contains(Gfp::HIGH) && !atomic.contains(Gfp::DIRECT_RECLAIM));
    let reclaimable = era("2.6.32").gfp(0x8_00d0);
    assert_eq!(reclaimable.mobility(), Some(MigrateType::Reclaimable));
}

#[test]
fn each_release_has_a_preset_that_exists() {
    for (release, name) in [
        ("2.6.14", "2.6.14"),
        ("2.6.24.7", "2.6.24"),
        ("2.6.32-754.el6.x86_64", "2.6.32"),
        ("3.10.0-1160.el7", "2.6.36"),
        ("4.19.0", "5.6"),
        ("5.10.0-30-amd64", "5.9"),
        ("6.1.0-56-cloud-amd64", "6.1"),
        ("6.6.30", "6.1"),
        ("6.7.0", "6.12"),
        ("6.12.117+deb12-cloud-amd64", "6.12"),
        ("6.15.9", "6.12"),
        ("6.16.0", "6.18"),
        ("6.18.0-rc3+", "6.18"),
        ("6.19.2", "6.18"),
        ("7.0", "7.2"),
        ("7.2.12", "7.2"),
        ("8.1", "7.2"),
    ] {
        assert_eq!(era(release).preset(), name, "{release}");
        assert!(preset(name).is_some(), "{name}");
    }
}

#[test]
fn a_release_that_is_no_version_is_an_error_that_shows_it() {
    for release in ["linux", "6", "v6.1", "6.x", "99999999999.1"] {
        let e = Era::of(release).unwrap_err();
        assert!(e.to_string().contains(release), "{e}");
    }
}

#[test]
fn kernels_from_6_7_on_show_returned_targets() {
    assert!(era("6.18.0").shows_returned_targets());
    assert!(era("6.12.117").shows_returned_targets());
    assert!(!era("6.1.0").shows_returned_targets());
}

#[test]
fn a_kernel_without_a_name_is_not_guessed() {
    assert!(Era::of("").is_err());
    assert_eq!(Era::newest().preset(), "6.18");
}
