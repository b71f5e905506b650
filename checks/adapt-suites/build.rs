//! Prepares the suites of `frame-alloc`: its tests, with our pool in the place of its allocators.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-check-cfg=cfg(audit)");
    let tests = sources("frame-alloc").join("tests");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::create_dir_all(out.join("common")).expect("a folder");
    copy(&tests, &out, "common/mod.rs", |text| text);

    // Each allocator has a call of the macro at the end, which names a constructor.
    copy(&tests, &out, "conformance.rs", |text| {
        let calls = text
            .find("\nconformance_suite!(")
            .expect("the suite's calls of its macro");
        text[..calls].to_owned() + "\nconformance_suite!(unfrag, crate::pool);\n"
    });

    // The tests of the occupancy oracle; those of wrappers in the crate are left out.
    copy(&tests, &out, "property.rs", |text| {
        let first = text.find("#[test]\nfn summary_buddy_matches_occupancy_oracle()");
        let last = text.find("fn summary_buddy_matches_occupancy_oracle_holed()");
        let (first, last) = first.zip(last).expect("the tests of one allocator");
        let end = text[last..].find("\n}\n").expect("the end of a test");
        let others = last + end + 3;
        let allocators = [
            "SummaryBuddyAllocator::<ORDERS, TestProvenance>::new",
            "SummaryBuddyAllocator::<ORDERS, HhdmProvenance>::new",
        ];
        let (before, own) = (&text[..first], &text[first..others]);
        let mut own = own.to_owned();
        for allocator in allocators {
            assert!(own.contains(allocator), "{allocator} is made somewhere");
            own = own.replace(allocator, "crate::pool");
        }
        before.to_owned() + &own
    });
}

/// Copies a file, changed, without what may only stand at the start of a file.
fn copy(from: &Path, to: &Path, name: &str, change: impl FnOnce(String) -> String) {
    let text = fs::read_to_string(from.join(name));
    let text = text.unwrap_or_else(|e| panic!("{}: {e}", from.join(name).display()));
    let inner = |line: &&str| !line.starts_with("//!") && !line.starts_with("#![");
    let text = change(text.lines().filter(inner).collect::<Vec<_>>().join("\n"));
    fs::write(to.join(name), text).expect("a writable folder");
}

/// Where cargo keeps the sources of a package.
fn sources(name: &str) -> PathBuf {
    let cargo = env::var_os("CARGO").expect("cargo sets it");
    let said = Command::new(cargo)
        .args(["metadata", "--format-version=1", "--locked"])
        .args([
            "--filter-platform",
            &env::var("TARGET").expect("cargo sets it"),
        ])
        .output()
        .expect("cargo runs");
    assert!(
        said.status.success(),
        "cargo metadata: {}",
        String::from_utf8_lossy(&said.stderr)
    );
    let metadata: serde_json::Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let packages = metadata["packages"].as_array().expect("packages");
    let package = packages
        .iter()
        .find(|p| p["name"] == name)
        .expect("a dependency");
    let manifest = package["manifest_path"].as_str().expect("a path");
    Path::new(manifest).parent().expect("a folder").to_owned()
}
