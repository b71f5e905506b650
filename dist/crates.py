"""The crates that a package of this workspace is built from.

Invariant: a crate is in the answer if and only if a build of that package for that target compiles it: `cargo tree` says
which, as `cargo metadata` has features of the whole workspace at once. What is linked into the result is told apart from
what only runs while it is built.
"""

import json
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What `dist/build` builds.
SHIPPED = ("-p", "unfrag-cli", "--features", "pages")


def cargo(*words, manifest=ROOT / "Cargo.toml"):
    command = ["cargo", *words, "--locked", "--manifest-path", str(manifest)]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


class Crates:
    def __init__(self, target, manifest=ROOT / "Cargo.toml"):
        self.target, self.manifest = target, manifest
        said = json.loads(cargo("metadata", "--format-version", "1", "--all-features", "--filter-platform", target,
                                manifest=manifest))
        self.own = set(said["workspace_members"])
        self._by_id = {p["id"]: p for p in said["packages"]}
        self._by_name = {(p["name"], p["version"]): p for p in said["packages"]}
        self._nodes = {n["id"]: n for n in said["resolve"]["nodes"]}

    def _tree(self, edges, *of):
        lines = cargo("tree", "--edges", edges, "--target", self.target, "--prefix", "none", "--format", "{p}", *of,
                      manifest=self.manifest)
        # Such as: serde_derive v1.0.229 (proc-macro)
        found = {tuple(line.split()[:2]) for line in lines.splitlines() if line.strip()}
        crates = [self._by_name[name, version.removeprefix("v")] for name, version in found]
        return sorted(crates, key=lambda p: (p["name"], numbers(p["version"])))

    def built(self, *of):
        """All that is compiled: ordinary dependencies, those of build scripts, procedural macros. `of` is such as
        `-p unfrag-cli`, and the workspace without it."""
        return self._tree("normal,build", *(of or ("--workspace",)))

    def linked(self, *of):
        """What is linked: neither build scripts nor procedural macros, nor what only these need."""
        return self._tree("normal,no-proc-macro", *(of or ("--workspace",)))

    def needs(self, crate, of):
        """The direct dependencies of a crate among others, for a build."""
        ids = {p["id"] for p in of}
        needs = (d for d in self._nodes[crate["id"]]["deps"] if any(k["kind"] != "dev" for k in d["dep_kinds"]))
        return [self._by_id[d["pkg"]] for d in needs if d["pkg"] in ids]


def numbers(version):
    """A version as something that sorts by its numbers."""
    return [int(n) for n in version.split("+")[0].split("-")[0].split(".")]
