use unfrag_lab::replay::*;
fn main() {
    let x = std::path::Path::new("/tmp/start-exp");
    let want: Vec<String> = std::env::args().skip(1).collect();
    for (f, choice) in [("hp", "counts"), ("hp", "occ"), ("hp", "exact"), ("pr", "exact"), ("s768", "counts"), ("c640", "counts"), ("pr", "counts"), ("pr", "occ")] {
        let rec = unfrag_linux::file::read(&x.join(format!("{f}.unfrag"))).unwrap();
        if !want.is_empty() && !want.iter().any(|w| w == f) { continue; }
        for (cn, comp) in [("given", CompactionChoice::Given), ("none", CompactionChoice::None), ("modelled", CompactionChoice::Modelled)] {
            if f == "s768" && cn != "given" { continue; }
            let start = if choice == "exact" { StartChoice::Exact } else if choice == "occ" { StartChoice::Occupancy } else { StartChoice::Counts };
            let o = Options { start, compaction: comp, reclaim: ReclaimChoice::Given, ..Options::default() };
            let r = match replay(&rec, f, &o, &mut NoWatch) { Ok(r) => r, Err(e) => { println!("{f} {choice} {cn}: {e}"); continue; } };
            let a = r.kernels[0].accuracy.as_ref().unwrap();
            let upto = a.by_snapshot.iter().position(|s| s.name == "fragmented").map_or(0, |p| p + 1);
            let sk = |n: usize, f: fn(&answer::report::SnapshotError) -> [f64; 2]| { let (mut x, mut y) = (0.0, 0.0); for s in &a.by_snapshot[..n] { let v = f(s); x += v[0]; y += v[1]; } 1.0 - x / y };
            let n = a.by_snapshot.len();
            println!("{f} {choice} {cn}: n {n} upto {upto} order {:.3} / {:.3}  u9 {:.3} / {:.3} free {:.3} / {:.3} type {:.3} huge {:?}", sk(upto, |e| e.order_distribution), sk(n, |e| e.order_distribution), sk(upto, |e| e.unusable_9), sk(n, |e| e.unusable_9), sk(upto, |e| e.free_pages), sk(n, |e| e.free_pages), sk(n, |e| e.pageblock_type), r.kernels[0].totals.get("huge_pages"));
        }
    }
}
