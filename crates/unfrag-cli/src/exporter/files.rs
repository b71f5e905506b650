//! What the kernel's own tables say: free blocks by order, pageblocks by type, slab caches.
//!
//! Invariant: each number is that of the file; the number of series is bounded, whatever the file holds.

use super::gauges::{Labels, Named, of_zone};
use prometheus_client::registry::Registry;
use unfrag_lab::doctor::{Evidence, slabs};
use unfrag_linux::procfs::PageTypeInfo;

/// Slab caches that have a series of their own: the largest. All together are a number of their own.
pub const CACHES: usize = 16;

/// Registers all of them.
pub fn register(r: &mut Registry, e: &Evidence) {
    free_blocks(r, e);
    pageblocks(r, e);
    caches(r, e);
}

fn free_blocks(r: &mut Registry, e: &Evidence) {
    let free = Named::new(
        r,
        "free_blocks",
        "Free blocks of exactly this order, as in buddyinfo",
    );
    // Of a list that the kernel stopped counting, only the least is known.
    for z in e.host.zones.iter().filter(|z| !z.is_capped) {
        for (order, &n) in z.blocks.iter().flatten().enumerate() {
            let labels = with(of_zone(z.node, &z.name), "order", order.to_string());
            free.set(labels, n as f64);
        }
    }
}

fn pageblocks(r: &mut Registry, e: &Evidence) {
    let types = e.host.types.as_ref();
    if let Some(order) = types.and_then(PageTypeInfo::told_pageblock_order) {
        let bytes = e.host.geometry.page_size as f64 * 2f64.powi(order as i32);
        Named::new(r, "pageblock_size_bytes", "Size of a pageblock").set(vec![], bytes);
    }
    let blocks = Named::new(r, "pageblocks", "Pageblocks by type, as in pagetypeinfo");
    for z in &e.host.zones {
        for (name, n) in z.pageblocks.iter().flatten() {
            let labels = with(of_zone(z.node, &z.name), "migratetype", name.clone());
            blocks.set(labels, *n as f64);
        }
    }
}

fn caches(r: &mut Registry, e: &Evidence) {
    let page_size = e.host.geometry.page_size;
    let Some(all) = slabs::by_size(e, page_size) else {
        return;
    };
    let size = |pages: u64| pages.saturating_mul(page_size) as f64;
    let total = all
        .iter()
        .fold(0u64, |sum, (_, pages)| sum.saturating_add(*pages));
    let whole = Named::new(r, "slab_bytes", "Memory of all slab caches together");
    whole.set(vec![], size(total));
    let largest = Named::new(r, "slab_cache_bytes", "Memory of the largest slab caches");
    for (name, pages) in all.into_iter().take(CACHES) {
        largest.set(vec![("cache", name.to_owned())], size(pages));
    }
}

fn with(mut labels: Labels, key: &'static str, value: String) -> Labels {
    labels.push((key, value));
    labels
}
