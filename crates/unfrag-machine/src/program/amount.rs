//! Amounts of a scenario: fixed, or random within bounds.
//!
//! A fixed amount is written as itself, `"20 ms"` or `64`; one between two bounds, uniformly distributed, as
//! `{ from = "1 ms", to = "3 ms" }`; one of several, by their weights, as
//! `{ one-of = [["4 KiB", 70], ["64 KiB", 30]] }`.

use crate::engine::Rng;
use crate::input::{Bytes, Rate, Time};
use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, Error, IntoDeserializer, MapAccess, Visitor,
};
use std::fmt;
use std::marker::PhantomData;

/// A quantity in base units.
pub trait Quantity: Copy + for<'de> Deserialize<'de> + 'static {
    /// In base units.
    fn base(self) -> u64;
}

/// A count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count(pub u64);

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        u64::deserialize(d).map(Count)
    }
}

impl Quantity for Count {
    fn base(self) -> u64 {
        self.0
    }
}
impl Quantity for Bytes {
    fn base(self) -> u64 {
        self.0
    }
}
impl Quantity for Time {
    fn base(self) -> u64 {
        self.0
    }
}
impl Quantity for Rate {
    fn base(self) -> u64 {
        self.0
    }
}

/// An amount in base units, fixed or random.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Amount<T> {
    choice: Choice,
    unit: PhantomData<fn() -> T>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Choice {
    Fixed(u64),
    Between(u64, u64),
    OneOf(Vec<(u64, u32)>),
}

impl<T> Amount<T> {
    /// A fixed amount.
    pub fn fixed(amount: u64) -> Amount<T> {
        Amount {
            choice: Choice::Fixed(amount),
            unit: PhantomData,
        }
    }

    /// The amount; drawn if it is random.
    pub fn draw(&self, rng: &mut Rng) -> u64 {
        match &self.choice {
            Choice::Fixed(n) => *n,
            Choice::Between(from, to) => rng.range(*from..*to + 1),
            Choice::OneOf(all) => {
                let sum: u64 = all.iter().map(|a| u64::from(a.1)).sum();
                let mut at = rng.below(sum);
                for &(n, weight) in all {
                    if at < weight.into() {
                        return n;
                    }
                    at -= u64::from(weight);
                }
                unreachable!("the weights sum up to their sum")
            }
        }
    }

    /// The largest amount that it can be.
    pub fn most(&self) -> u64 {
        match &self.choice {
            Choice::Fixed(n) => *n,
            Choice::Between(_, to) => *to,
            Choice::OneOf(all) => all.iter().map(|a| a.0).max().unwrap_or(0),
        }
    }
}

impl Amount<Bytes> {
    /// In whole pages, as [`Bytes::pages32`].
    pub fn pages(&self, rng: &mut Rng) -> u32 {
        Bytes(self.draw(rng)).pages32()
    }
}

impl<'de, T: Quantity> Deserialize<'de> for Amount<T> {
    fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        d.deserialize_any(Any(PhantomData))
    }
}

struct Any<T>(PhantomData<T>);

impl<T: Quantity> Any<T> {
    fn fixed<E: Error>(text: impl IntoDeserializer<'static, E>) -> Result<Amount<T>, E> {
        T::deserialize(text.into_deserializer()).map(|q| Amount::fixed(q.base()))
    }
}

impl<'de, T: Quantity> Visitor<'de> for Any<T> {
    type Value = Amount<T>;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an amount, `{ from = …, to = … }`, or `{ one-of = [[amount, weight], …] }`")
    }
    fn visit_u64<E: Error>(self, n: u64) -> Result<Amount<T>, E> {
        Self::fixed(n)
    }
    fn visit_i64<E: Error>(self, n: i64) -> Result<Amount<T>, E> {
        match u64::try_from(n) {
            Ok(n) => Self::fixed(n),
            Err(_) => Err(E::custom("an amount cannot be below 0")),
        }
    }
    fn visit_str<E: Error>(self, text: &str) -> Result<Amount<T>, E> {
        Self::fixed(text.to_owned())
    }
    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Amount<T>, A::Error> {
        let (mut from, mut to, mut one_of) = (None, None, None);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "from" => from = Some(map.next_value::<T>()?.base()),
                "to" => to = Some(map.next_value::<T>()?.base()),
                "one-of" => one_of = Some(map.next_value_seed(Weighted::<T>(PhantomData))?),
                _ => return Err(A::Error::unknown_field(&key, &["from", "to", "one-of"])),
            }
        }
        let choice = match (from, to, one_of) {
            (Some(a), Some(b), None) if a <= b => Choice::Between(a, b),
            (Some(_), Some(_), None) => return Err(A::Error::custom("`from` is above `to`")),
            (None, None, Some(all)) => Choice::OneOf(all),
            _ => return Err(A::Error::custom("give `from` and `to`, or `one-of` alone")),
        };
        Ok(Amount {
            choice,
            unit: PhantomData,
        })
    }
}

struct Weighted<T>(PhantomData<T>);

impl<'de, T: Quantity> DeserializeSeed<'de> for Weighted<T> {
    type Value = Vec<(u64, u32)>;
    fn deserialize<D: Deserializer<'de>>(self, d: D) -> Result<Self::Value, D::Error> {
        let all = Vec::<(T, u32)>::deserialize(d)?;
        let sum: u64 = all.iter().map(|a| u64::from(a.1)).sum();
        if sum == 0 {
            return Err(D::Error::custom(
                "`one-of` needs an amount with a weight above 0",
            ));
        }
        Ok(all.into_iter().map(|(q, w)| (q.base(), w)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Deserialize)]
    struct File {
        a: Amount<Time>,
        b: Amount<Bytes>,
        c: Amount<Count>,
    }

    fn parse(text: &str) -> Result<File, String> {
        toml::from_str(text).map_err(|e| e.message().to_owned())
    }

    #[test]
    fn amounts_are_fixed_or_random_within_bounds() {
        let f = parse("a = \"20 ms\"\nb = { from = \"4 KiB\", to = \"8 KiB\" }\nc = { one-of = [[7, 1], [9, 3]] }")
            .unwrap();
        let mut rng = Rng::named(3, "draw");
        assert_eq!((f.a.draw(&mut rng), f.a.most()), (20_000_000, 20_000_000));
        let mut nines = 0;
        for _ in 0..1000 {
            assert!((4096..=8192).contains(&f.b.draw(&mut rng)));
            assert!((1..=2).contains(&f.b.pages(&mut rng)));
            let c = f.c.draw(&mut rng);
            assert!(c == 7 || c == 9);
            nines += u32::from(c == 9);
        }
        assert!(
            (650..850).contains(&nines),
            "{nines} of 1000 with three quarters of the weight"
        );
        assert_eq!((f.b.most(), f.c.most()), (8192, 9));
    }

    #[test]
    fn mistakes_name_the_expected_form() {
        let tell = |a: &str| {
            let text = format!("a = {a}\nb = \"1 B\"\nc = 1");
            parse(&text).err().unwrap_or_default()
        };
        assert!(tell("7").contains("a time with its unit"), "{}", tell("7"));
        assert!(tell("-7").contains("below 0"));
        assert!(tell("{ from = \"2 s\", to = \"1 s\" }").contains("`from` is above `to`"));
        assert!(tell("{ from = \"2 s\" }").contains("give `from` and `to`"));
        assert!(tell("{ one-of = [] }").contains("weight above 0"));
        assert!(tell("{ around = \"2 s\" }").contains("around"));
    }
}
