//! NUMA nodes of the system, from sysfs.

use std::fs;
use std::sync::LazyLock;

/// Nodes that have memory, and the node of each CPU.
struct Topology {
    nodes: Vec<usize>,
    of_cpu: Vec<usize>,
}

static TOPOLOGY: LazyLock<Topology> = LazyLock::new(|| {
    let read = |file: &str| fs::read_to_string(file).ok();
    let dir = "/sys/devices/system/node";
    let nodes = read(&format!("{dir}/has_memory")).map_or(vec![0], |s| list(&s));
    let mut of_cpu = Vec::new();
    for &node in &nodes {
        let cpus = read(&format!("{dir}/node{node}/cpulist")).map_or(vec![], |s| list(&s));
        for cpu in cpus {
            if of_cpu.len() <= cpu {
                of_cpu.resize(cpu + 1, node);
            }
            of_cpu[cpu] = node;
        }
    }
    Topology { nodes, of_cpu }
});

/// A list of the kernel, such as `0-3,8`.
fn list(text: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        Some(from.trim().parse().ok()?..=to.trim().parse().ok()?)
    };
    text.split(',').filter_map(range).flatten().collect()
}

/// Nodes that have memory.
pub(crate) fn nodes() -> &'static [usize] {
    &TOPOLOGY.nodes
}

/// The node of the CPU that the caller runs on.
pub(crate) fn node_of_this_cpu() -> usize {
    let cpu = rustix::thread::sched_getcpu();
    TOPOLOGY.of_cpu.get(cpu).copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_the_kernel_is_read() {
        assert_eq!(list("0-2,5\n"), [0, 1, 2, 5]);
        assert_eq!(list("0\n"), [0]);
        assert_eq!(list("\n"), [] as [usize; 0]);
    }
}
