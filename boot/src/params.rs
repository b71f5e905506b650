//! The kernel's parameters: `name=value` on its command line.
//!
//! | parameter | meaning | default |
//! |---|---|---|
//! | `cpus=2` | CPUs to start | 1 |
//! | `engine=unfrag` | who manages the frames: `unfrag`, or the preset of an era such as `6.18` | `unfrag` |
//! | `memmap=1M$64M` | no memory here: so many bytes from this address on; may be given more than once | no hole |
//! | `seed=1` | the seed of every choice | 1 |
//! | `interrupts=100000` | allocations of interrupt handlers before it ends | 100000 |

/// The parameters.
#[derive(Clone, Copy, Debug)]
pub struct Params {
    /// CPUs to start.
    pub cpus: usize,
    /// Who manages the frames.
    pub engine: &'static str,
    /// The seed of every choice.
    pub seed: u64,
    /// Allocations of interrupt handlers before it ends.
    pub interrupts: u64,
    line: &'static str,
}

impl Params {
    /// Reads a command line.
    ///
    /// # Errors
    /// The parameter that is not known, or whose value is not.
    pub fn parse(line: &'static str) -> Result<Params, &'static str> {
        let mut params = Params {
            cpus: 1,
            engine: "unfrag",
            seed: 1,
            interrupts: 100_000,
            line,
        };
        for word in line.split_whitespace() {
            let (name, value) = word.split_once('=').ok_or(word)?;
            let number = value.parse::<u64>().map_err(|_| word);
            match name {
                "cpus" if (1..=crate::cpu::MAX_CPUS as u64).contains(&number?) => {
                    params.cpus = number? as usize;
                }
                "engine" => params.engine = value,
                "seed" => params.seed = number?,
                "interrupts" => params.interrupts = number?,
                "memmap" => drop(hole(value).ok_or(word)?),
                _ => return Err(word),
            }
        }
        Ok(params)
    }

    /// The holes: the first byte and the number of bytes of each.
    pub fn holes(&self) -> impl Iterator<Item = (u64, u64)> {
        let values = self.line.split_whitespace();
        values.filter_map(|w| hole(w.strip_prefix("memmap=")?))
    }
}

/// `SIZE$START`, as Linux writes it.
fn hole(value: &str) -> Option<(u64, u64)> {
    let (bytes, start) = value.split_once('$')?;
    Some((size(start)?, size(bytes)?))
}

/// A number of bytes, with `K`, `M` or `G`.
fn size(text: &str) -> Option<u64> {
    let units = [('K', 10), ('M', 20), ('G', 30)];
    let unit = units
        .into_iter()
        .find_map(|(unit, shift)| text.strip_suffix(unit).map(|number| (number, shift)));
    let (number, shift) = unit.unwrap_or((text, 0));
    number.parse::<u64>().ok()?.checked_shl(shift)
}
