//! Who stands below whom: from the hash of (parent, a child's first page) to the child.

use hashbrown::HashTable;

/// So many tables that none is large: with ten million nodes, growing one moves ten thousand entries.
const SHARDS: usize = 1024;

/// Eight bytes. The tag is half of the hash, enough to find the entry's place again when its table grows.
#[derive(Clone, Copy, Debug)]
struct Link {
    tag: u32,
    node: u32,
}

#[derive(Clone, Debug)]
pub struct Children {
    shards: Vec<HashTable<Link>>,
}

impl Default for Children {
    fn default() -> Self {
        Children { shards: vec![HashTable::new(); SHARDS] }
    }
}

impl Children {
    /// The node under this hash that `is` the right one; other nodes may share the hash.
    pub fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        let tag = tag(hash);
        let link = self.shards[shard(hash)].find(spread(tag), |link| link.tag == tag && is(link.node))?;
        Some(link.node)
    }

    pub fn insert(&mut self, hash: u64, node: u32) {
        let tag = tag(hash);
        self.shards[shard(hash)].insert_unique(spread(tag), Link { tag, node }, |link| spread(link.tag));
    }

    pub fn remove(&mut self, hash: u64, node: u32) {
        let tag = tag(hash);
        if let Ok(link) = self.shards[shard(hash)].find_entry(spread(tag), |link| link.node == node) {
            link.remove();
        }
    }

    pub fn count(&self) -> usize {
        self.shards.iter().map(HashTable::len).sum()
    }
}

fn shard(hash: u64) -> usize {
    hash as usize % SHARDS
}

fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

/// The table wants 64 bits, and looks at both ends of them.
fn spread(tag: u32) -> u64 {
    (tag as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_that_share_a_hash_are_told_apart() {
        let mut children = Children::default();
        (0..50).for_each(|node| children.insert(7 << 32, node));
        children.remove(7 << 32, 20);
        assert_eq!(children.find(7 << 32, |node| node == 30), Some(30));
        assert_eq!(children.find(7 << 32, |node| node == 20), None);
        assert_eq!(children.count(), 49);
    }
}
