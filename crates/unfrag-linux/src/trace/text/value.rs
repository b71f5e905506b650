//! Numbers in text.

/// A decimal number, all of `word`.
pub(super) fn decimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() {
        return None;
    }
    word.iter().try_fold(0u64, |n, &c| {
        let digit = c.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        n.checked_mul(10)?.checked_add(digit.into())
    })
}

/// A hexadecimal number without `0x`, all of `word`.
pub(super) fn hexadecimal(word: &[u8]) -> Option<u64> {
    if word.is_empty() || word.len() > 16 {
        return None;
    }
    word.iter().try_fold(0u64, |n, &c| {
        Some(n << 4 | u64::from((c as char).to_digit(16)?))
    })
}

/// A number as the kernel prints one: `12`, `-1` (sign-extended), `0x1f`; also whether it is
/// negative.
pub(super) fn number(word: &[u8]) -> Option<(u64, bool)> {
    match word {
        [b'0', b'x' | b'X', hex @ ..] => Some((hexadecimal(hex)?, false)),
        [b'-', digits @ ..] => Some((0u64.wrapping_sub(decimal(digits)?), true)),
        digits => Some((decimal(digits)?, false)),
    }
}

/// An address: hexadecimal with or without `0x`, or a null pointer's name.
pub(super) fn address(word: &[u8]) -> Option<u64> {
    match word {
        b"(null)" | b"(nil)" => Some(0),
        [b'0', b'x', hex @ ..] => hexadecimal(hex),
        hex => hexadecimal(hex),
    }
}

/// Without the spaces and tabs before it.
#[inline]
pub(super) fn trim(mut text: &[u8]) -> &[u8] {
    // Columns are padded by many.
    while let Some((b"        ", rest)) = text.split_first_chunk::<8>() {
        text = rest;
    }
    let n = text
        .iter()
        .take_while(|c| matches!(c, b' ' | b'\t'))
        .count();
    &text[n..]
}

/// Without the spaces and tabs behind it.
pub(super) fn trim_end(text: &[u8]) -> &[u8] {
    let n = text
        .iter()
        .rev()
        .take_while(|c| matches!(c, b' ' | b'\t'))
        .count();
    &text[..text.len() - n]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_all_forms() {
        assert_eq!(number(b"1534487"), Some((1_534_487, false)));
        assert_eq!(number(b"0x176a17"), Some((0x17_6a17, false)));
        assert_eq!(number(b"-1"), Some((u64::MAX, true)));
        assert_eq!(number(b"0x"), None);
        assert_eq!(number(b"18446744073709551616"), None);
        assert_eq!(address(b"00000000d2be5665"), Some(0xd2be_5665));
        assert_eq!(address(b"(null)"), Some(0));
        assert_eq!(address(b"0xfffffffffffffffff"), None);
    }
}
