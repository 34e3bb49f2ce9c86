//! Records with stable numbers, in chunks that never move; every change keeps the state's hash.

use crate::bitmap::Bitmap;
use crate::mixer::Mixer;
use crate::runs::Run;

const CHUNK: usize = 1024;

pub trait Record {
    /// Keeps records of different kinds apart in the hash.
    const TAG: u64;
    fn mix(&self, mixer: &mut Mixer);
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
}

impl<T> Default for Arena<T> {
    fn default() -> Self {
        Arena { chunks: Vec::new(), ids: Bitmap::default(), hash: 0 }
    }
}

impl<T: Record> Arena<T> {
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
        if !self.ids.take_one(id) {
            return false;
        }
        let entry = &mut self.chunks[chunk][id as usize % CHUNK];
        entry.generation += 1;
        self.hash = self.hash.wrapping_add(digest(id, entry.generation, &record));
        entry.record = Some(record);
        true
    }

    pub fn remove(&mut self, id: u32) -> Option<T> {
        let entry = self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK)?;
        let record = entry.record.take()?;
        self.hash = self.hash.wrapping_sub(digest(id, entry.generation, &record));
        self.ids.release_one(id);
        Some(record)
    }

    /// Change a record in place. None when there is none.
    pub fn update<R>(&mut self, id: u32, change: impl FnOnce(&mut T) -> R) -> Option<R> {
        let entry = self.chunks.get_mut(id as usize / CHUNK)?.get_mut(id as usize % CHUNK)?;
        let record = entry.record.as_mut()?;
        let before = digest(id, entry.generation, record);
        let result = change(record);
        let after = digest(id, entry.generation, record);
        self.hash = self.hash.wrapping_sub(before).wrapping_add(after);
        Some(result)
    }

    /// Change what `Record::mix` leaves out; costs no hashing.
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

    fn entry(&self, id: u32) -> Option<&Entry<T>> {
        self.chunks.get(id as usize / CHUNK)?.get(id as usize % CHUNK)
    }
}

fn digest<T: Record>(id: u32, generation: u32, record: &T) -> u128 {
    let mut mixer = Mixer::new(T::TAG, (generation as u64) << 32 | id as u64);
    record.mix(&mut mixer);
    mixer.finish()
}
