//! Emptying blocks, whatever for: what each goal reaches and what it costs, against an oracle; what stays, and how often it is
//! asked for; wrong calls; and that nothing is lost wherever it ends.
//!
//! - `goals`: what is reached, at what cost. `stays`: frames that nobody moves. `ends`: dropped at each step, and in the middle
//!   of what others do. `wrong`: wrong calls.

#[path = "../../../../checks/chance.rs"]
mod chance;
mod ends;
mod goals;
mod stays;
#[path = "../support/mod.rs"]
mod support;
mod world;
mod wrong;
