//! Each adaptor as the code that uses its trait sees it, over real memory.

mod ax;
mod chance;
mod global_frames;
mod heap;
mod misuse;
mod report;
mod room;
#[path = "../../../../checks/types.rs"]
mod types;
mod variance;
mod x86_64;
