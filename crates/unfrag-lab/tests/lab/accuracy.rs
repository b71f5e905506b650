//! The measures of accuracy, as the design defines them.

use std::collections::BTreeMap;
use unfrag_lab::replay::answer::accuracy::{Forecast, measure};
use unfrag_lab::replay::answer::report::{Accuracy, Sample, ZoneSample};

/// A zone with so many free blocks of orders 0, 1 and 2.
fn zone(name: &str, managed: u64, free: [u64; 3]) -> ZoneSample {
    let mut blocks = free.to_vec();
    blocks.resize(11, 0);
    ZoneSample {
        node: 0,
        zone: name.into(),
        managed_pages: managed,
        free_pages: free[0] + 2 * free[1] + 4 * free[2],
        pcp_pages: None,
        free_blocks: blocks,
        unusable_index: BTreeMap::from([("3".into(), 0.0), ("9".into(), 0.0)]),
        free_huge_blocks: 0,
        pageblocks: BTreeMap::from([("Unmovable".into(), 1), ("Movable".into(), 3)]),
        mixed_pageblocks: None,
        spread: None,
    }
}

fn sample(zones: Vec<ZoneSample>) -> Sample {
    Sample {
        name: "s".into(),
        seconds: 0.0,
        zones,
    }
}

fn compare(anchor: ZoneSample, taken: i64, model: ZoneSample, recorded: ZoneSample) -> Accuracy {
    let anchor = sample(vec![anchor]);
    let forecast = Forecast {
        anchor: &anchor,
        large_order: 9,
        taken: &[vec![taken]],
    };
    measure(
        &[sample(vec![model])],
        &[sample(vec![recorded])],
        &forecast,
        0,
    )
    .unwrap()
}

fn close(a: f64, b: f64) {
    assert!((a - b).abs() < 1e-12, "{a} is not {b}");
}

#[test]
fn order_distribution_error_is_half_the_sum_of_differences_of_shares_of_pages() {
    let z = |free| zone("Normal", 1000, free);
    // 4 of 8 pages against 8 of 8 in single pages; the forecaster holds 0 of 8.
    let a = compare(z([0, 0, 2]), 0, z([4, 0, 1]), z([8, 0, 0]));
    close(a.order_distribution_error.max, 0.5);
    close(a.order_distribution_error.skill.unwrap(), 0.5);
    close(a.by_snapshot[0].order_distribution[1], 1.0);
    // Shares, not amounts.
    let a = compare(z([0, 0, 2]), 0, z([40, 0, 10]), z([4, 0, 1]));
    close(a.order_distribution_error.max, 0.0);
    close(a.order_distribution_error.skill.unwrap(), 1.0);
}

#[test]
fn free_pages_error_is_relative_to_what_was_recorded() {
    let z = |free| zone("Normal", 1000, [free, 0, 0]);
    // The forecaster starts from 200 and counts 60 taken: 140 where 100 were.
    let a = compare(z(200), 60, z(90), z(100));
    close(a.free_pages_error.median, 0.1);
    close(a.by_snapshot[0].free_pages[1], 0.4);
    close(a.free_pages_error.skill.unwrap(), 0.75);
}

#[test]
fn unusable_index_error_is_absolute() {
    let z = |nine: f64| {
        let mut z = zone("Normal", 1000, [8, 0, 0]);
        z.unusable_index.insert("9".into(), nine);
        z
    };
    let a = compare(z(0.1), 0, z(0.9), z(0.5));
    let nine = &a.unusable_index_error["9"];
    close(nine.max, 0.4);
    close(nine.skill.unwrap(), 0.0);
    close(a.unusable_index_error["3"].max, 0.0);
}

#[test]
fn pageblock_type_error_is_measured_like_the_order_distribution() {
    let z = |unmovable: u64| {
        let mut z = zone("Normal", 1000, [8, 0, 0]);
        z.pageblocks = BTreeMap::from([
            ("Unmovable".into(), unmovable),
            ("Movable".into(), 10 - unmovable),
        ]);
        z
    };
    let a = compare(z(1), 0, z(3), z(5));
    let types = a.pageblock_type_error.unwrap();
    close(types.max, 0.2);
    close(types.skill.unwrap(), 0.5);
}

#[test]
fn what_no_snapshot_shows_has_no_error() {
    let z = || {
        let mut z = zone("Normal", 1000, [8, 0, 0]);
        z.pageblocks.clear();
        z
    };
    let a = compare(z(), 0, zone("Normal", 1000, [8, 0, 0]), z());
    assert!(a.pageblock_type_error.is_none());
    assert_eq!(a.by_snapshot[0].pageblock_type, None);
}

/// Where nothing was free, any free page that is predicted is wrong as a whole.
#[test]
fn free_pages_that_were_not_there_are_an_error() {
    let z = |free| zone("Normal", 1000, [free, 0, 0]);
    close(compare(z(8), 8, z(5), z(0)).free_pages_error.max, 1.0);
    close(compare(z(8), 8, z(0), z(0)).free_pages_error.max, 0.0);
}

#[test]
fn there_is_no_skill_if_the_forecaster_has_no_error() {
    let z = || zone("Normal", 1000, [8, 0, 0]);
    let a = compare(z(), 0, z(), z());
    assert_eq!(a.order_distribution_error.skill, None);
}

#[test]
fn a_model_that_holds_the_anchor_has_no_skill() {
    let z = |free| zone("Normal", 1000, free);
    let a = compare(z([0, 0, 2]), 0, z([0, 0, 2]), z([8, 0, 0]));
    close(a.order_distribution_error.skill.unwrap(), 0.0);
}

#[test]
fn percentiles_are_by_nearest_rank() {
    let z = |free| zone("Normal", 1000, [free, 0, 0]);
    let anchor = sample(vec![z(100)]);
    let many = |n: u64| {
        // Errors of 1, 2, … n hundredths.
        let model: Vec<Sample> = (1..=n).map(|i| sample(vec![z(100 - i)])).collect();
        let recorded: Vec<Sample> = (1..=n).map(|_| sample(vec![z(100)])).collect();
        let taken = vec![vec![0]; n as usize];
        let forecast = Forecast {
            anchor: &anchor,
            large_order: 9,
            taken: &taken,
        };
        measure(&model, &recorded, &forecast, 0).map(|a| a.free_pages_error)
    };
    let ten = many(10).unwrap();
    close(ten.median, 0.05);
    close(ten.p90, 0.09);
    close(ten.max, 0.10);
    let eleven = many(11).unwrap();
    close(eleven.median, 0.06);
    close(eleven.p90, 0.10);
    let one = many(1).unwrap();
    close(one.median, 0.01);
    close(one.p90, 0.01);
    assert!(many(0).is_none(), "nothing was compared");
}

#[test]
fn zones_below_5_percent_of_managed_memory_are_not_pooled() {
    let large = |free| zone("DMA32", 9500, [free, 0, 0]);
    for (managed, pooled) in [(499, 1), (500, 2)] {
        let small = |free| zone("DMA", managed, [free, 0, 0]);
        let anchor = sample(vec![small(100), large(100)]);
        let forecast = Forecast {
            anchor: &anchor,
            large_order: 9,
            taken: &[vec![0, 0]],
        };
        let model = sample(vec![small(1), large(100)]);
        let recorded = sample(vec![small(100), large(100)]);
        let a = measure(&[model], &[recorded], &forecast, 0).unwrap();
        assert_eq!(a.by_snapshot.len(), pooled, "{managed} pages");
        close(a.free_pages_error.max, if pooled == 2 { 0.99 } else { 0.0 });
    }
}

#[test]
fn lost_events_stand_beside_the_numbers() {
    let z = || zone("Normal", 1000, [8, 0, 0]);
    let anchor = sample(vec![z()]);
    let forecast = Forecast {
        anchor: &anchor,
        large_order: 9,
        taken: &[vec![0]],
    };
    let a = measure(&[sample(vec![z()])], &[sample(vec![z()])], &forecast, 17).unwrap();
    assert_eq!((a.lost_events, a.snapshots), (17, 1));
}
