//! Which lines go on with a statement that was wrapped, and how they are put behind it. `spec: K.2`
//!
//! Mailers, consoles and pagers cut lines between words or in the midst of them: whether a blank was lost is told by
//! what stands at both sides of the cut.

use super::statement::Kind;

/// Whether `text`, a line without a beginning of its own, may go on with a statement of this kind.
pub fn goes_on(kind: Kind, so_far: &str, text: &str) -> bool {
    let text = text.trim();
    if text.is_empty() || !kind.may_wrap() {
        return false;
    }
    match kind {
        Kind::Zone | Kind::Node => text.split_whitespace().any(is_amount) || is_fragment(text),
        Kind::Counts => text.split_whitespace().any(|t| t.contains(':')) || is_fragment(text),
        Kind::Blocks => {
            let is_part = |b: u8| b.is_ascii_digit() || b" *kB()=UMEHCRI".contains(&b);
            !is_whole_blocks(so_far) && text.bytes().all(is_part)
        }
        Kind::Reserve => text.bytes().all(|b| b.is_ascii_digit() || b == b' '),
        Kind::Failure | Kind::Oom if !is_whole_request(so_far) || is_mask_cut(so_far, text) => {
            text.len() < 400
        }
        Kind::Failure | Kind::Oom | Kind::Slab | Kind::Vmalloc | Kind::Cma | Kind::Length => {
            let words = [
                "order", "mode", "mask", "GFP", "_adj", "mems", "cpuset", "=", "allocat",
                "failure", "oom", "pages", "ret",
            ];
            text.len() < 400 && words.iter().any(|w| text.contains(w))
                || so_far.matches('(').count() > so_far.matches(')').count()
        }
        Kind::Cpu => {
            let last = so_far.rsplit(' ').next().unwrap_or("");
            let is_cut = last.starts_with(|c: char| c.is_ascii_digit()) && !text.contains(' ');
            text.len() < 100 && (text.contains('#') || text.contains("ainted") || is_cut)
        }
        // Only a name is cut that has no sign in it.
        Kind::OomKill => {
            let is_name = so_far.contains("limit of ") && !text.contains(' ');
            is_name || text.contains(['=', ',', '/', ':'])
        }
        Kind::Cpuset | Kind::Cache | Kind::Killed | Kind::Tail => {
            text.contains(['=', ':']) && text.len() < 100
        }
        _ => false,
    }
}

/// Whether the text so far ends in a mask that the next line goes on with.
fn is_mask_cut(so_far: &str, next: &str) -> bool {
    let last = so_far.rsplit(' ').next().unwrap_or("");
    let hex = ["mode:0x", "gfp_mask=0x"]
        .iter()
        .find_map(|m| last.strip_prefix(m));
    let is_hex = |t: &str| t.bytes().all(|b| b.is_ascii_hexdigit());
    let end = next.find(['(', ',', ' ']).unwrap_or(next.len());
    hex.is_some_and(is_hex) && is_hex(&next[..end])
}

/// Whether order and mask of a request are there.
fn is_whole_request(text: &str) -> bool {
    let is_followed = |name: &str| {
        let behind = text
            .split_once(name)
            .map(|(_, rest)| rest.trim_start_matches('-'));
        behind.is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_digit()) && rest.contains([',', '(', ' ', '/'])
                || rest.len() > 3
        })
    };
    (is_followed("order:") || is_followed("order=") || text.contains("-order "))
        && (is_followed("mode:") || is_followed("gfp_mask=") || is_followed("gfp="))
}

fn is_whole_blocks(text: &str) -> bool {
    text.rsplit_once('=')
        .is_some_and(|(_, sum)| sum.trim_end().ends_with("kB"))
}

fn is_amount(token: &str) -> bool {
    token.ends_with("kB")
        || token.ends_with("KB")
        || token.starts_with("pages_scanned:")
        || token.starts_with("all_unreclaimable")
}

/// A single piece of a name or number.
fn is_fragment(text: &str) -> bool {
    if matches!(text, "B" | "kB") {
        return true;
    }
    text.len() < 40
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b"_():?>".contains(&b))
}

/// Puts the next line of a wrapped statement behind the text so far, with a blank or without.
pub fn join(kind: Kind, so_far: &mut String, next: &str) {
    let next = match kind {
        // Whoever wrapped it may have indented what follows.
        Kind::Cpu => next.trim(),
        _ => next.trim_end(),
    };
    if !so_far.ends_with(' ') && !next.starts_with(' ') && needs_blank(kind, so_far, next) {
        so_far.push(' ');
    }
    so_far.push_str(next);
}

fn needs_blank(kind: Kind, so_far: &str, next: &str) -> bool {
    let last = so_far.rsplit(' ').next().unwrap_or("");
    let first = next.split(' ').next().unwrap_or("");
    let begins_digit = first.as_bytes().first().is_some_and(u8::is_ascii_digit);
    match kind {
        Kind::Zone | Kind::Node | Kind::Counts => {
            let has_value = |t: &str| t.split_once(':').is_some_and(|(_, v)| !v.is_empty());
            match last {
                "Node" | "all_unreclaimable?" => true,
                _ if first.starts_with("free:")
                    || last.bytes().all(|b| b.is_ascii_digit())
                        && !begins_digit
                        && !first.starts_with("kB") =>
                {
                    true
                }
                _ if kind != Kind::Counts && begins_digit => last.ends_with("kB"),
                _ if kind == Kind::Counts && begins_digit => false,
                _ if last.starts_with("pages_scanned:") || kind == Kind::Counts => {
                    has_value(last) && !first.starts_with(':')
                }
                _ => last.ends_with("kB") || last.ends_with("KB") || matches!(last, "yes" | "no"),
            }
        }
        Kind::Blocks => {
            let last_whole =
                last.ends_with("kB") || last.ends_with(')') || last.ends_with(':') || last == "=";
            last_whole && !first.starts_with(['k', 'B', '*', ')'])
        }
        // Each number is at least as large as the one before it.
        Kind::Reserve => match (last.parse::<u64>(), first.parse::<u64>()) {
            (Ok(last), Ok(first)) => first >= last,
            _ => true,
        },
        Kind::Failure | Kind::Oom | Kind::Vmalloc | Kind::Slab => {
            let is_open = so_far.matches('(').count() > so_far.matches(')').count();
            let words = [
                "page",
                "allocation",
                "failure:",
                "failure.",
                "invoked",
                "oom-killer:",
                "for",
                "stalls",
                "error:",
                "size",
            ];
            !is_open
                && (last.ends_with([',', '.', ':', ')']) || words.contains(&last))
                && !first.starts_with([',', ')', ':'])
        }
        Kind::OomKill => false,
        // A release that was cut in two: what follows a whole one is the number of the build.
        Kind::Cpu => {
            let is_release =
                last.starts_with(|c: char| c.is_ascii_digit()) && so_far.contains("ainted");
            !(is_release && !first.starts_with('#') || first.starts_with('.'))
        }
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn joined(kind: Kind, pieces: &[&str]) -> String {
        let mut text = pieces[0].to_owned();
        pieces[1..].iter().for_each(|p| join(kind, &mut text, p));
        text
    }

    #[test]
    fn a_release_is_put_together_wherever_it_was_cut() {
        let line = "CPU: 1 PID: 7 Comm: a Not tainted 5.4.19-100.fc30.x86_64 #1 SMP";
        for at in line.find("5.4").unwrap()..line.find("1 SMP").unwrap() {
            let (a, b) = line.split_at(at);
            let text = joined(Kind::Cpu, &[a.trim_end(), b.trim_start()]);
            assert!(
                text.contains("tainted 5.4.19-100.fc30.x86_64 #"),
                "{a:?} {b:?}: {text}"
            );
        }
    }

    #[test]
    fn wrapped_lines_are_joined_in_the_midst_of_words_and_numbers() {
        let zone = "Node 0 DMA free:10176kB min:7296kB isolated(anon):0kB pages_scanned:34 all_unreclaimable? no";
        for at in 1..zone.len() {
            let (a, b) = zone.split_at(at);
            // A mailer that wraps between words drops the blank.
            let (a, b) = (a.trim_end(), b.trim_start());
            let text = joined(Kind::Zone, &[a, b]);
            if at > "Node 0 DMA free:".len() {
                assert_eq!(text, zone, "{a:?} {b:?}");
            }
        }
        let blocks = "Node 0 DMA: 3*4kB (UM) 12*8kB 0*16kB (U) = 1340kB";
        for at in "Node 0 DMA: 3".len()..blocks.len() {
            let (a, b) = blocks.split_at(at);
            assert_eq!(
                joined(Kind::Blocks, &[a.trim_end(), b.trim_start()]),
                blocks,
                "{a:?} {b:?}"
            );
        }
    }
}
