//! Records found by a key of their own (an operation's number, a session's name), hashed like an arena.

use std::borrow::Borrow;
use std::collections::BTreeMap;
use std::ops::Bound::Included;
use std::sync::Arc;

use crate::arena::Record;
use crate::mixer::Mixer;
use crate::snapshot::KeyedSnapshot;

pub trait Key: Ord + Clone {
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
    snapshot: Option<Box<KeyedSnapshot<K, T>>>,
}

impl<K, T> Default for Table<K, T> {
    fn default() -> Self {
        Table { records: BTreeMap::new(), hash: 0, snapshot: None }
    }
}

impl<K: Key, T: Record + Clone> Table<K, T> {
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
        if let Some(snapshot) = &mut self.snapshot
            && !self.records.contains_key(&key)
        {
            snapshot.keep_absence(&key);
        }
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
        self.keep(key);
        let (key, record) = self.records.remove_entry(key)?;
        self.hash = self.hash.wrapping_sub(digest(&key, &record));
        Some(record)
    }

    pub fn update<Q: Ord + ?Sized, R>(&mut self, key: &Q, change: impl FnOnce(&mut T) -> R) -> Option<R>
    where
        K: Borrow<Q>,
    {
        self.keep(key);
        let (key, record) = self.records.range_mut((Included(key), Included(key))).next()?;
        let before = digest(key, record);
        let result = change(record);
        self.hash = self.hash.wrapping_sub(before).wrapping_add(digest(key, record));
        Some(result)
    }

    pub fn iter(&self) -> impl Iterator<Item = (&K, &T)> {
        self.records.iter()
    }

    /// See `Arena::freeze` and `Arena::read_frozen`; records are read in the order of their keys.
    pub fn freeze(&mut self) -> u32 {
        self.snapshot.insert(Box::new(KeyedSnapshot::new(&self.records))).count()
    }

    pub fn read_frozen(&mut self, most: usize, mut visit: impl FnMut(&K, &T) -> bool) -> (usize, bool) {
        let Some(snapshot) = &mut self.snapshot else { return (0, true) };
        let looked = snapshot.read(&self.records, most, &mut visit);
        let all = snapshot.is_read();
        if all {
            self.snapshot = None;
        }
        (looked, all)
    }

    /// The record of a key is about to change.
    fn keep<Q: Ord + ?Sized>(&mut self, key: &Q)
    where
        K: Borrow<Q>,
    {
        if let Some(snapshot) = &mut self.snapshot
            && let Some((key, record)) = self.records.get_key_value(key)
        {
            snapshot.keep(key, record);
        }
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
