//! A state from a keyframe. The bytes may be anybody's: what does not hold together is refused.

use std::cmp::Reverse;

use super::encoding::{ComponentHeader, Header, get_slot};
use super::{MAGIC, SECTIONS, Section};
use crate::arena::{Life, Record};
use crate::names::{Kind, Phase, Reason, Tier, name};
use crate::records::{FULL, NONE};
use crate::refusal::{Answer, Refusal};
use crate::replica::Replica;
use crate::row::Row;
use crate::state::{Applied, State};
use crate::table::{Key, Table};
use crate::wire::Wire;
use xxhash_rust::xxh3::xxh3_64;

impl Replica {
    /// A replica that goes on where a keyframe was begun. `parts`: all of them, in order. Refused when they are
    /// not a keyframe, are of another version, are not all there, or do not give the state that they promise.
    pub fn from_keyframe(parts: &[impl AsRef<[u8]>]) -> Answer<Replica> {
        rebuild(parts).map_err(|why| Refusal::Log(format!("keyframe: {why}")))
    }
}

fn rebuild(parts: &[impl AsRef<[u8]>]) -> Result<Replica, String> {
    let (first, slices) = parts.split_first().ok_or("no parts")?;
    let header = read_header(first.as_ref())?;
    let mut state = State::default();
    header.configure(&mut state)?;
    let mut counts = [0; SECTIONS];
    for (i, slice) in slices.iter().enumerate() {
        let mut bytes = slice.as_ref();
        let number = u32::get(&mut bytes);
        if number != Some(i as u32 + 1) {
            return Err(format!("part {} says that it is number {number:?}", i + 1));
        }
        state.read_slice(&mut bytes, &mut counts).map_err(|why| format!("part {}: {why}", i + 1))?;
    }
    if header.counts != counts {
        return Err(format!("{:?} records by section, {counts:?} came", header.counts));
    }
    (state.seq, state.clock) = (header.seq, header.clock);
    state.recount()?;
    let hashes = (state.hash(), state.observed_hash());
    if hashes != (header.state_hash, header.observed_hash) {
        return Err(format!("the state's hash is {:032x}, promised {:032x}", hashes.0, header.state_hash));
    }
    state.check()?;
    state.touched.clear();
    state.touched_spots.clear();
    Ok(Replica { state, engine: header.engine, epoch: header.epoch, broken: None })
}

fn read_header(mut bytes: &[u8]) -> Result<Header, String> {
    let whole = bytes;
    let (family, version) = MAGIC.split_at(MAGIC.len() - 1);
    let rest = bytes.strip_prefix(family).ok_or("the first part does not begin as one")?;
    if !rest.starts_with(version) {
        return Err(format!("version {:?}; this one reads version {}", rest.first(), version[0]));
    }
    bytes = &rest[1..];
    let header = Header::get(&mut bytes).ok_or("the first part cannot be read")?;
    let said = &whole[..whole.len() - bytes.len()];
    match u64::get(&mut bytes) {
        Some(hash) if hash == xxh3_64(said) && bytes.is_empty() => Ok(header),
        _ => Err("the first part is damaged".into()),
    }
}

impl Header {
    /// In rows, as an engine tells it.
    fn configure(&self, state: &mut State) -> Applied {
        let mut engine = Row::new(Kind::Config, Phase::Engine);
        engine.tokens = Some(self.page_size.into());
        let rows = self.components.iter().map(ComponentHeader::rows).collect::<Result<Vec<_>, String>>()?;
        for mut row in std::iter::once(engine).chain(rows.into_iter().flatten()) {
            row.seq = state.seq + 1;
            state.apply(&row)?;
        }
        Ok(())
    }
}

impl ComponentHeader {
    fn rows(&self) -> Result<Vec<Row>, String> {
        let known = name(&self.name).ok_or("more names of components than can be kept")?;
        let mut row = Row::new(Kind::Config, Phase::Component);
        (row.component, row.policy) = (Some(known), Some(self.family.name()));
        (row.tokens, row.bytes) = (Some(self.number.into()), Some(self.page_bytes));
        row.detail = self.follows.as_deref().map(Into::into);
        let pools = Tier::ALL.iter().map(|tier| {
            let mut pool = Row::new(Kind::Config, Phase::Pool);
            (pool.component, pool.tier_to) = (Some(known), Some(*tier));
            pool.pages = Some(self.pages[*tier as usize]);
            pool.reason = if self.observed & tier.bit() != 0 { Reason::Observed } else { Reason::None };
            pool
        });
        Ok(std::iter::once(row).chain(pools).collect())
    }
}

impl State {
    fn read_slice(&mut self, bytes: &mut &[u8], counts: &mut [u32; SECTIONS]) -> Applied {
        while let Some(section) = u8::get(bytes) {
            let section =
                *Section::ALL.get(section as usize).ok_or_else(|| format!("unknown section {section}"))?;
            let unread = |at: u32| format!("item {at} of {section:?} cannot be read, or cannot be there");
            for _ in 0..u32::get(bytes).ok_or("a stretch without a count")? {
                let at = &mut counts[section as usize];
                self.read_item(section, *at, bytes).ok_or_else(|| unread(*at))?;
                *at += 1;
            }
        }
        Ok(())
    }

    /// `at`: its number.
    fn read_item(&mut self, section: Section, at: u32, bytes: &mut &[u8]) -> Option<()> {
        match section {
            Section::Namespaces => {
                let (life, record) = numbered(bytes, Wire::get)?;
                self.namespaces.restore(at, life, record)
            }
            Section::Nodes => {
                let (life, record) = numbered(bytes, Wire::get)?;
                self.nodes.restore(at, life, record)
            }
            Section::Slots => {
                let (life, record) = numbered(bytes, get_slot)?;
                self.slots.restore(at, life, record)
            }
            Section::Spots => keyed(&mut self.spots, at, bytes)?,
            Section::Sessions => keyed(&mut self.sessions, at, bytes)?,
            Section::Receipts => keyed(&mut self.receipts, at, bytes)?,
            Section::Leases => keyed(&mut self.leases, at, bytes)?,
            Section::Ops => keyed(&mut self.ops, at, bytes)?,
        }
        .then_some(())
    }

    /// Everything that follows from the records. `check` proves the records themselves.
    fn recount(&mut self) -> Applied {
        self.recount_slots()?;
        // Children before parents: what is below a node decides what its parent counts.
        let mut order: Vec<(u32, bool, u32)> = Vec::new();
        for (id, node) in self.nodes.iter() {
            let end = node.start.checked_add(node.pages).ok_or_else(|| format!("node {id} is too long"))?;
            if node.parent != NONE && (node.pages == 0 || node.parts.len() != self.components.len()) {
                return Err(format!("node {id} ends at {end} with {} parts", node.parts.len()));
            }
            order.push((node.start, node.parent != NONE, id));
        }
        order.sort_unstable_by_key(|item| Reverse(*item));
        for (_, _, id) in order {
            let node = self.node(id)?;
            let (pages, parent, leases) = (node.pages, node.parent, node.leases);
            let below: Vec<[bool; 3]> =
                node.parts.iter().map(|part| std::array::from_fn(|t| part.has_below(Tier::ALL[t]))).collect();
            if let Some(pools) = self.pools.get_mut(FULL) {
                let leased = (0..3).filter(|t| leases[*t] > 0);
                leased.for_each(|t| pools[t].leased = pools[t].leased.wrapping_add(pages));
            }
            if parent != NONE {
                self.count_in_node(parent, |n| {
                    n.kids += 1;
                    for (part, below) in n.parts.iter_mut().zip(below) {
                        (0..3).for_each(|t| part.kids_with[t] += below[t] as u32);
                    }
                })?;
            }
        }
        Ok(())
    }

    fn recount_slots(&mut self) -> Applied {
        for (id, slot) in self.slots.iter() {
            let c = slot.component as usize;
            let pools = self.pools.get_mut(c).ok_or_else(|| format!("slot {id} is of no component"))?;
            for tier in Tier::ALL.iter().filter(|tier| !slot.lacks(**tier)) {
                let (pool, page) = (&mut pools[*tier as usize], slot.page(*tier));
                pool.fenced += slot.awaits(*tier) as u32;
                if !pool.observed && !pool.pages.take_one(page) {
                    return Err(format!("page {page} of {} is taken twice, or out of range", tier.name()));
                }
            }
            if slot.node != NONE {
                let counted = self.nodes.update_counts(slot.node, |node| {
                    if let Some(part) = node.parts.get_mut(c) {
                        part.bad += slot.bad.count_ones();
                        (0..3).for_each(|t| part.copies[t] += (slot.here >> t & 1) as u32);
                    }
                });
                counted.ok_or_else(|| format!("slot {id} is in node {}, which does not exist", slot.node))?;
            }
        }
        Ok(())
    }
}

fn numbered<T>(bytes: &mut &[u8], get: impl FnOnce(&mut &[u8]) -> Option<T>) -> Option<(Life, Option<T>)> {
    // A number lives less than 2^30 times; more would overflow when it is given out again.
    let life = Some(Life(u32::get(bytes)?)).filter(|life| life.0 >> 31 == 0)?;
    if life.is_on() { Some((life, Some(get(bytes)?))) } else { Some((life, None)) }
}

fn keyed<K: Key + Wire, T: Record + Clone + Wire>(
    table: &mut Table<K, T>,
    at: u32,
    bytes: &mut &[u8],
) -> Option<bool> {
    let entry = if bool::get(bytes)? { Some((K::get(bytes)?, T::get(bytes)?)) } else { None };
    Some(table.restore(at, entry))
}
