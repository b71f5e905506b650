//! The internal names of tables of other programs.

/// Internal name of a table of the kernel's `slabinfo` tool.
pub(in crate::snapshots) const SLAB_TOOL: &str = "slabinfo of the kernel's tools";
/// Internal name of what `slabtop` prints.
pub(in crate::snapshots) const SLABTOP: &str = "slabtop";
/// Internal name of the free lists as the debugger `crash` prints them.
pub(in crate::snapshots) const CRASH: &str = "kmem -f of crash";
/// Internal name of a table with a row a zone and a column an order, as drgn's `buddyinfo` prints it.
pub(in crate::snapshots) const TABLE: &str = "a table of free blocks by zone and order";
/// Internal name of nodes, zones and orders as nested keys, as hotsos writes them.
pub(in crate::snapshots) const NESTED: &str = "free blocks as nested keys";
/// Internal name of rows of free blocks without their zones.
pub(in crate::snapshots) const COUNTS: &str = "a row of free blocks without a zone";
/// Internal name of metrics in the text format of Prometheus.
pub(in crate::snapshots) const METRICS: &str = "metrics of an exporter";
/// Internal name of sysfs' `meminfo`, `vmstat` and `numastat` of nodes.
pub(in crate::snapshots) const NODES: &str = "files of sysfs' nodes";

/// A file of a snapshot: its name and its text.
pub(in crate::snapshots) type Named = (String, String);
