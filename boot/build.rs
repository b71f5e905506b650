//! The kernel's place in memory: `kernel.ld`.

fn main() {
    println!("cargo::rerun-if-changed=kernel.ld");
    let here = std::env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    println!("cargo::rustc-link-arg-bins=-T{here}/kernel.ld");
}
