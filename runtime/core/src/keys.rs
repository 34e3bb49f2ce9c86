//! Finding a path by its tokens. Beside the state, not in it: token ids never leave the process.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use xxhash_rust::xxh3::xxh3_64;

use crate::records::NONE;
use crate::state::State;

/// Where a walk ended: `pages` leading pages stand in the tree, the last of them in `node`.
#[derive(Clone, Debug)]
pub struct Walk {
    /// From just below the root down to `node`; empty when `node` is the root.
    pub nodes: Vec<u32>,
    pub node: u32,
    pub pages: u32,
}

#[derive(Clone, Debug, Default)]
pub struct Keys {
    /// Each node's tokens, by node number; empty for the root and for numbers not in use.
    tokens: Vec<Vec<u32>>,
    /// (parent, hash of a child's first page) to the children with that hash, almost always one.
    kids: HashMap<(u32, u64), Vec<u32>, BuildHasherDefault<Hashed>>,
}

/// Half of each key is a hash; hashing it once more would cost as much as the lookup.
#[derive(Default)]
struct Hashed(u64);

impl Hasher for Hashed {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(*byte as u32));
    }

    fn write_u32(&mut self, parent: u32) {
        self.0 = (self.0 ^ parent as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }

    fn write_u64(&mut self, hash: u64) {
        self.0 ^= hash;
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

impl Keys {
    pub fn of(&self, node: u32) -> &[u32] {
        self.tokens.get(node as usize).map_or(&[], Vec::as_slice)
    }

    pub fn walk(&self, state: &State, root: u32, tokens: &[u32]) -> Walk {
        let page = state.page_size as usize;
        let mut walk = Walk { nodes: Vec::new(), node: root, pages: 0 };
        let mut rest = &tokens[..tokens.len() / page * page];
        while let Some(kid) = self.kid(walk.node, rest, page) {
            let key = self.of(kid);
            // The first page is known to be the same: it led here.
            let same = 1 + common_tokens(&key[page..], &rest[page..]) / page;
            walk.nodes.push(kid);
            walk.node = kid;
            walk.pages += same as u32;
            rest = &rest[same * page..];
            if same * page < key.len() {
                break;
            }
        }
        walk
    }

    fn kid(&self, parent: u32, tokens: &[u32], page: usize) -> Option<u32> {
        let first = tokens.get(..page)?;
        let kids = self.kids.get(&(parent, hash(first)))?;
        kids.iter().copied().find(|kid| &self.of(*kid)[..page] == first)
    }

    pub fn add(&mut self, state: &State, node: u32, parent: u32, tokens: &[u32]) {
        if self.tokens.len() <= node as usize {
            self.tokens.resize(node as usize + 1, Vec::new());
        }
        self.tokens[node as usize] = tokens.to_vec();
        self.link(state, parent, node);
    }

    /// The state has split `tail` at `pages`: `head` is its new parent.
    pub fn split(&mut self, state: &State, tail: u32, head: u32, grandparent: u32, pages: u32) {
        self.unlink(state, grandparent, tail);
        let at = pages as usize * state.page_size as usize;
        let front = self.tokens[tail as usize][..at].to_vec();
        self.tokens[tail as usize].drain(..at);
        self.add(state, head, grandparent, &front);
        self.link(state, head, tail);
    }

    /// Keep a node's first `pages`; none means that the node is gone.
    pub fn shorten(&mut self, state: &State, node: u32, parent: u32, pages: u32) {
        if pages == 0 {
            self.unlink(state, parent, node);
            self.tokens[node as usize] = Vec::new();
        } else {
            self.tokens[node as usize].truncate(pages as usize * state.page_size as usize);
        }
    }

    fn link(&mut self, state: &State, parent: u32, node: u32) {
        let key = self.key(state, parent, node);
        self.kids.entry(key).or_default().push(node);
    }

    fn unlink(&mut self, state: &State, parent: u32, node: u32) {
        let key = self.key(state, parent, node);
        if let Some(kids) = self.kids.get_mut(&key) {
            kids.retain(|kid| *kid != node);
            if kids.is_empty() {
                self.kids.remove(&key);
            }
        }
    }

    fn key(&self, state: &State, parent: u32, node: u32) -> (u32, u64) {
        (parent, hash(&self.of(node)[..state.page_size as usize]))
    }

    pub fn check(&self, state: &State) -> Result<(), String> {
        let mut linked = 0;
        for (id, node) in state.nodes.iter() {
            let expected = node.slots.len() as usize * state.page_size as usize;
            if self.of(id).len() != expected {
                return Err(format!("node {id} has {} tokens, not {expected}", self.of(id).len()));
            }
            if node.parent == NONE {
                continue;
            }
            let kids = self.kids.get(&self.key(state, node.parent, id));
            if !kids.is_some_and(|kids| kids.contains(&id)) {
                return Err(format!("node {id} cannot be found under {}", node.parent));
            }
            linked += 1;
        }
        let listed: usize = self.kids.values().map(Vec::len).sum();
        if listed != linked {
            return Err(format!("{listed} children are listed, {linked} exist"));
        }
        Ok(())
    }
}

fn hash(page: &[u32]) -> u64 {
    // Safety: u32 has no padding, any alignment suits bytes, and the length is exact.
    xxh3_64(unsafe { std::slice::from_raw_parts(page.as_ptr().cast(), size_of_val(page)) })
}

/// Tokens that two sequences share at their start.
pub fn common_tokens(a: &[u32], b: &[u32]) -> usize {
    let (mut same, mut end) = (0, a.len().min(b.len()));
    if a[..end] == b[..end] {
        return end;
    }
    // Halving leaves the work to memcmp, which is many times faster than looking token by token.
    while same < end {
        let middle = same + (end - same).div_ceil(2);
        if a[same..middle] == b[same..middle] { same = middle } else { end = middle - 1 }
    }
    same
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn common_tokens_ends_where_the_first_difference_is(
            a in prop::collection::vec(0u32..3, 0..40), cut in 0usize..40, tail in prop::collection::vec(0u32..3, 0..40),
        ) {
            let mut b = a[..cut.min(a.len())].to_vec();
            b.extend(tail);
            let expected = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(common_tokens(&a, &b), expected);
        }
    }
}
