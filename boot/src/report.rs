//! The verdict: a table for people, one line of JSON for programs, and the exit code.

use crate::atomic::Counts;
use crate::serial::{Verdict, exit};

/// What became of a burst of requests.
#[derive(Clone, Copy, Debug, Default)]
pub struct Burst {
    /// Free frames above the reserve before it.
    pub free: u64,
    /// Huge pages that were served.
    pub got: u64,
    /// Those that no copying went before.
    pub without_copying: u64,
    /// Frames that were copied meanwhile.
    pub copies: u64,
    /// Those that did not hold what was written.
    pub wrong: u64,
}

impl Burst {
    /// Served huge pages, in tenths of a percent of what was free.
    pub fn permille(&self) -> u64 {
        (self.got * 512 * 1000).checked_div(self.free).unwrap_or(0)
    }

    /// Requests that were served without copying, in tenths of a percent of those that were served.
    pub fn permille_without_copying(&self) -> u64 {
        (self.without_copying * 1000)
            .checked_div(self.got)
            .unwrap_or(0)
    }
}

/// All that was measured.
pub struct Report {
    /// Who managed the frames.
    pub engine: &'static str,
    /// CPUs.
    pub cpus: usize,
    /// Frames of the machine that were given to unfrag.
    pub frames: u64,
    /// Huge pages on demand.
    pub on_demand: Burst,
    /// Huge pages with kcompactd ahead of demand.
    pub ahead: Burst,
    /// Huge pages after the churn.
    pub after_churn: Burst,
    /// Pages that were compared with what was written.
    pub pages_checked: u64,
    /// Those that differed.
    pub checksums_wrong: u64,
    /// Allocations of interrupt handlers.
    pub interrupts: Counts,
    /// Interrupts that were asked for while a CPU held a lock or was in its `Local`, and had to wait.
    pub tried: u64,
    /// Those that came all the same.
    pub let_in: u64,
    /// Pages that kswapd and others dropped.
    pub reclaimed: u64,
    /// Accesses that waited for a page that was being moved.
    pub waited: u64,
    /// Flushes of the TLB on all CPUs.
    pub flushes: u64,
    /// Frames that nobody has at the end, and that are not free.
    pub lost: i64,
    /// Whether every invariant of unfrag held.
    pub valid: bool,
}

/// Tenths of a percent, as a percentage.
struct Percent(u64);

impl core::fmt::Display for Percent {
    fn fmt(&self, f: &mut core::fmt::Formatter) -> core::fmt::Result {
        write!(f, "{}.{}", self.0 / 10, self.0 % 10)
    }
}

/// Prints the report, and ends the machine.
pub fn finish(r: &Report) -> ! {
    let wrong = r.checksums_wrong + r.on_demand.wrong + r.ahead.wrong + r.after_churn.wrong;
    let copied = r.on_demand.got - r.on_demand.without_copying;
    let copies = (r.on_demand.copies * 10).checked_div(copied).unwrap_or(0);
    let (on_demand, ahead) = (Percent(r.on_demand.permille()), Percent(r.ahead.permille()));
    let after_churn = Percent(r.after_churn.permille());
    let without = Percent(r.ahead.permille_without_copying());
    let without_on_demand = Percent(r.on_demand.permille_without_copying());
    let (copies, i) = (Percent(copies), r.interrupts);
    println!();
    println!("huge pages of what was free, on demand       {on_demand:>10} %");
    println!("huge pages of what was free, ahead of demand {ahead:>10} %");
    println!("huge pages of what was free, after the churn {after_churn:>10} %");
    println!("served without copying, on demand            {without_on_demand:>10} %");
    println!("served without copying, ahead of demand      {without:>10} %");
    println!("copies for a huge page, on demand            {copies:>10}");
    println!(
        "pages compared                               {:>10}",
        r.pages_checked
    );
    println!("pages with wrong contents                    {wrong:>10}");
    println!(
        "accesses that waited for a page being moved  {:>10}",
        r.waited
    );
    println!(
        "allocations in interrupt handlers            {:>10}",
        i.allocated
    );
    println!(
        "  without a frame                            {:>10}",
        i.failed
    );
    println!(
        "  lost                                       {:>10}",
        i.lost
    );
    println!(
        "interrupts asked for in a lock or a Local    {:>10}",
        r.tried
    );
    println!(
        "  let in                                     {:>10}",
        r.let_in
    );
    println!(
        "pages of the page cache that were dropped    {:>10}",
        r.reclaimed
    );
    println!(
        "flushes of the TLB on all CPUs               {:>10}",
        r.flushes
    );
    println!(
        "frames lost                                  {:>10}",
        r.lost
    );
    let valid = if r.valid { "ok" } else { "broken" };
    println!("validate                                     {valid:>10}");
    let passed =
        wrong == 0 && i.lost == 0 && r.let_in == 0 && r.tried > 0 && r.lost == 0 && r.valid;
    println!(
        "json: {{\"engine\":\"{}\",\"cpus\":{},\"frames\":{},\"huge_percent\":{on_demand},\
         \"huge_percent_ahead\":{ahead},\"huge_percent_after_churn\":{after_churn},\
         \"served_without_copying_percent\":{without},\
         \"served_without_copying_percent_on_demand\":{without_on_demand},\"copies_per_block\":{copies},\
         \"pages_checked\":{},\"checksums_wrong\":{wrong},\"accesses_waited\":{},\"interrupt_allocations\":{},\
         \"interrupt_failures\":{},\"interrupt_lost\":{},\"interrupts_tried_in_lock\":{},\
         \"interrupts_let_in\":{},\"pages_reclaimed\":{},\"tlb_flushes\":{},\"frames_lost\":{},\"valid\":{},\
         \"passed\":{passed}}}",
        r.engine,
        r.cpus,
        r.frames,
        r.pages_checked,
        r.waited,
        i.allocated,
        i.failed,
        i.lost,
        r.tried,
        r.let_in,
        r.reclaimed,
        r.flushes,
        r.lost,
        r.valid,
    );
    exit(if passed {
        Verdict::Passed
    } else {
        Verdict::Failed
    })
}
