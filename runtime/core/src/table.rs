//! Records found by a key of their own (an operation's number, a session's name), hashed like an arena.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound::Included;
use std::sync::Arc;

use crate::arena::Record;
use crate::mixer::Mixer;

pub trait Key: Ord {
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

#[derive(Clone, Debug)]
pub struct Table<K, T> {
    records: BTreeMap<K, T>,
    hash: u128,
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Self {
        Table { records: BTreeMap::new(), hash: 0 }
    }
}

impl<K: Key, T: Record> Table<K, T> {
    pub fn count(&self) -> usize {
        self.records.len()
    }

    pub fn hash(&self) -> u128 {
        self.hash
    }

    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&T>
    where
        K: Borrow<Q>,
    {
        self.records.get(key)
    }

    /// The stored key that equals this one.
    pub fn key<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&K>
    where
        K: Borrow<Q>,
    {
        self.records.get_key_value(key).map(|(key, _)| key)
    }

    /// False when the key is in use.
    pub fn insert(&mut self, key: K, record: T) -> bool {
        let term = digest(&key, &record);
        match self.records.entry(key) {
            std::collections::btree_map::Entry::Occupied(_) => false,
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(record);
                self.hash = self.hash.wrapping_add(term);
                true
            }
        }
    }

    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<T>
    where
        K: Borrow<Q>,
    {
        let (key, record) = self.records.remove_entry(key)?;
        self.hash = self.hash.wrapping_sub(digest(&key, &record));
        Some(record)
    }

    pub fn update<Q: Ord + ?Sized, R>(&mut self, key: &Q, change: impl FnOnce(&mut T) -> R) -> Option<R>
    where
        K: Borrow<Q>,
    {
        let (key, record) = self.records.range_mut((Included(key), Included(key))).next()?;
        let before = digest(key, record);
        let result = change(record);
        self.hash = self.hash.wrapping_sub(before).wrapping_add(digest(key, record));
        Some(result)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.records.iter()
    }

    pub fn rehash(&self) -> u128 {
        self.records.iter().fold(0, |sum: u128, (k, r)| sum.wrapping_add(digest(k, r)))
    }
}

fn digest<K: Key, T: Record>(key: &K, record: &T) -> u128 {
    let mut mixer = Mixer::new(T::TAG, 0);
    key.mix(&mut mixer);
    record.mix(&mut mixer);
    mixer.finish()
}
