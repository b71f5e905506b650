//! Sets of files that import each other: the strongly connected components of more than one file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use crate::graph::Graph;

/// The circles of the graph, the largest first, each sorted.
pub fn circles(graph: &Graph) -> Vec<Vec<PathBuf>> {
    let files: Vec<&PathBuf> = graph.imports.keys().collect();
    let number: BTreeMap<&PathBuf, usize> = files
        .iter()
        .enumerate()
        .map(|(i, &file)| (file, i))
        .collect();
    let forward: Vec<Vec<usize>> = files
        .iter()
        .map(|f| graph.imports[*f].keys().map(|to| number[to]).collect())
        .collect();
    let mut backward = vec![Vec::new(); files.len()];
    for (from, targets) in forward.iter().enumerate() {
        for &to in targets {
            backward[to].push(from);
        }
    }
    let mut found = Vec::new();
    let mut placed: BTreeSet<usize> = BTreeSet::new();
    for file in 0..files.len() {
        if placed.contains(&file) {
            continue;
        }
        let before = reachable(file, &backward);
        let circle: Vec<usize> = reachable(file, &forward)
            .intersection(&before)
            .copied()
            .collect();
        placed.extend(&circle);
        if circle.len() > 1 {
            found.push(
                circle
                    .into_iter()
                    .map(|i| files[i].clone())
                    .collect::<Vec<_>>(),
            );
        }
    }
    found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
    found
}

fn reachable(from: usize, edges: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([from]);
    let mut open = vec![from];
    while let Some(at) = open.pop() {
        for &next in &edges[at] {
            if found.insert(next) {
                open.push(next);
            }
        }
    }
    found
}
