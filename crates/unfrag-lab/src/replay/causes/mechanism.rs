//! Which mechanism of reclaim a recorded kernel used, as its counters show it. `spec: 4.10`

use unfrag_linux::procfs::VmStat;
use unfrag_linux::recording::Snapshot;

/// Pages that reclaim has to have freed, and that have to have come back, before counters say which mechanism it was.
const ENOUGH: u64 = 1000;

/// Whether a kernel reclaimed by generations (MGLRU) between the first and the last of some snapshots; `None` if their
/// counters do not tell. Pages are deactivated where there are active lists; where there are generations (6.12), each
/// page that comes back counts as activated.
pub fn reclaimed_by_generations<'r>(
    snapshots: impl DoubleEndedIterator<Item = &'r Snapshot>,
) -> Option<bool> {
    let mut read = snapshots.filter_map(|s| s.file("vmstat"));
    let first = VmStat::parse(read.next()?).ok()?.counters;
    let last = VmStat::parse(read.next_back()?).ok()?.counters;
    let grown = |name: &str| Some(last.get(name)?.saturating_sub(first.get(name)?));
    let freed = grown("pgsteal_kswapd")? + grown("pgsteal_direct")?;
    if freed < ENOUGH {
        return None;
    }
    if grown("pgdeactivate")? > 0 {
        return Some(false);
    }
    let back = grown("workingset_refault_file")?;
    (back >= ENOUGH && grown("workingset_activate_file")? == back).then_some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use unfrag_linux::recording::SnapshotFile;

    fn snapshot(counters: &[(&str, u64)]) -> Snapshot {
        let text: String = counters.iter().map(|(n, v)| format!("{n} {v}\n")).collect();
        Snapshot {
            name: String::new(),
            files: vec![SnapshotFile {
                name: "vmstat".into(),
                time: None,
                content: text[..].into(),
            }],
        }
    }

    /// Counters after so much reclaim: freed, deactivated, come back, of these activated.
    fn after(freed: u64, deactivated: u64, back: u64, activated: u64) -> Option<bool> {
        let of = |[f, d, b, a]: [u64; 4]| {
            snapshot(&[
                ("pgsteal_kswapd", f),
                ("pgsteal_direct", 0),
                ("pgdeactivate", d),
                ("workingset_refault_file", b),
                ("workingset_activate_file", a),
            ])
        };
        // Whatever there was before says nothing.
        let all = [
            of([9, 9, 9, 3]),
            of([freed + 9, deactivated + 9, back + 9, activated + 3]),
        ];
        reclaimed_by_generations(all.iter())
    }

    #[test]
    fn counters_say_which_mechanism_it_was_or_nothing() {
        // As two guests of 6.12 had it after the same load.
        assert_eq!(after(85_189, 0, 34_784, 34_784), Some(true));
        assert_eq!(after(83_252, 2_423, 34_205, 4_320), Some(false));
        // Too little, or what either could be.
        assert_eq!(after(999, 0, 34_784, 34_784), None);
        assert_eq!(after(85_189, 0, 999, 999), None);
        assert_eq!(after(85_189, 0, 34_784, 34_783), None);
        assert_eq!(after(85_189, 0, 0, 0), None);
        let none: [Snapshot; 2] = [snapshot(&[("pgfree", 1)]), snapshot(&[])];
        assert_eq!(reclaimed_by_generations(none.iter()), None);
        assert_eq!(reclaimed_by_generations(none[..0].iter()), None);
    }
}
