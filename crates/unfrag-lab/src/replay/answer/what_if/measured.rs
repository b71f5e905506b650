//! How far predictions of each class were from what real kernels did.
//!
//! `measured.tsv` has one line for each number of each comparison: what a replay of a recording predicted for a kernel
//! or setting, and what real hosts under these did with the same load. Its head says when and from what it was made. The
//! error of a number in a class is the one that four of five comparisons of that class do not exceed, where the next one
//! is as likely as any of them: of n errors, the (n + 1) * 4/5-th. A class with too few comparisons has the largest error
//! of the classes that include it.
//!
//! Invariant: a class of which less is known has no narrower error than the classes that include it.

use super::class::{Asked, Begins, Class, Pressure};
use super::quantity::{QUANTITIES, Quantity};
use std::collections::BTreeSet;
use std::sync::LazyLock;

/// Comparisons of which fewer tell no error of their class: with four, the next one exceeds the largest in one of five cases.
const ENOUGH: usize = 4;

/// A line of the table: a prediction, and what came true.
#[derive(Clone, Debug, PartialEq)]
pub struct Compared {
    /// The load, whose recordings are alike.
    pub load: String,
    /// The load, the recorded kernel and its settings.
    pub recording: String,
    /// Its class.
    pub class: Class,
    /// Number, as an index of [`QUANTITIES`].
    pub quantity: usize,
    /// What the recorded host had.
    pub recorded: Option<f64>,
    /// What was predicted.
    pub predicted: f64,
    /// The least and the largest of the real runs.
    pub real: [f64; 2],
}

impl Compared {
    fn quantity(&self) -> &'static Quantity {
        &QUANTITIES[self.quantity]
    }

    /// Error of the prediction, on the number's scale.
    pub fn error(&self) -> f64 {
        let scale = self.quantity().scale;
        let real = (self.real[0] + self.real[1]) / 2.0;
        scale.up(real) - scale.up(self.predicted)
    }

    /// A line of the table; `None` of a number that is not compared.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(line: &str) -> Result<Option<Compared>, String> {
        let fields: Vec<&str> = line.split('\t').collect();
        let [
            load,
            kernel,
            settings,
            kernel_asked,
            settings_asked,
            name,
            recorded,
            _,
            predicted,
            _,
            low,
            high,
            start,
            pressure,
        ] = fields[..]
        else {
            return Err(format!("{} fields, not 14", fields.len()));
        };
        let Some(quantity) = QUANTITIES.iter().position(|q| q.name == name) else {
            return Ok(None);
        };
        let number = |text: &str| text.parse::<f64>().map_err(|e| format!("`{text}`: {e}"));
        let asked = match (kernel == kernel_asked, settings == settings_asked) {
            (false, _) => Asked::Kernel,
            (_, false) => Asked::Setting,
            _ => Asked::Own,
        };
        let class = Class {
            pressure: Pressure::named(pressure).ok_or(format!("no pressure `{pressure}`"))?,
            asked,
            start: Begins::named(start).ok_or(format!("no start `{start}`"))?,
        };
        Ok(Some(Compared {
            load: load.into(),
            recording: [load, kernel, settings].join(" "),
            class,
            quantity,
            recorded: (recorded != "-").then(|| number(recorded)).transpose()?,
            predicted: number(predicted)?,
            real: [number(low)?, number(high)?],
        }))
    }
}

/// Comparisons with real kernels.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    all: Vec<Compared>,
}

/// What is known of a number's error in a class.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClassError {
    /// How far off, on the number's scale; `None` where nothing is known.
    pub error: Option<f64>,
    /// Comparisons of just this class; 0 where it was not measured, and the error is that of wider classes.
    pub comparisons: u64,
}

impl Measured {
    /// The comparisons that were made with this version of the model.
    pub fn shipped() -> &'static Measured {
        static SHIPPED: LazyLock<Measured> = LazyLock::new(|| {
            // A test reads every line.
            Measured::parse(include_str!("measured.tsv")).unwrap_or_default()
        });
        &SHIPPED
    }

    /// Of a table.
    ///
    /// # Errors
    /// The first line that is wrong, and what is wrong with it.
    pub fn parse(text: &str) -> Result<Measured, String> {
        let lines = text.lines().enumerate();
        let lines = lines.filter(|(_, l)| !l.starts_with('#') && !l.is_empty());
        let parsed =
            lines.map(|(i, l)| Compared::parse(l).map_err(|e| format!("line {}: {e}", i + 1)));
        let all: Result<Vec<_>, String> = parsed.collect();
        Ok(Measured {
            all: all?.into_iter().flatten().collect(),
        })
    }

    /// All of them.
    pub fn all(&self) -> &[Compared] {
        &self.all
    }

    /// Some of them.
    pub fn filtered(&self, keep: impl Fn(&Compared) -> bool) -> Measured {
        let kept = self.all.iter().filter(|c| keep(c));
        Measured {
            all: kept.cloned().collect(),
        }
    }

    /// Loads of the comparisons of a class.
    pub fn loads(&self, class: Class) -> BTreeSet<&str> {
        let own = self.all.iter().filter(|c| c.class == class);
        own.map(|c| &c.load[..]).collect()
    }

    /// Errors of a number in all classes that are alike, ascending.
    fn errors(&self, quantity: &Quantity, alike: impl Fn(Class) -> bool) -> Vec<f64> {
        let known = self
            .all
            .iter()
            .filter(|c| c.quantity().name == quantity.name);
        let mut errors: Vec<f64> = known
            .filter(|c| alike(c.class))
            .map(|c| c.error().abs())
            .collect();
        errors.sort_by(f64::total_cmp);
        errors
    }

    /// The error of a number in a class.
    pub fn error(&self, quantity: &Quantity, class: Class) -> ClassError {
        let own = self.errors(quantity, |c| c == class);
        if own.len() < ENOUGH {
            return self.widest(quantity, class);
        }
        let rank = ((own.len() + 1) * 4).div_ceil(5);
        ClassError {
            error: own.get(rank - 1).copied(),
            comparisons: own.len() as u64,
        }
    }

    /// The largest error of a number in the classes that include one, for a question that is like none that was measured.
    pub fn widest(&self, quantity: &Quantity, class: Class) -> ClassError {
        // One thing is left open, then two, then all. Nothing says which of those classes this one is like.
        let same = |c: Class| {
            let alike = [
                c.pressure == class.pressure,
                c.asked == class.asked,
                c.start == class.start,
            ];
            alike.into_iter().filter(|same| *same).count()
        };
        let mut wider = [2, 1, 0]
            .map(|least| self.errors(quantity, |c| same(c) >= least))
            .into_iter();
        let known = wider.find(|errors| errors.len() >= ENOUGH);
        ClassError {
            error: known.and_then(|errors| errors.last().copied()),
            comparisons: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(
        load: &str,
        asked: &str,
        start: &str,
        pressure: &str,
        predicted: u32,
        real: u32,
    ) -> String {
        format!(
            "{load}\t6.1\t-\t{asked}\t-\tallocstall\t50\t-\t{predicted}\t-\t{real}\t{real}\t{start}\t{pressure}\n"
        )
    }

    fn allocstall() -> &'static Quantity {
        QUANTITIES.iter().find(|q| q.name == "allocstall").unwrap()
    }

    #[test]
    fn of_few_comparisons_the_error_is_that_of_wider_classes() {
        let class = |pressure, asked, start| Class {
            pressure,
            asked,
            start,
        };
        let mut table = String::new();
        // From counts predictions are off by little; from page flags by much, and of those there are few.
        for i in 0..5 {
            table += &line("a", "6.18", "counts", "reclaim", 100, 100 + i);
        }
        for i in 0..3 {
            table += &line("b", "6.18", "occupancy", "reclaim", 100, 1_000 + i);
        }
        let measured = Measured::parse(&table).unwrap();
        let of =
            |start| measured.error(allocstall(), class(Pressure::Reclaim, Asked::Kernel, start));
        let (counts, flags, exact) = (of(Begins::Counts), of(Begins::Occupancy), of(Begins::Exact));
        assert_eq!(
            (counts.comparisons, flags.comparisons, exact.comparisons),
            (5, 0, 0)
        );
        let error = |e: ClassError| e.error.unwrap();
        assert!(error(counts) < 0.05);
        assert!(error(flags) > 1.0, "{flags:?}");
        assert!(error(exact) >= error(counts));
        let elsewhere = measured.error(
            allocstall(),
            class(Pressure::None, Asked::Setting, Begins::Anew),
        );
        assert!(error(elsewhere) > 1.0, "all that is known: {elsewhere:?}");
    }

    #[test]
    fn without_comparisons_no_error_is_known() {
        let class = Class {
            pressure: Pressure::None,
            asked: Asked::Kernel,
            start: Begins::Counts,
        };
        let three: String = (0..3)
            .map(|_| line("a", "6.18", "counts", "none", 1, 1))
            .collect();
        for table in ["", &three] {
            let e = Measured::parse(table).unwrap().error(allocstall(), class);
            assert_eq!((e.error, e.comparisons), (None, 0));
        }
    }

    #[test]
    fn a_question_that_rests_on_a_guess_has_no_narrower_error() {
        let all = Measured::shipped();
        let classes: BTreeSet<Class> = all.all().iter().map(|c| c.class).collect();
        for (class, quantity) in classes
            .iter()
            .flat_map(|c| QUANTITIES.iter().map(move |q| (*c, q)))
        {
            let (known, guessed) = (all.error(quantity, class), all.widest(quantity, class));
            assert!(guessed.error >= known.error, "{class:?}, {}", quantity.name);
            assert_eq!(guessed.comparisons, 0);
        }
    }

    /// For every class and number of the table that ships.
    #[test]
    fn a_class_that_was_not_measured_has_no_narrower_error_than_one_that_was() {
        let all = Measured::shipped();
        for quantity in &QUANTITIES {
            let anew = |pressure| Class {
                pressure,
                asked: Asked::Setting,
                start: Begins::Anew,
            };
            for pressure in [Pressure::None, Pressure::Compaction, Pressure::Reclaim] {
                let unknown = all.error(quantity, anew(pressure));
                assert_eq!(unknown.comparisons, 0);
                assert!(unknown.error.is_some(), "{}", quantity.name);
            }
        }
    }

    #[test]
    fn a_line_that_is_wrong_is_named() {
        let good = line("a", "6.18", "counts", "none", 1, 1);
        let cases = [
            (good.replace("counts", "count"), "no start `count`"),
            (good.replace("none", "some"), "no pressure `some`"),
            (good.replace("\t50\t", "\tx\t"), "`x`"),
            (good.replace("\t50", ""), "13 fields"),
        ];
        for (text, why) in cases {
            let e = Measured::parse(&format!("# head\n{text}")).unwrap_err();
            assert!(e.contains("line 2") && e.contains(why), "{e}");
        }
        let other = good.replace("allocstall", "of_another_version");
        assert!(Measured::parse(&other).unwrap().all().is_empty());
    }
}
