//! Bars of what-ifs against the comparisons with real kernels that ship.

use std::collections::BTreeSet;
use unfrag_lab::replay::answer::what_if::class::Asked;
use unfrag_lab::replay::answer::what_if::measured::{Compared, Measured};
use unfrag_lab::replay::answer::what_if::quantity::QUANTITIES;

/// The table that ships.
const TABLE: &str = include_str!("../src/replay/answer/what_if/measured.tsv");

#[test]
fn every_line_of_the_table_is_read() {
    let all = Measured::parse(TABLE).unwrap();
    let lines = TABLE
        .lines()
        .filter(|l| !l.starts_with('#') && !l.is_empty());
    assert_eq!(all.all().len(), lines.count());
    assert_eq!(all.all(), Measured::shipped().all());
    let names: BTreeSet<usize> = all.all().iter().map(|c| c.quantity).collect();
    assert_eq!(names.len(), QUANTITIES.len(), "a number was never compared");
}

/// Comparisons whose real value the error of its class, as other recordings tell it, reaches: how many, of how many.
fn inside(
    all: &Measured,
    of: impl Fn(&Compared) -> bool,
    held_out: impl Fn(&Compared, &Compared) -> bool,
) -> (usize, usize) {
    let (mut inside, mut known) = (0, 0);
    for c in all.all().iter().filter(|c| of(c)) {
        let others = all.filtered(|other| !held_out(c, other));
        let Some(error) = others.error(&QUANTITIES[c.quantity], c.class).error else {
            continue;
        };
        known += 1;
        inside += usize::from(c.error().abs() <= error + 1e-9);
    }
    (inside, known)
}

/// The bars are made of this and of what differs between replays, and so are wider still.
#[test]
fn four_of_five_real_numbers_lie_inside_bars_of_other_recordings() {
    let all = Measured::shipped();
    let same_recording = |a: &Compared, b: &Compared| a.recording == b.recording;
    let asked = |c: &Compared| c.class.asked != Asked::Own;
    for (name, of) in [("own", false), ("asked", true)] {
        let (inside, known) = inside(all, |c| asked(c) == of, same_recording);
        println!("{name}: {inside} of {known} inside");
        let share = inside as f64 / known as f64;
        assert!((0.7..=0.95).contains(&share), "{name}: {inside} of {known}");
    }
}
