//! What a host needs of huge pages, for alerts: exported as it was told.

use super::gauges::Named;
use prometheus_client::registry::Registry;
use std::str::FromStr;
use unfrag_lab::doctor::gate::need::{MOST, node_of, number};

/// Huge pages that are needed on a node, or on the whole host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Need {
    /// Node; `None` for the whole host.
    node: Option<u32>,
    /// Huge pages.
    pages: u64,
}

impl FromStr for Need {
    type Err = String;

    fn from_str(text: &str) -> Result<Need, String> {
        let bad = || format!("`{text}` is no number of huge pages; give 512, or 512@node1");
        let (pages, node) = match text.split_once('@') {
            Some((pages, node)) => (pages, Some(node_of(node).ok_or_else(bad)?)),
            None => (text, None),
        };
        let pages = number(pages).filter(|n| (1..=MOST).contains(n));
        let pages = pages.ok_or_else(bad)?;
        Ok(Need { node, pages })
    }
}

/// Registers them. Of two for the same place the larger holds.
pub fn register(r: &mut Registry, needs: &[Need]) {
    if needs.is_empty() {
        return;
    }
    let needed = Named::new(
        r,
        "needed_huge_pages",
        "Huge pages that this host was said to need, by node or together",
    );
    let mut sorted = needs.to_vec();
    sorted.sort_by_key(|n| n.pages);
    for need in sorted {
        let node = need.node.map(|n| ("node", n.to_string()));
        needed.set(node.into_iter().collect(), need.pages as f64);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_need_is_a_number_with_or_without_a_node() {
        let need = |node, pages| Ok(Need { node, pages });
        assert_eq!("512".parse(), need(None, 512));
        assert_eq!("7@node1".parse(), need(Some(1), 7));
        for bad in [
            "",
            "0",
            "-1",
            "+5",
            "1.5",
            "5@",
            "5@1",
            "5@node",
            "5@node-1",
            "5@node99999999999",
            "@node1",
            "x",
            "99999999999999999999",
        ] {
            let said = bad.parse::<Need>().unwrap_err();
            assert!(said.contains("give 512"), "{bad}: {said}");
        }
    }
}
