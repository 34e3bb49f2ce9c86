//! The whole state at one sequence number, cut in slices while commands go on. A keyframe is a list of parts: first
//! what the engine is and what must come out, then slices of records. Whoever has all parts can fold what comes
//! after (`rebuild`).
//!
//! Integers are little-endian, text and lists length-prefixed (`wire`). First part: `MAGIC`, `Header`, and the XXH3-64 of both. Others:
//! the part's number (u32), then stretches to the end of the part, each a section (u8), a count (u32) and so many
//! items, by their numbers from 0 on, used or not. Sections are in the order of `Section`. Namespaces, nodes and slots
//! begin with their `Life` (u32): numbers that are free say how often they were used, since a record's hash does;
//! records with keys of their own with whether they are there (u8), and the key. What follows from records (bitmaps,
//! copies by node and tier, sums) is not in it. The same state in slices of the same size is the same bytes.

mod encoding;
mod rebuild;

use xxhash_rust::xxh3::xxh3_64;

use crate::arena::Life;
use crate::core::Core;
use crate::refusal::{Answer, Refusal};
use crate::replica::Replica;
use crate::state::State;
use crate::wire::Wire;
use encoding::{Header, put_slot};

/// The last byte is the version.
const MAGIC: &[u8; 8] = b"kvkeyf\x00\x02";

/// What a record takes at most in the usual case. A slice of so many bytes for each record ends early, so that a
/// few records with long lists cost no more than many short ones.
const RECORD_BYTES: usize = 160;

const SECTIONS: usize = 8;

#[derive(Clone, Copy, Debug, PartialEq)]
#[repr(u8)]
enum Section {
    Namespaces,
    Nodes,
    Slots,
    Spots,
    Sessions,
    Receipts,
    Leases,
    Ops,
}

impl Section {
    const ALL: [Section; SECTIONS] = [
        Section::Namespaces,
        Section::Nodes,
        Section::Slots,
        Section::Spots,
        Section::Sessions,
        Section::Receipts,
        Section::Leases,
        Section::Ops,
    ];
}

/// A keyframe that is being cut.
#[derive(Clone, Debug, Default)]
pub struct Keyframe {
    /// Until it has been handed out.
    header: Vec<u8>,
    /// Sections that are complete, and parts that have been handed out.
    sections: usize,
    parts: u32,
    /// Records that the last slice looked at.
    touched: usize,
}

impl State {
    /// What there is now is what the next slices say. A keyframe that is under way is given up.
    pub(crate) fn keyframe_begin(&mut self, engine: &str, epoch: &str) -> u64 {
        let counts = [
            self.namespaces.freeze(),
            self.nodes.freeze(),
            self.slots.freeze(),
            self.spots.freeze(),
            self.sessions.freeze(),
            self.receipts.freeze(),
            self.leases.freeze(),
            self.ops.freeze(),
        ];
        let mut header = MAGIC.to_vec();
        Header::of(self, engine, epoch, counts).put(&mut header);
        // The records have their hash; what else is said has this one.
        xxh3_64(&header).put(&mut header);
        self.keyframe = Some(Keyframe { header, ..Keyframe::default() });
        self.seq
    }

    /// The next part; None when there is no more, or none was begun. Looks at no more than `most` records.
    pub(crate) fn keyframe_slice(&mut self, most: usize) -> Option<Vec<u8>> {
        let mut keyframe = self.keyframe.take()?;
        let part = if keyframe.parts == 0 {
            Some(std::mem::take(&mut keyframe.header))
        } else {
            self.cut(&mut keyframe, most.max(1))
        };
        keyframe.parts += 1;
        if part.is_some() {
            self.keyframe = Some(keyframe);
        }
        part
    }

    /// Records that the last slice looked at.
    pub fn keyframe_touched(&self) -> usize {
        self.keyframe.as_ref().map_or(0, |keyframe| keyframe.touched)
    }

    fn cut(&mut self, keyframe: &mut Keyframe, most: usize) -> Option<Vec<u8>> {
        if keyframe.sections == SECTIONS {
            return None;
        }
        let (mut out, mut left) = (Vec::new(), most);
        let enough = most.saturating_mul(RECORD_BYTES);
        keyframe.parts.put(&mut out);
        while let Some(section) = Section::ALL.get(keyframe.sections) {
            let room = if out.len() < enough { left } else { 0 };
            let (looked, all) = self.cut_section(*section, room, enough, &mut out);
            left -= looked;
            if !all {
                break;
            }
            keyframe.sections += 1;
        }
        keyframe.touched = most - left;
        debug_assert!(keyframe.touched <= most, "a slice of {most} records looked at {}", keyframe.touched);
        Some(out)
    }

    /// One stretch. Returns how many records it looked at, and whether the section is complete.
    fn cut_section(
        &mut self,
        section: Section,
        most: usize,
        enough: usize,
        out: &mut Vec<u8>,
    ) -> (usize, bool) {
        let at = out.len();
        (section as u8).put(out);
        0u32.put(out);
        let mut count = 0u32;
        let mut counted = |out: &mut Vec<u8>| {
            count += 1;
            out.len() < enough
        };
        macro_rules! numbered {
            ($store:ident, $put:expr) => {
                self.$store.read_frozen(most, |life: Life, record| {
                    life.0.put(out);
                    if let Some(record) = record {
                        $put(record, out);
                    }
                    counted(out)
                })
            };
        }
        macro_rules! keyed {
            ($store:ident) => {
                self.$store.read_frozen(most, |entry| {
                    entry.is_some().put(out);
                    if let Some((key, record)) = entry {
                        key.put(out);
                        record.put(out);
                    }
                    counted(out)
                })
            };
        }
        let done = match section {
            Section::Namespaces => numbered!(namespaces, Wire::put),
            Section::Nodes => numbered!(nodes, Wire::put),
            Section::Slots => numbered!(slots, put_slot),
            Section::Spots => keyed!(spots),
            Section::Sessions => keyed!(sessions),
            Section::Receipts => keyed!(receipts),
            Section::Leases => keyed!(leases),
            Section::Ops => keyed!(ops),
        };
        if count == 0 {
            out.truncate(at);
        } else {
            out[at + 1..at + 5].copy_from_slice(&count.to_le_bytes());
        }
        done
    }
}

impl Core {
    /// Begin a keyframe of the state as of the row whose number is returned.
    pub fn keyframe_begin(&mut self) -> u64 {
        let origin = self.log.origin.clone();
        self.state.keyframe_begin(&origin.engine, &origin.epoch)
    }

    /// Its next part, of at most so many records; None after the last.
    pub fn keyframe_slice(&mut self, max_records: usize) -> Option<Vec<u8>> {
        self.state.keyframe_slice(max_records)
    }
}

impl Replica {
    /// Begin a keyframe of what has been folded. Refused by a replica that has stopped, or has nothing yet.
    pub fn keyframe_begin(&mut self) -> Answer<u64> {
        if let Some(why) = &self.broken {
            return Err(Refusal::Log(why.clone()));
        }
        if self.state.seq == 0 {
            return Err(Refusal::Log("a keyframe of nothing: no message has been folded".into()));
        }
        Ok(self.state.keyframe_begin(&self.engine, &self.epoch))
    }

    pub fn keyframe_slice(&mut self, max_records: usize) -> Option<Vec<u8>> {
        self.state.keyframe_slice(max_records)
    }
}
