//! A daemon of a node, and whose time its own is.
//!
//! Time is counted twice where the recording has both: on a CPU, by switches of tasks, and awake, from its waking to its
//! going to sleep, in which it may wait.
//!
//! Invariant: its time is that of the last wake-up, until it goes to sleep after having woken; then it is nobody's until the
//! next. A wake-up that comes while it falls asleep is not forgotten. Of two that come before it runs, the first counts.
//! Until it has said something of itself, nobody knows whether it runs by its own timer.

/// Number of a wake-up, or of a run of compaction by a request itself.
pub(super) type CauseId = u32;

/// Whose a time is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// That of a wake-up.
    Cause(CauseId),
    /// A wake-up that was not recorded.
    Unseen,
    /// Nobody's: it runs by its own timer.
    Own,
}

/// Nanoseconds, by both measures.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Time {
    /// On a CPU.
    pub cpu: u64,
    /// From waking to sleeping.
    pub awake: u64,
}

impl std::ops::AddAssign for Time {
    fn add_assign(&mut self, more: Time) {
        self.cpu += more.cpu;
        self.awake += more.awake;
    }
}

/// Hears whose time there was.
pub(super) type Give<'g> = &'g mut dyn FnMut(Whose, Time);

/// A daemon.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Daemon {
    owner: Option<CauseId>,
    /// It has woken since its last wake-up.
    has_woken: bool,
    /// It has run since.
    has_run: bool,
    /// It has gone to sleep since.
    rests: bool,
    /// Since when it is on a CPU, as far as it was given away.
    on_cpu: Option<u64>,
    awake: Option<u64>,
    was_switched: bool,
    /// It has said that it woke, or went to sleep.
    is_told: bool,
}

impl Daemon {
    /// The wake-up that it works for.
    pub fn owner(&self) -> Option<CauseId> {
        self.owner.filter(|_| !self.rests)
    }

    /// Whether it was woken, or is awake, and has not gone to sleep since.
    pub fn is_at_work(&self) -> bool {
        !self.rests && (self.owner.is_some() || self.has_woken)
    }

    /// Whether anything was heard of it: that it was woken, or that it woke or slept.
    pub fn is_known(&self) -> bool {
        self.is_told || self.owner.is_some()
    }

    /// Someone wakes it.
    pub fn is_asked(&mut self, now: u64, by: CauseId, give: Give) {
        self.settle(now, give);
        let is_woken = self.owner.is_some() && !self.rests && !self.has_run;
        if !is_woken {
            *self = Daemon {
                owner: Some(by),
                has_woken: false,
                has_run: false,
                rests: false,
                ..*self
            };
        }
    }

    /// It says that it is awake.
    pub fn wakes(&mut self, now: u64, give: Give) {
        self.settle(now, give);
        self.begin();
        self.has_woken = true;
        self.has_run = true;
        self.is_told = true;
        self.awake.get_or_insert(now);
    }

    /// It says that it goes to sleep; `since` is when the recording begins, where it has been awake from then on if this is
    /// the first that is heard of it.
    pub fn sleeps(&mut self, now: u64, since: Option<u64>, give: Give) {
        if let (false, Some(since)) = (self.is_known(), since) {
            self.awake.get_or_insert(since);
        }
        self.settle(now, give);
        self.is_told = true;
        self.awake = None;
        self.rests |= self.has_woken;
        self.has_run = true;
    }

    /// It gets a CPU.
    pub fn switched_in(&mut self, now: u64) {
        self.begin();
        self.was_switched = true;
        self.has_run = true;
        self.on_cpu = Some(now);
    }

    /// It does something, so it has a CPU.
    pub fn runs(&mut self, now: u64) {
        self.on_cpu.get_or_insert(now);
    }

    /// It leaves its CPU; `first` is since when all its switches are recorded: it has had it from then on if this is the first.
    pub fn switched_out(&mut self, now: u64, first: Option<u64>, give: Give) {
        if let (false, Some(first)) = (self.was_switched, first) {
            self.on_cpu = Some(self.on_cpu.map_or(first, |t| t.min(first)));
        }
        self.was_switched = true;
        self.settle(now, give);
        self.on_cpu = None;
    }

    /// Gives its time up to now away.
    pub fn settle(&mut self, now: u64, give: Give) {
        let since = |from: &mut Option<u64>| from.replace(now).map_or(0, |t| now.saturating_sub(t));
        let time = Time {
            cpu: if self.on_cpu.is_some() {
                since(&mut self.on_cpu)
            } else {
                0
            },
            awake: if self.awake.is_some() {
                since(&mut self.awake)
            } else {
                0
            },
        };
        if time != Time::default() {
            let whose = match self.owner {
                Some(cause) => Whose::Cause(cause),
                None if self.has_woken || !self.is_told => Whose::Unseen,
                None => Whose::Own,
            };
            give(whose, time);
        }
    }

    /// It begins to run again: what it slept after is over.
    fn begin(&mut self) {
        if self.rests {
            (self.owner, self.has_woken, self.rests) = (None, false, false);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_time_is_that_of_the_last_wake_up_until_it_sleeps() {
        let mut given = vec![];
        let mut d = Daemon::default();
        let give: Give = &mut |whose, time: Time| given.push((whose, time.cpu, time.awake));
        d.is_asked(10, 1, give);
        d.switched_in(20);
        d.wakes(25, give);
        d.switched_out(40, Some(0), give);
        d.switched_in(60);
        d.sleeps(70, None, give);
        d.switched_out(71, Some(0), give);
        // Its own timer.
        d.switched_in(100);
        d.switched_out(103, Some(0), give);
        let [one, own] = [Whose::Cause(1), Whose::Own];
        let (cpu, awake): (Vec<_>, Vec<_>) = given.iter().map(|g| ((g.0, g.1), (g.0, g.2))).unzip();
        let sum = |of: &[(Whose, u64)], whose| -> u64 {
            of.iter().filter(|g| g.0 == whose).map(|g| g.1).sum()
        };
        assert_eq!((sum(&cpu, one), sum(&awake, one)), (20 + 11, 45));
        assert_eq!((sum(&cpu, own), sum(&awake, own)), (3, 0));
    }

    #[test]
    fn a_wake_up_while_it_falls_asleep_is_not_forgotten() {
        let mut given = vec![];
        let mut d = Daemon::default();
        let give: Give = &mut |whose, time: Time| given.push((whose, time.awake));
        d.is_asked(1, 1, give);
        d.wakes(2, give);
        d.is_asked(5, 2, give);
        d.sleeps(6, None, give);
        d.wakes(7, give);
        d.sleeps(9, None, give);
        // It wakes and nobody was seen to wake it.
        d.wakes(20, give);
        d.sleeps(24, None, give);
        let all = [
            (Whose::Cause(1), 3),
            (Whose::Cause(2), 1),
            (Whose::Cause(2), 2),
            (Whose::Unseen, 4),
        ];
        assert_eq!(given, all);
    }

    #[test]
    fn of_two_wake_ups_before_it_runs_the_first_counts() {
        let mut given = vec![];
        let mut d = Daemon::default();
        let give: Give<'_> = &mut |whose, time: Time| given.push((whose, time.awake));
        d.is_asked(1, 1, give);
        d.is_asked(2, 2, give);
        d.wakes(3, give);
        d.sleeps(9, None, give);
        d.is_asked(11, 3, give);
        d.wakes(12, give);
        d.sleeps(15, None, give);
        assert_eq!(given, [(Whose::Cause(1), 6), (Whose::Cause(3), 3)]);
    }

    #[test]
    fn one_that_is_on_a_cpu_at_the_beginning_has_been_since_then() {
        let of = |first| {
            let mut all = 0;
            let mut d = Daemon::default();
            d.switched_out(50, first, &mut |_, time| all += time.cpu);
            all
        };
        assert_eq!((of(Some(30)), of(None)), (20, 0));
    }

    #[test]
    fn one_that_does_something_has_a_cpu_though_nobody_saw_it_get_it() {
        let mut given = vec![];
        let mut d = Daemon::default();
        let give: Give<'_> = &mut |_, time: Time| given.push(time.cpu);
        d.runs(40);
        d.runs(45);
        d.switched_out(50, None, give);
        d.runs(70);
        d.switched_out(71, None, give);
        assert_eq!(given, [10, 1]);
    }

    #[test]
    fn what_it_does_before_anything_is_heard_of_it_is_not_its_own_timers() {
        let mut given = vec![];
        let mut d = Daemon::default();
        let give: Give<'_> = &mut |whose, time: Time| given.push((whose, time.cpu, time.awake));
        d.switched_in(10);
        d.sleeps(30, Some(5), give);
        d.switched_out(31, Some(5), give);
        assert!(!d.is_at_work());
        // From here on it is known to sleep.
        d.switched_in(40);
        d.switched_out(42, Some(5), give);
        d.is_asked(50, 1, give);
        assert!(d.is_at_work());
        let unseen = (Whose::Unseen, 20, 25);
        assert_eq!(given, [unseen, (Whose::Own, 1, 0), (Whose::Own, 2, 0)]);
    }
}
