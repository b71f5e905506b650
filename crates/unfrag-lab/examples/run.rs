use unfrag_lab::run::*;
fn main() {
    let a: Vec<String> = std::env::args().collect();
    let mut rec = if a[1].ends_with(".unfrag") { unfrag_linux::file::read(a[1].as_ref()).unwrap() } else { unfrag_linux::open(a[1].as_ref(), &Default::default()).unwrap() };
    if a[2] != "-" { rec.snapshots = unfrag_linux::snapshots::read_all(&[a[2].as_ref()]).unwrap(); }
    if rec.meta.kernel_release.is_empty() { rec.meta.kernel_release = "6.1.0-56-cloud-amd64".into(); }
    let o = Options { kernels: a[4..].to_vec(), mode: if a[3] == "observe" { Mode::Observe } else { Mode::Predict }, start: match &a[3][..] { "exact" => StartChoice::Exact, "counts" => StartChoice::Counts, _ => StartChoice::Auto }, ..Default::default() };
    let t = std::time::Instant::now();
    let r = replay(&rec, "x", &o, &mut Unwatched).unwrap();
    eprintln!("replay {:?}", t.elapsed());
    if let Some(o) = &r.observe { println!("{o:#?}"); }
    for k in &r.kernels {
        println!("{} {:?}", k.kernel, k.totals);
        if let Some(acc) = &k.accuracy {
            println!("order {:?}\nfree {:?}\nunus {:?}\ntype {:?}\nmatch {:?} snaps {}", acc.order_distribution_error, acc.free_pages_error, acc.unusable_index_error, acc.pageblock_type_error, acc.frame_match, acc.snapshots);
            if std::env::var("V").is_ok() { for e in &acc.by_snapshot { println!("{} {:.2} od {:.4?} fp {:.4?} u9 {:.4?} pt {:.4?}", e.name, e.seconds, e.order_distribution, e.free_pages, e.unusable_9, e.pageblock_type); } }
        }
        let s = k.samples.last().unwrap(); for z in &s.zones { println!("{} {:?} free {} pcp {:?} {:?} mixed {:?}", z.zone, z.free_blocks, z.free_pages, z.pcp_pages, z.pageblocks, z.mixed_pageblocks); }
    }
    if let Ok(w) = std::env::var("S") { for n in w.split(',') { for (t, l) in [("rec", &r.recorded), ("mod", &r.kernels[0].samples)] { if let Some(s) = l.iter().find(|s| s.name == n) { let z = s.zones.last().unwrap(); println!("{n} {t} {:?} free {} pcp {:?} sum {} {:?}", z.free_blocks, z.free_pages, z.pcp_pages, z.free_pages + z.pcp_pages.unwrap(), z.pageblocks); } } } }
    let s = r.recorded.last().unwrap(); for z in &s.zones { println!("rec {} {:?} free {} pcp {:?} {:?}", z.zone, z.free_blocks, z.free_pages, z.pcp_pages, z.pageblocks); }
}
