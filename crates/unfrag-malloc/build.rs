//! Has the shared object start before all others of a program, so that its functions of a fork are registered before theirs, which
//! may allocate.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-z,initfirst");
    }
}
