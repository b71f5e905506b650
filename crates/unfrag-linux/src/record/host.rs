//! The recorded host.

use crate::recording::Meta;

/// What is known of this host: kernel, page size, CPUs, machine.
pub(super) fn meta() -> Meta {
    let uname = rustix::system::uname();
    Meta {
        kernel_release: uname.release().to_string_lossy().into_owned(),
        page_size: rustix::param::page_size() as u32,
        cpus: std::thread::available_parallelism().map_or(1, |n| n.get() as u32),
        clock: "mono".into(),
        facts: [(
            "machine".to_owned(),
            uname.machine().to_string_lossy().into_owned(),
        )]
        .into(),
        ..Meta::default()
    }
}
