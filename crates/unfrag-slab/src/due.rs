//! The schedule of the periodic work of caches. `spec: 6.1, 6.3`

/// Time between two rounds of SLAB's reaper on a CPU, in nanoseconds.
pub const REAP_CPU: u64 = 2_000_000_000;
/// Time between two rounds of SLAB's reaper on a node, in nanoseconds.
pub const REAP_NODE: u64 = 4_000_000_000;
/// Time between two trims of SLQB on a CPU, in nanoseconds.
pub const TRIM: u64 = 3_000_000_000;

/// What is due on a CPU. A host asks [`Due::between`] every second or so, on each CPU, and hands the
/// answer to [`Cpu::reap`](crate::Cpu::reap).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Due {
    /// SLAB's reaper on the CPU.
    pub reap_cpu: bool,
    /// SLAB's reaper on its node.
    pub reap_node: bool,
    /// SLQB's trim.
    pub trim: bool,
}

impl Due {
    /// What falls due between two times, in nanoseconds of any clock that begins at 0.
    pub fn between(last: u64, now: u64) -> Due {
        let passes = |period: u64| now / period > last / period;
        Due {
            reap_cpu: passes(REAP_CPU),
            reap_node: passes(REAP_NODE),
            trim: passes(TRIM),
        }
    }
    /// All of it, for a host that wants memory back now.
    pub const ALL: Due = Due {
        reap_cpu: true,
        reap_node: true,
        trim: true,
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `spec: 6.1, 6.3`
    #[test]
    fn periods_of_the_reaper_and_the_trim() {
        let s = 1_000_000_000;
        let due = |a: u64, b: u64| {
            let d = Due::between(a * s, b * s);
            (d.reap_cpu, d.reap_node, d.trim)
        };
        assert_eq!(due(0, 1), (false, false, false));
        assert_eq!(due(1, 2), (true, false, false));
        assert_eq!(due(2, 3), (false, false, true));
        assert_eq!(due(3, 4), (true, true, false));
    }
}
