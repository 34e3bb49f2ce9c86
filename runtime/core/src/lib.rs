//! The heart of kvctl: a deterministic state machine that decides where the pages of a KV cache live.
//!
//! Commands go in, actions and rows of the log come out; somebody else moves the bytes. No I/O, no clock, no
//! tensor, no random number. Read in this order: `records` (what there is), `apply` (what a row does to it),
//! `core` (how decisions become rows), then the commands: `sessions`, `find`, `locks`, `compute`, `moves`,
//! `leases`, `hints`.

pub mod apply;
pub mod arena;
pub mod bitmap;
pub mod check;
pub mod columns;
pub mod command;
pub mod compute;
pub mod core;
pub mod digest;
pub mod find;
pub mod ghosts;
pub mod hints;
pub mod keys;
pub mod leases;
pub mod locks;
pub mod log;
pub mod members;
pub mod moves;
pub mod names;
pub mod order;
mod python;
pub mod records;
pub mod refusal;
pub mod replica;
pub mod report;
pub mod row;
pub mod runs;
pub mod sessions;
pub mod state;
pub mod table;
