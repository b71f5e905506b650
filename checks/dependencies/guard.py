"""Holds what cargo resolves against `deny.toml`: licences, versions, sources, and how many crates the command has.

Invariant: a crate that is compiled for one of the targets and breaks a rule is an error that names it; what is listed in
`deny.toml` and no longer needed is an error too, so that the list stays short.
"""

import re
import sys
import tomllib
from collections import defaultdict
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "dist"))
from crates import Crates  # noqa: E402

# Crates that a build of the command compiles, by its features: those of the workspace, build scripts and procedural
# macros among them.
MOST = {"with the exporter": ((), 121), "without": (("--no-default-features",), 113)}

WORD = re.compile(r"\(|\)|\bAND\b|\bOR\b|\bWITH\b|[\w.+-]+")


def allowed(expression, names, used):
    """Whether an SPDX expression can be met by allowed licences; notes which."""
    words = WORD.findall(expression.replace("/", " OR "))

    def any_of():
        met = all_of()
        while words and words[0] == "OR":
            words.pop(0)
            met = all_of() or met
        return met

    def all_of():
        met = one()
        while words and words[0] == "AND":
            words.pop(0)
            met = one() and met
        return met

    def one():
        word = words.pop(0)
        if word == "(":
            met = any_of()
            words.pop(0)
            return met
        if words and words[0] == "WITH":
            word = f"{word} WITH {words[1]}"
            del words[:2]
        if word in names:
            used.add(word)
        return word in names

    return any_of()


def matches(spec, crate):
    name, _, version = spec.partition("@")
    return crate["name"] == name and (not version or (crate["version"] + ".").startswith(version + "."))


def check(rules, wrong):
    names, used, skipped = set(rules["licenses"]["allow"]), set(), set()
    exceptions = {e["crate"]: set(e["allow"]) for e in rules["licenses"].get("exceptions", [])}
    of_exceptions = set()
    for target in rules["graph"]["targets"]:
        crates = Crates(target)
        versions = defaultdict(list)
        built = crates.built()
        for crate in built:
            name = f"{crate['name']} {crate['version']}"
            versions[crate["name"]].append(crate)
            for banned in rules["bans"].get("deny", []):
                if not matches(banned["crate"], crate):
                    continue
                users = {c["name"] for c in built if crates.needs(c, [crate])}
                if not users <= set(banned.get("wrappers", [])):
                    wrong.add(f"{name}: {banned['reason']}")
            if crate["id"] in crates.own:
                continue
            more = exceptions.get(crate["name"], set())
            if more:
                of_exceptions.add(crate["name"])
            if not allowed(crate["license"] or "none", names | more, used):
                wrong.add(f"{name} has the licence {crate['license']}, which deny.toml does not allow")
            # The one registry that cargo has by itself.
            if not (crate["source"] or "").endswith("/crates.io-index"):
                wrong.add(f"{name} comes from {crate['source'] or 'a path outside of the workspace'}")
        for same in versions.values():
            skips = [s["crate"] for s in rules["bans"]["skip"] if any(matches(s["crate"], c) for c in same)]
            if len(same) > 1:
                skipped.update(skips)
            left = [c for c in same if not any(matches(s, c) for s in skips)]
            if len(left) > 1 or (len(same) > 1 and not skips):
                wrong.add(f"{same[0]['name']} is there as " + " and ".join(c["version"] for c in same)
                          + ": bring its dependents together, or say in deny.toml why it must be twice")
    for skip in rules["bans"]["skip"]:
        if skip["crate"] not in skipped:
            wrong.add(f"deny.toml allows {skip['crate']} to be there twice, and it is not")
    for crate in exceptions.keys() - of_exceptions:
        wrong.add(f"deny.toml has an exception for {crate}, which is not there")
    for name in names - used:
        wrong.add(f"deny.toml allows the licence {name}, and no crate has it")


def count(rules, wrong, list_them):
    crates = Crates(rules["graph"]["targets"][0])
    for what, (flags, most) in MOST.items():
        built = crates.built("-p", "unfrag-cli", *flags)
        linked = crates.linked("-p", "unfrag-cli", *flags)
        own = sum(c["id"] in crates.own for c in built)
        print(f"crates of the command, {what}: {len(built)} (at most {most}), of these {own} of the workspace, "
              f"{len(linked)} linked")
        if len(built) > most:
            wrong.add(f"the command {what} has {len(built)} crates, and may have {most}")
        if list_them and not flags:
            for crate in built:
                users = [c["name"] for c in built if crate in crates.needs(c, built)]
                print(f"  {crate['name']} {crate['version']}: {', '.join(users) or 'the command'}")


def main():
    rules = tomllib.loads((ROOT / "deny.toml").read_text())
    wrong = set()
    check(rules, wrong)
    count(rules, wrong, "--list" in sys.argv[1:])
    for line in sorted(wrong):
        print(f"dependencies: {line}", file=sys.stderr)
    if wrong:
        sys.exit(1)
    print("dependencies: licences, versions and sources: ok")


main()
