use super::*;

const RECORDED: &str = include_str!("../../../tests/fixtures/procfs/freelists");

#[test]
fn what_is_written_is_what_was_read() {
    let all = FreeLists::parse(RECORDED.as_bytes()).unwrap();
    assert_eq!(all.write(), RECORDED);
}

#[test]
fn lists_hold_as_many_blocks_as_the_kernel_counts() {
    let all = FreeLists::parse(RECORDED.as_bytes()).unwrap();
    assert_eq!(all.zones.len(), 2);
    for zone in &all.zones {
        for area in &zone.orders {
            let blocks: usize = area.lists.iter().map(|l| l.pfns.len()).sum();
            assert_eq!(
                blocks as u64, area.nr_free,
                "zone {} order {}",
                zone.name, area.order
            );
        }
        for pcp in &zone.pcps {
            let pages: usize = pcp.lists.iter().map(|l| l.pfns.len() << l.order).sum();
            assert_eq!(
                pages as i32, pcp.count,
                "zone {} cpu {}",
                zone.name, pcp.cpu
            );
        }
    }
}

#[test]
fn pageblocks_are_found_by_frame() {
    let all = FreeLists::parse(RECORDED.as_bytes()).unwrap();
    assert_eq!(all.pageblock(0), Some((all.pageblocks[0].types[0], false)));
    assert_eq!(
        all.pageblock(1023),
        Some((all.pageblocks[0].types[1], false))
    );
    assert_eq!(all.pageblock(u64::MAX), None);
}

#[test]
fn a_list_that_changed_while_it_was_read_says_so() {
    let text = RECORDED.replacen("order 6 mt 0: 320", "order 6 mt 0: 320 !RACE", 1);
    let all = FreeLists::parse(text.as_bytes()).unwrap();
    assert_eq!(all.zones[0].orders[6].lists[0].torn, Some(Torn::Race));
    assert_eq!(all.write(), text);
}

#[test]
fn a_record_without_its_announcement_is_named_by_offset() {
    let e = FreeLists::parse(b"nr_free zone DMA order 0 1\n").unwrap_err();
    assert_eq!(
        e.to_string(),
        "byte 13: freelists: record of zone \"DMA\" without its `zone` line"
    );
}
