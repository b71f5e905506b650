//! Which faults ask for huge pages in the model, and with which effort, where that is not as recorded.
//!
//! Invariant: a fault that is not to ask makes no request at all.

use unfrag_eras::Gfp;

/// What becomes of the recorded requests of faults for huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HugeRules {
    /// Which faults do not ask.
    pub silent: Silent,
    /// With which effort those ask that do, in plain and in advised memory; `None`: as recorded.
    pub effort: Option<[Gfp; 2]>,
    /// How advised memory is known.
    pub advised: Advised,
}

/// Which faults ask for no huge page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Silent {
    /// All ask that did.
    #[default]
    None,
    /// Those in plain memory.
    Plain,
    /// All, and khugepaged.
    All,
}

/// How it is known of a recorded fault whether its memory was advised to have huge pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Advised {
    /// It makes no difference.
    #[default]
    Unknown,
    /// All was.
    All,
    /// That of faults that may reclaim themselves.
    Direct,
}

impl HugeRules {
    fn is_advised(&self, recorded: Gfp) -> bool {
        match self.advised {
            Advised::Unknown => false,
            Advised::All => true,
            Advised::Direct => recorded.contains(Gfp::DIRECT_RECLAIM),
        }
    }

    /// Whether a recorded fault asks, too.
    pub(super) fn asks(&self, recorded: Gfp) -> bool {
        match self.silent {
            Silent::None => true,
            Silent::Plain => self.is_advised(recorded),
            Silent::All => false,
        }
    }

    /// The mask of a request that was recorded with another.
    pub(super) fn mask(&self, recorded: Gfp) -> Gfp {
        let Some([plain, advised]) = self.effort else {
            return recorded;
        };
        let of_first = recorded & (Gfp::THISNODE | Gfp::NORETRY);
        let of_first = match of_first.contains(Gfp::THISNODE) {
            true => of_first,
            false => Gfp::empty(),
        };
        let base = recorded.difference(Gfp::DIRECT_RECLAIM | Gfp::KSWAPD_RECLAIM | Gfp::NORETRY);
        let effort = match self.is_advised(recorded) {
            true => advised,
            false => plain,
        };
        base | of_first | effort
    }
}
