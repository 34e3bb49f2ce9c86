//! The heart of kvctl: a deterministic state machine that decides where the pages of a KV cache live.
//!
//! Commands go in, actions and rows of the log come out; somebody else moves the bytes. No I/O, no clock, no
//! tensor, no random number. Read in this order: `families` (how kinds of state differ), `records`, `slot` and `slots`
//! (what there is), `apply` (what a row does to it), `core` and `evict` (how decisions become rows), then the commands:
//! `namespaces`, `sessions`, `find`, `miss`, `held`, `locks`, `reserve`, `commit`, `observe`, `moves`, `restore`,
//! `complete`, `leases`, `hints`; and what is kept of them: `log`, `journal`, `keyframe`.

pub mod apply;
pub mod arena;
pub mod bitmap;
pub mod blocks;
pub mod check;
pub mod children;
pub mod chunks;
pub mod columns;
pub mod command;
pub mod commit;
pub mod complete;
pub mod config;
pub mod core;
pub mod digest;
pub mod evict;
pub mod families;
pub mod faults;
pub mod find;
pub mod ghosts;
mod guard;
pub mod held;
pub mod hints;
pub mod journal;
pub mod keyframe;
pub mod keys;
pub mod leases;
pub mod locks;
pub mod log;
pub mod members;
pub mod miss;
pub mod mixer;
pub mod moves;
pub mod names;
pub mod namespaces;
pub mod observe;
pub mod order;
pub mod ordered;
pub mod pieces;
pub mod policy;
pub mod presence;
mod python;
pub mod queue;
pub mod records;
pub mod refusal;
pub mod replica;
pub mod report;
pub mod reserve;
pub mod restore;
pub mod row;
pub mod runs;
pub mod sessions;
pub mod slot;
pub mod slots;
pub mod snapshot;
mod standings;
pub mod state;
pub mod strip;
pub mod table;
mod users;
pub mod wire;
