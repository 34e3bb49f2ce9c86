//! Records with stable numbers, in chunks that never move; every change keeps the state's hash.

use crate::bitmap::Bitmap;
use crate::mixer::Mixer;
use crate::runs::Run;
use crate::snapshot::Frozen;

const CHUNK: usize = 1024;

pub trait Record {
    /// Keeps records of different kinds apart in the hash.
    const TAG: u64;
    fn mix(&self, mixer: &mut Mixer);

    /// What changes much more often than the rest and is not in `mix`: a term of its own, to be added.
    fn use_term(&self, _whose: u64) -> u128 {
        0
    }
}

/// How often a number has been given out, and whether it is in use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life(pub u32);

impl Life {
    pub fn new(generation: u32, on: bool) -> Self {
        Life(2 * generation - on as u32)
    }

    pub fn is_on(self) -> bool {
        self.0 & 1 == 1
    }

    pub fn generation(self) -> u32 {
        self.0.div_ceil(2)
    }
}

#[derive(Clone, Debug)]
struct Entry<T> {
    generation: u32,
    record: Option<T>,
}

#[derive(Clone, Debug)]
pub struct Arena<T> {
    chunks: Vec<Vec<Entry<T>>>,
    ids: Bitmap,
    /// Wrapping sum of the hashes of all records.
    hash: u128,
    frozen: Frozen<Entry<T>>,
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena { chunks: Vec::new(), ids: Bitmap::default(), hash: 0, frozen: Frozen::default() }
    }
}

impl<T: Record + Clone> Arena<T> {
    pub fn count(&self) -> usize {
        self.ids.taken() as usize
    }

    /// Numbers for `count` new records. Takes nothing yet: inserting does.
    pub fn choose(&mut self, count: u32) -> Vec<Run> {
        if self.ids.free() < count {
            self.ids.grow(self.ids.capacity() + count.max(CHUNK as u32));
        }
        self.ids.choose(count)
    }

    pub fn hash(&self) -> u128 {
        self.hash
    }

    pub fn get(&self, id: u32) -> Option<&T> {
        self.entry(id)?.record.as_ref()
    }

    /// How often this number has been given out; with the number it names one life.
    pub fn generation(&self, id: u32) -> u32 {
        self.entry(id).map_or(0, |e| e.generation)
    }

    /// False when the number is in use, or so far off that nobody can have given it out: `choose` goes
    /// upwards without gaps, and a broken log must not cost memory.
    pub fn insert(&mut self, id: u32, record: T) -> bool {
        if !self.make_room(id) || !self.ids.take_one(id) {
            return false;
        }
        self.keep(id);
        let entry = &mut self.chunks[id as usize / CHUNK][id as usize % CHUNK];
        entry.generation += 1;
        self.hash = self.hash.wrapping_add(digest(id, entry.generation, &record));
        entry.record = Some(record);
        true
    }

    fn make_room(&mut self, id: u32) -> bool {
        let chunk = id as usize / CHUNK;
        if chunk > self.chunks.len() {
            return false;
        }
        if chunk == self.chunks.len() {
            let empty = || Entry { generation: 0, record: None };
            self.chunks.push(std::iter::repeat_with(empty).take(CHUNK).collect());
        }
        if id >= self.ids.capacity() {
            self.ids.grow(id + 1);
        }
        true
    }

    pub fn remove(&mut self, id: u32) -> Option<T> {
        self.keep(id);
        let entry = self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK)?;
        let record = entry.record.take()?;
        self.hash = self.hash.wrapping_sub(digest(id, entry.generation, &record));
        self.ids.release_one(id);
        Some(record)
    }

    /// Change a record in place. None when there is none.
    pub fn update<R>(&mut self, id: u32, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        self.keep(id);
        let entry = self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK)?;
        let record = entry.record.as_mut()?;
        let before = digest(id, entry.generation, record);
        let result = change(record);
        let after = digest(id, entry.generation, record);
        self.hash = self.hash.wrapping_sub(before).wrapping_add(after);
        Some(result)
    }

    /// Change only what is in `Record::use_term`.
    pub fn update_use(&mut self, id: u32, change: impl FnOnce(&mut T)) -> Option<()> {
        self.keep(id);
        let entry = self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK)?;
        let (record, whose) = (entry.record.as_mut()?, whose(id, entry.generation));
        let before = record.use_term(whose);
        change(record);
        self.hash = self.hash.wrapping_sub(before).wrapping_add(record.use_term(whose));
        Some(())
    }

    /// Change what `Record` leaves out; costs no hashing, and is in no keyframe.
    pub fn update_counts(&mut self, id: u32, change: impl FnOnce(&mut T)) -> Option<()> {
        let entry = self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK)?;
        entry.record.as_mut().map(change)
    }

    pub fn iter(&self) -> impl Iterator<Item = (u32, &T)> {
        let entries = self.chunks.iter().flatten().enumerate();
        entries.filter_map(|(id, e)| e.record.as_ref().map(|r| (id as u32, r)))
    }

    /// The hash from nothing, for `check`.
    pub fn rehash(&self) -> u128 {
        self.iter()
            .fold(0, |sum: u128, (id, record)| sum.wrapping_add(digest(id, self.generation(id), record)))
    }

    /// Keep what there is now for `read_frozen`, whatever changes meanwhile. Returns how many numbers that is.
    pub fn freeze(&mut self) -> u32 {
        self.frozen.begin(&self.chunks, |entry| entry.generation > 0)
    }

    /// Look at what the next numbers had, at most `most`, or until `visit` says that it is enough. Returns how many,
    /// and whether that was all.
    pub fn read_frozen(
        &mut self,
        most: usize,
        mut visit: impl FnMut(Life, Option<&T>) -> bool,
    ) -> (usize, bool) {
        let mut entry = |e: &Entry<T>| visit(Life::new(e.generation, e.record.is_some()), e.record.as_ref());
        self.frozen.read(&self.chunks, most, &mut entry)
    }

    /// What `read_frozen` has read, in another arena. False when the number cannot have had it.
    pub fn restore(&mut self, id: u32, life: Life, record: Option<T>) -> bool {
        if life.is_on() != record.is_some() || !self.make_room(id) {
            return false;
        }
        let entry = &mut self.chunks[id as usize / CHUNK][id as usize % CHUNK];
        entry.generation = life.generation() - life.is_on() as u32;
        record.is_none_or(|record| self.insert(id, record))
    }

    /// A number's entry is about to change.
    fn keep(&mut self, id: u32) {
        self.frozen.keep(id, &self.chunks);
    }

    fn entry(&self, id: u32) -> Option<&Entry<T>> {
        self.chunks.get(id as usize / CHUNK)?.get(id as usize % CHUNK)
    }
}

fn digest<T: Record>(id: u32, generation: u32, record: &T) -> u128 {
    let whose = whose(id, generation);
    let mut mixer = Mixer::new(T::TAG, whose);
    record.mix(&mut mixer);
    mixer.finish().wrapping_add(record.use_term(whose))
}

fn whose(id: u32, generation: u32) -> u64 {
    (generation as u64) << 32 | id as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Node;

    #[test]
    fn a_node_is_no_larger_than_the_bench_of_memory_says() {
        assert_eq!(size_of::<Entry<Node>>(), 160);
    }
}
