"""The numbers that are compared, by the names that `unfrag replay --json` has for them.

Each is what a whole host shows: totals between the first and the last snapshot, levels of all zones together.
"""

# Name, what it is in words, the scale of its errors, and the smallest difference that is one.
QUANTITIES = [
    ("thp_fault_alloc", "huge pages for faults", "count", 5),
    ("thp_fault_fallback", "faults refused a huge page", "count", 5),
    ("fallbacks", "fallbacks to another type", "count", 5),
    ("allocstall", "stalls in direct reclaim", "count", 5),
    ("compact_stall", "stalls in compaction", "count", 5),
    ("compact_success", "successful compactions", "count", 5),
    ("compact_fail", "compactions in vain", "count", 5),
    ("pgmigrate_success", "pages moved", "count", 256),
    ("pgsteal_kswapd", "pages freed by kswapd", "count", 256),
    ("pgsteal_direct", "pages freed by direct reclaim", "count", 256),
    ("free_pages_end", "free pages at the end", "count", 256),
    ("free_pages_mean", "free pages over time", "count", 256),
    ("free_huge_blocks_end", "free huge blocks at the end", "count", 2),
    ("free_huge_blocks_mean", "free huge blocks over time", "count", 2),
    ("unusable_3_end", "unusable index, order 3, at the end", "index", 0.02),
    ("unusable_3_mean", "unusable index, order 3, over time", "index", 0.02),
    ("unusable_huge_end", "unusable index of huge pages at the end", "index", 0.02),
    ("unusable_huge_mean", "unusable index of huge pages over time", "index", 0.02),
    ("unmovable_blocks_end", "unmovable pageblocks at the end", "count", 2),
]
NAMES = [q[0] for q in QUANTITIES]
WORDS = {q[0]: q[1] for q in QUANTITIES}
SCALE = {q[0]: q[2] for q in QUANTITIES}
LEAST = {q[0]: q[3] for q in QUANTITIES}
HUGE_ORDER = 9


def level(zones):
    """Levels of a host, from the zones of one snapshot."""
    orders = max(len(z["free_blocks"]) for z in zones)
    blocks = [sum(z["free_blocks"][o] for z in zones if o < len(z["free_blocks"])) for o in range(orders)]
    free = sum(n << o for o, n in enumerate(blocks))

    def unusable(order):
        return None if not free else sum(n << o for o, n in enumerate(blocks) if o < order) / free

    return {
        "free_pages": sum(z["free_pages"] for z in zones),
        "free_huge_blocks": sum(z["free_huge_blocks"] for z in zones),
        "unusable_3": unusable(3),
        "unusable_huge": unusable(HUGE_ORDER),
        "unmovable_blocks": sum((z["pageblocks"] or {}).get("Unmovable", 0) for z in zones),
    }


def levels(samples):
    """Levels at the end of a replay or a recording, and their means over time."""
    all_of_them = [level(s["zones"]) for s in samples]
    found = {}
    for name in NAMES:
        base, _, when = name.rpartition("_")
        if when == "end":
            found[name] = all_of_them[-1][base]
        elif when == "mean":
            known = [one[base] for one in all_of_them if one[base] is not None]
            found[name] = sum(known) / len(known) if known else None
    return found


def counters(before, after):
    """Totals of a host, from two copies of vmstat."""
    def change(name):
        if name == "allocstall":
            return sum(after[k] - before[k] for k in after if k.startswith("allocstall"))
        return after[name] - before[name] if name in after else None

    return {name: change(name) for name in NAMES if change(name) is not None}
