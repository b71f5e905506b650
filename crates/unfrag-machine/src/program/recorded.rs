//! What the recording of a program says of its processes: memory, CPU time, files.
//!
//! A recording gives the distribution of each number over the processes, by quantiles. One draw decides all
//! numbers of a process: a process that is large in one is large in all. Its share of CPU time follows its
//! share of memory. The kernel's work for it is part of its CPU time, as in the recording.
//!
//! Invariant: many processes together use what the recorded ones used, within the draw's variance.

/// Resolution of [`Quantiles`].
pub const CHANCES: u64 = 10_000;

/// Name of the area of a recorded process's memory.
pub(super) const AREA: &str = "recorded";

/// A number that differs between processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Quantiles {
    p10: u64,
    median: u64,
    p90: u64,
    max: u64,
    /// Processes with `max`, of [`CHANCES`]. Between p90 and them the number is `p90`.
    largest: u64,
}

impl Quantiles {
    /// From quantiles and the `mean`, which decides how many of the largest tenth have `max`; the others of that
    /// tenth have `p90`. Quantiles are made monotonic.
    pub fn new(p10: u64, median: u64, p90: u64, max: u64, mean: u64) -> Quantiles {
        let median = median.max(p10);
        let p90 = p90.max(median);
        let max = max.max(p90);
        // Sum over nine tenths: one tenth of p10, then two linear pieces of four tenths each.
        let [low, mid, high] = [p10, median, p90].map(u128::from);
        let below = 3 * low + 4 * mid + 2 * high;
        let tenth = (10 * u128::from(mean)).saturating_sub(below);
        let over = tenth.saturating_sub(high);
        let room = u128::from(max - p90);
        let largest = (over * u128::from(CHANCES / 10)).div_ceil(room.max(1));
        let largest = largest.clamp(u128::from(max > p90), u128::from(CHANCES / 10));
        Quantiles {
            p10,
            median,
            p90,
            max,
            largest: largest as u64,
        }
    }

    /// The number of the process at this rank of [`CHANCES`], the smallest first.
    pub fn at(&self, place: u64) -> u64 {
        let between = |from: u64, to: u64, past: u64| {
            let (span, width) = (u128::from(to - from), u128::from(4 * CHANCES / 10));
            from + (span * u128::from(past) / width) as u64
        };
        let (tenth, half, most) = (CHANCES / 10, CHANCES / 2, 9 * CHANCES / 10);
        match place {
            p if p < tenth => self.p10,
            p if p < half => between(self.p10, self.median, p - tenth),
            p if p < most => between(self.median, self.p90, p - half),
            p if p < CHANCES - self.largest => self.p90,
            _ => self.max,
        }
    }
}

/// What the processes of a recorded program do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Behaviour {
    /// Anonymous pages of a process at its end.
    pub anonymous: Quantiles,
    /// Share of them that it has at the end of each tenth of its work, in percent.
    pub tenths: [u8; 10],
    /// Nanoseconds on a CPU, the kernel's work for it included.
    pub cpu: Quantiles,
    /// Pages of files that it reads.
    pub read: Quantiles,
    /// Pages of files that it writes.
    pub written: Quantiles,
}

/// The source of recorded programs.
pub trait Profiles {
    /// The behaviour of a program of a profile, or of the recorded command as a whole if none is named.
    ///
    /// # Errors
    /// What was not found, and how to mend it.
    fn behaviour(
        &self,
        profile: &str,
        program: Option<&str>,
    ) -> Result<Behaviour, (String, String)>;
}

/// No recorded programs.
#[derive(Clone, Copy, Debug)]
pub struct NoProfiles;

impl Profiles for NoProfiles {
    fn behaviour(&self, profile: &str, _: Option<&str>) -> Result<Behaviour, (String, String)> {
        let message =
            format!("there is no profile `{profile}`: no place is known where profiles are");
        Err((message, "give steps instead".to_owned()))
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    fn mean(q: Quantiles) -> u64 {
        (0..CHANCES).map(|p| q.at(p)).sum::<u64>() / CHANCES
    }

    #[test]
    fn quantiles_reproduce_distribution_and_mean() {
        // cc1 in profile make-j2.
        let q = Quantiles::new(1500, 2622, 4232, 22_214, 2816);
        assert_eq!((q.at(0), q.at(999)), (1500, 1500));
        assert_eq!((q.at(4999), q.at(5000)), (2621, 2622));
        assert_eq!((q.at(9000), q.at(9999)), (4232, 22_214));
        assert!(mean(q).abs_diff(2816) <= 3, "{}", mean(q));
        // A mean that the quantiles do not allow comes as near as they do.
        let heavy = Quantiles::new(0, 0, 0, 10, 50);
        assert_eq!((heavy.at(8999), heavy.at(9000), mean(heavy)), (0, 10, 1));
        let light = Quantiles::new(5, 5, 5, 5, 0);
        assert_eq!((light.at(0), light.at(9999)), (5, 5));
        // Each maximum was seen once at least.
        assert_eq!(Quantiles::new(1, 2, 3, 100, 0).at(9999), 100);
    }
}
