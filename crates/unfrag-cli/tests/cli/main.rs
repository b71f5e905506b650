//! The tests of the command `unfrag`, as one program, so that it is linked once.

mod account;
#[cfg(feature = "exporter")]
mod alerts;
mod answers;
mod book;
mod book_inputs;
mod book_json;
mod book_numbers;
mod book_words;
mod bounds;
mod docs;
mod doctor_output;
mod exit_status;
mod explain;
#[cfg(feature = "exporter")]
mod exporter;
#[cfg(feature = "exporter")]
mod exporter_attack;
mod frames;
mod gate;
mod hostile_text;
mod inspect_output;
mod long_replays;
mod long_traces;
#[cfg(not(feature = "exporter"))]
mod no_exporter;
mod node_exporter;
mod one_number;
mod outputs;
#[cfg(feature = "pages")]
mod pages;
mod paste;
mod profile_output;
mod record;
mod redact;
mod replay_output;
mod screens;
mod segments;
#[cfg(feature = "exporter")]
mod shipped;
mod simulate_output;
mod simulate_refuses;
mod slab_output;
mod summary;
mod support;
mod terabyte;
mod top;
mod windows;
