//! Records found by a key of their own (an operation's number, a session's name), hashed like an arena.
//!
//! Each has a number too, the lowest that is free, by which others can keep something beside it. Nothing depends on the
//! order of the hash table that finds them.

use std::borrow::Borrow;
use std::hash::{BuildHasher, Hash};
use std::sync::Arc;

use hashbrown::{DefaultHashBuilder, HashTable};

use crate::arena::Record;
use crate::bitmap::Bitmap;
use crate::mixer::Mixer;
use crate::snapshot::Frozen;

const CHUNK: usize = 64;

pub trait Key: Ord + Hash + Clone {
    fn mix(&self, mixer: &mut Mixer);
}

impl Key for u64 {
    fn mix(&self, mixer: &mut Mixer) {
        mixer.word(*self);
    }
}

impl Key for u32 {
    fn mix(&self, mixer: &mut Mixer) {
        mixer.word(*self as u64);
    }
}

impl Key for Arc<str> {
    fn mix(&self, mixer: &mut Mixer) {
        mixer.text(self);
    }
}

type Entry<K, T> = Option<(K, T)>;

#[derive(Clone, Debug)]
pub struct Table<K, T> {
    chunks: Vec<Vec<Entry<K, T>>>,
    ids: Bitmap,
    /// Numbers, by the hash of their keys.
    index: HashTable<u32>,
    hasher: DefaultHashBuilder,
    hash: u128,
    frozen: Frozen<Entry<K, T>>,
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Self {
        Table {
            chunks: Vec::new(),
            ids: Bitmap::default(),
            index: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
            hash: 0,
            frozen: Frozen::default(),
        }
    }
}

impl<K: Key, T: Record + Clone> Table<K, T> {
    pub fn count(&self) -> usize {
        self.index.len()
    }

    pub fn hash(&self) -> u128 {
        self.hash
    }

    pub fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&T>
    where
        K: Borrow<Q>,
    {
        self.find(key).map(|(_, record)| record)
    }

    /// A record and its number.
    pub fn find<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<(u32, &T)>
    where
        K: Borrow<Q>,
    {
        let number = self.number(key)?;
        self.entry(number).map(|(_, record)| (number, record))
    }

    /// The stored key that equals this one.
    pub fn key<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<&K>
    where
        K: Borrow<Q>,
    {
        self.entry(self.number(key)?).map(|(key, _)| key)
    }

    /// What the key has while its record is there; may come again for another.
    pub fn number<Q: Hash + Eq + ?Sized>(&self, key: &Q) -> Option<u32>
    where
        K: Borrow<Q>,
    {
        let same = |number: &u32| self.entry(*number).is_some_and(|(known, _)| known.borrow() == key);
        self.index.find(self.hasher.hash_one(key), same).copied()
    }

    /// False when the key is in use.
    pub fn insert(&mut self, key: K, record: T) -> bool {
        let number = self.ids.first_free().unwrap_or(self.ids.capacity());
        self.number(&key).is_none() && self.make_room(number) && self.put(number, key, record)
    }

    /// What `read_frozen` has read, in another table: numbers one after the other. False when a key is there already.
    pub fn restore(&mut self, number: u32, entry: Option<(K, T)>) -> bool {
        if !self.make_room(number) {
            return false;
        }
        entry.is_none_or(|(key, record)| self.number(&key).is_none() && self.put(number, key, record))
    }

    /// False when the number is so far off that nobody can have given it out.
    fn make_room(&mut self, number: u32) -> bool {
        if number as usize / CHUNK == self.chunks.len() {
            self.chunks.push(std::iter::repeat_with(|| None).take(CHUNK).collect());
            self.ids.grow((self.chunks.len() * CHUNK) as u32);
        }
        number < self.ids.capacity()
    }

    fn put(&mut self, number: u32, key: K, record: T) -> bool {
        if !self.ids.take_one(number) {
            return false;
        }
        self.keep(number);
        self.hash = self.hash.wrapping_add(digest(&key, &record));
        let hash = self.hasher.hash_one(&key);
        self.chunks[number as usize / CHUNK][number as usize % CHUNK] = Some((key, record));
        let (chunks, hasher) = (&self.chunks, &self.hasher);
        self.index.insert_unique(hash, number, |at| {
            let entry = chunks[*at as usize / CHUNK][*at as usize % CHUNK].as_ref();
            entry.map_or(0, |(key, _)| hasher.hash_one(key))
        });
        true
    }

    pub fn remove<Q: Hash + Eq + ?Sized>(&mut self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        let number = self.number(key)?;
        if let Ok(found) = self.index.find_entry(self.hasher.hash_one(key), |at| *at == number) {
            found.remove();
        }
        self.keep(number);
        self.ids.release_one(number);
        let (key, record) = self.chunks[number as usize / CHUNK][number as usize % CHUNK].take()?;
        self.hash = self.hash.wrapping_sub(digest(&key, &record));
        Some(record)
    }

    pub fn update<Q: Hash + Eq + ?Sized, R>(&mut self, key: &Q, change: impl FnOnce(&mut T) -> R) -> Option<R>
    where
        K: Borrow<Q>,
    {
        let number = self.number(key)?;
        self.keep(number);
        let (key, record) = self.chunks[number as usize / CHUNK][number as usize % CHUNK].as_mut()?;
        let before = digest(key, record);
        let result = change(record);
        self.hash = self.hash.wrapping_sub(before).wrapping_add(digest(key, record));
        Some(result)
    }

    /// By number, which says nothing: see `wanted` for an order.
    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.chunks.iter().flatten().flatten().map(|(key, record)| (key, record))
    }

    /// Keys of the records that are wanted, in order.
    pub fn wanted(&self, wanted: impl Fn(&T) -> bool) -> Vec<K> {
        let mut keys: Vec<K> = self.iter().filter(|(_, r)| wanted(r)).map(|(key, _)| key.clone()).collect();
        keys.sort_unstable();
        keys
    }

    /// See `Arena::freeze` and `Arena::read_frozen`.
    pub fn freeze(&mut self) -> u32 {
        self.frozen.begin(&self.chunks, Option::is_some)
    }

    pub fn read_frozen(
        &mut self,
        most: usize,
        mut visit: impl FnMut(Option<&(K, T)>) -> bool,
    ) -> (usize, bool) {
        self.frozen.read(&self.chunks, most, &mut |entry| visit(entry.as_ref()))
    }

    pub fn rehash(&self) -> u128 {
        self.iter().fold(0, |sum: u128, (key, record)| sum.wrapping_add(digest(key, record)))
    }

    /// A number's entry is about to change.
    fn keep(&mut self, number: u32) {
        self.frozen.keep(number, &self.chunks);
    }

    fn entry(&self, number: u32) -> Option<&(K, T)> {
        self.chunks.get(number as usize / CHUNK)?.get(number as usize % CHUNK)?.as_ref()
    }
}

fn digest<K: Key, T: Record>(key: &K, record: &T) -> u128 {
    let mut mixer = Mixer::new(T::TAG, 0);
    key.mix(&mut mixer);
    record.mix(&mut mixer);
    mixer.finish()
}
