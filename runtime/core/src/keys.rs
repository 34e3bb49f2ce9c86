//! Finding a path by its key. Beside the state, not in it: token ids never leave the process.
//!
//! A key is bytes, `width` of them a page; what they stand for (`KeyKind`) matters only for digests and for
//! counting tokens.

use xxhash_rust::xxh3::xxh3_64;

use crate::children::Children;
use crate::mixer::fold;
use crate::names::KeyKind;
use crate::pieces::{PIECE_BYTES, Pieces};
use crate::records::NONE;

#[cfg(target_endian = "big")]
compile_error!("keys are integers as they lie in memory, and digests are of little-endian ones");

/// Nodes are kept in chunks by number, so that one more never moves the others.
const CHUNK: usize = 1024;

/// Where a walk ended: the last of its pages stands in `node`.
#[derive(Clone, Debug, PartialEq)]
pub struct Walk {
    /// From just below where it began down to `node`; empty when `node` is where it began.
    pub nodes: Vec<u32>,
    pub node: u32,
    /// Pages that this walk has found.
    pub pages: u32,
}

/// 56 bytes a node beside its key, and 10 to 20 for its entry among the children.
#[derive(Clone, Debug)]
struct Node {
    key: Pieces,
    /// `NONE` for roots, which have no key, and for numbers not in use.
    parent: u32,
}

static VACANT: Node = Node { key: Pieces::EMPTY, parent: NONE };

#[derive(Clone, Debug)]
pub struct Keys {
    kind: KeyKind,
    page_size: usize,
    width: usize,
    /// Bytes of a full piece of a node's key: whole pages.
    room: usize,
    nodes: Vec<Vec<Node>>,
    children: Children,
}

impl Keys {
    pub fn new(kind: KeyKind, page_size: u32) -> Self {
        Keys::with_pieces_of(kind, page_size, PIECE_BYTES)
    }

    fn with_pieces_of(kind: KeyKind, page_size: u32, bytes: usize) -> Self {
        let width = kind.page_bytes(page_size);
        let room = (bytes / width).max(1) * width;
        let (nodes, children) = (Vec::new(), Children::default());
        Keys { kind, page_size: page_size as usize, width, room, nodes, children }
    }

    pub fn kind(&self) -> KeyKind {
        self.kind
    }

    /// Bytes of one page of a key.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Whole tokens that so many bytes of a key stand for.
    pub fn tokens(&self, bytes: usize) -> usize {
        match self.kind {
            KeyKind::Tokens | KeyKind::Pairs => bytes * self.page_size / self.width,
            KeyKind::Digests => bytes / self.width * self.page_size,
        }
    }

    /// The token in which two keys differ that have so many bytes in common. A pair has the next token's first one.
    pub fn differing_token(&self, bytes: usize) -> usize {
        self.tokens(if self.kind == KeyKind::Pairs { bytes + size_of::<u32>() } else { bytes })
    }

    /// A node's key from its page `at` on, in order; each item is whole pages.
    pub fn of(&self, node: u32, at: u32) -> impl Iterator<Item = &[u8]> {
        self.node(node).key.from(at as usize * self.width, self.room)
    }

    /// How far a key leads from below the end of `from`, a root or any other node. A last page that is not
    /// whole is left out.
    pub fn walk(&self, from: u32, key: &[u8]) -> Walk {
        let mut walk = Walk { nodes: Vec::new(), node: from, pages: 0 };
        let mut rest = &key[..key.len() / self.width * self.width];
        while let Some(child) = self.child(walk.node, rest) {
            let key = &self.node(child).key;
            // The first page is known to be the same: it led here.
            let same = self.width + key.common(self.width, &rest[self.width..], self.room);
            let pages = same / self.width;
            walk.nodes.push(child);
            walk.node = child;
            walk.pages += pages as u32;
            rest = &rest[pages * self.width..];
            if same < key.size() {
                break;
            }
        }
        walk
    }

    /// Pages of `key` that equal the node's own from its page `at` on.
    pub fn resume(&self, node: u32, at: u32, key: &[u8]) -> u32 {
        let same = self.node(node).key.common(at as usize * self.width, key, self.room);
        (same / self.width) as u32
    }

    fn child(&self, parent: u32, key: &[u8]) -> Option<u32> {
        let first = key.get(..self.width)?;
        self.children.find(hash(parent, first), |child| {
            let child = self.node(child);
            child.parent == parent && child.key.head().get(..self.width) == Some(first)
        })
    }

    /// A new node of at least one page, all of them whole.
    pub fn add(&mut self, node: u32, parent: u32, key: &[u8]) {
        let mut pieces = Pieces::EMPTY;
        pieces.append(key, self.room);
        self.put(node, parent, pieces);
    }

    /// A leaf grows in place, by whole pages.
    pub fn append(&mut self, node: u32, key: &[u8]) {
        let room = self.room;
        self.node_mut(node).key.append(key, room);
    }

    /// The state has split `tail` at `pages`: `head`, its first part, is its new parent.
    pub fn split(&mut self, tail: u32, head: u32, pages: u32) {
        self.unlink(tail);
        let (at, room) = (pages as usize * self.width, self.room);
        let node = self.node_mut(tail);
        let back = node.key.split_off(at, room);
        let front = std::mem::replace(&mut node.key, back);
        let parent = std::mem::replace(&mut node.parent, head);
        self.link(tail);
        self.put(head, parent, front);
    }

    /// Keep a node's first `pages`; none means that the node is gone.
    pub fn shorten(&mut self, node: u32, pages: u32) {
        if pages == 0 {
            self.unlink(node);
            *self.node_mut(node) = VACANT.clone();
        } else {
            let (len, room) = (pages as usize * self.width, self.room);
            self.node_mut(node).key.truncate(len, room);
        }
    }

    fn node(&self, id: u32) -> &Node {
        let chunk = self.nodes.get(id as usize / CHUNK);
        chunk.and_then(|chunk| chunk.get(id as usize % CHUNK)).unwrap_or(&VACANT)
    }

    fn node_mut(&mut self, id: u32) -> &mut Node {
        let chunk = id as usize / CHUNK;
        if self.nodes.len() <= chunk {
            self.nodes.resize_with(chunk + 1, Vec::new);
        }
        let chunk = &mut self.nodes[chunk];
        if chunk.is_empty() {
            chunk.resize(CHUNK, VACANT.clone());
        }
        &mut chunk[id as usize % CHUNK]
    }

    fn put(&mut self, node: u32, parent: u32, key: Pieces) {
        *self.node_mut(node) = Node { key, parent };
        self.link(node);
    }

    fn link(&mut self, node: u32) {
        self.children.insert(self.link_hash(node), node);
    }

    fn unlink(&mut self, node: u32) {
        self.children.remove(self.link_hash(node), node);
    }

    fn link_hash(&self, node: u32) -> u64 {
        let node = self.node(node);
        hash(node.parent, &node.key.head()[..self.width])
    }

    /// Compare with the tree's nodes: (number, parent or `NONE` for a root, pages).
    pub fn check(&self, nodes: impl Iterator<Item = (u32, u32, u32)>) -> Result<(), String> {
        let mut linked = 0;
        for (id, parent, pages) in nodes {
            let node = self.node(id);
            let expected = pages as usize * self.width;
            if node.key.size() != expected {
                return Err(format!("node {id} has a key of {} bytes, not {expected}", node.key.size()));
            }
            if node.parent != parent {
                return Err(format!("the key of node {id} is under node {}, not {parent}", node.parent));
            }
            if parent == NONE {
                continue;
            }
            node.key.check(self.width, self.room).map_err(|fault| format!("node {id}: {fault}"))?;
            if self.children.find(self.link_hash(id), |child| child == id).is_none() {
                return Err(format!("node {id} cannot be found under {parent}"));
            }
            linked += 1;
        }
        let kept = self.nodes.iter().flatten().filter(|node| node.parent != NONE).count();
        if kept != linked || self.children.count() != linked {
            let listed = self.children.count();
            return Err(format!(
                "{linked} nodes have a parent, {kept} a key, and {listed} are listed as children"
            ));
        }
        Ok(())
    }
}

impl KeyKind {
    /// Bytes of one page of a key: u32 little-endian, or the page's digest.
    pub fn page_bytes(self, page_size: u32) -> usize {
        match self {
            KeyKind::Tokens => page_size as usize * 4,
            KeyKind::Pairs => page_size as usize * 8,
            KeyKind::Digests => size_of::<crate::digest::Digest>(),
        }
    }
}

fn hash(parent: u32, page: &[u8]) -> u64 {
    fold(xxh3_64(page), 0x9E37_79B9_7F4A_7C15 ^ parent as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    /// Beside the keys the obvious: every prefix of every path, with the node that has its last page.
    struct Both {
        keys: Keys,
        /// (root, whole pages from it on) to the node.
        prefixes: BTreeMap<(u32, Vec<u8>), u32>,
        /// node to (parent, pages before it, pages)
        nodes: BTreeMap<u32, (u32, usize, usize)>,
        next: u32,
    }

    const ROOTS: [u32; 2] = [0, 1500];

    impl Both {
        fn new(kind: KeyKind, page_size: u32) -> Self {
            let keys = Keys::with_pieces_of(kind, page_size, 3 * kind.page_bytes(page_size));
            let nodes = ROOTS.map(|root| (root, (NONE, 0, 0))).into();
            Both { keys, prefixes: BTreeMap::new(), nodes, next: 1 }
        }

        fn prefix(key: &[u8], width: usize, pages: usize) -> Vec<u8> {
            key[..pages * width].to_vec()
        }

        fn expected(&self, root: u32, key: &[u8]) -> Walk {
            let width = self.keys.width();
            let mut walk = Walk { nodes: vec![], node: root, pages: 0 };
            for pages in 1..=key.len() / width {
                let Some(node) = self.prefixes.get(&(root, Self::prefix(key, width, pages))) else { break };
                if walk.nodes.last() != Some(node) {
                    walk.nodes.push(*node);
                }
                (walk.node, walk.pages) = (*node, pages as u32);
            }
            walk
        }

        fn number(&mut self) -> u32 {
            // Far apart, so that they fall into different chunks.
            let number = self.next;
            self.next += if self.next.is_multiple_of(5) { 700 } else { 1 };
            self.next += ROOTS.contains(&self.next) as u32;
            number
        }

        fn insert(&mut self, root: u32, key: &[u8], grow: bool) {
            let width = self.keys.width();
            let key = &key[..key.len() / width * width];
            let walk = self.keys.walk(root, key);
            let (pages, total) = (walk.pages as usize, key.len() / width);
            if pages == total {
                return;
            }
            let (parent, before, own) = self.nodes[&walk.node];
            let at = pages - before;
            let mut node = walk.node;
            if at < own {
                node = self.number();
                self.keys.split(walk.node, node, at as u32);
                self.nodes.insert(node, (parent, before, at));
                self.nodes.insert(walk.node, (node, before + at, own - at));
                for p in before + 1..=before + at {
                    self.prefixes.insert((root, Self::prefix(key, width, p)), node);
                }
            }
            if grow && self.nodes.values().all(|(parent, ..)| *parent != node) && parent != NONE {
                self.keys.append(node, &key[pages * width..]);
                self.nodes.insert(node, (parent, before, own + total - pages));
            } else {
                let new = self.number();
                self.keys.add(new, node, &key[pages * width..]);
                self.nodes.insert(new, (node, pages, total - pages));
                node = new;
            }
            for p in pages + 1..=total {
                self.prefixes.insert((root, Self::prefix(key, width, p)), node);
            }
        }

        /// Take pages off the end of a leaf.
        fn shorten(&mut self, pick: usize, keep: usize) {
            let parents: Vec<u32> = self.nodes.values().map(|(parent, ..)| *parent).collect();
            let leaves: Vec<u32> = self.nodes.keys().copied().filter(|id| !parents.contains(id)).collect();
            let Some(leaf) = leaves.get(pick % leaves.len().max(1)).filter(|id| !ROOTS.contains(id)) else {
                return;
            };
            let (parent, before, own) = self.nodes[leaf];
            let keep = keep % own;
            self.keys.shorten(*leaf, keep as u32);
            let longest = (before + keep) * self.keys.width();
            self.prefixes.retain(|(_, prefix), node| node != leaf || prefix.len() <= longest);
            match keep {
                0 => self.nodes.remove(leaf),
                _ => self.nodes.insert(*leaf, (parent, before, keep)),
            };
        }

        fn nodes(&self) -> impl Iterator<Item = (u32, u32, u32)> {
            self.nodes.iter().map(|(id, (parent, _, pages))| (*id, *parent, *pages as u32))
        }
    }

    #[derive(Clone, Debug)]
    enum Step {
        Insert(Vec<u8>, bool),
        Walk(Vec<u8>, usize),
        Shorten(usize, usize),
    }

    /// Each byte is a page: two kinds of pages make for paths that share and part.
    fn steps() -> impl Strategy<Value = Vec<(usize, Step)>> {
        let path = || prop::collection::vec(prop::sample::select(vec![1u8, 1, 1, 2]), 0..14);
        let step = prop_oneof![
            (path(), any::<bool>()).prop_map(|(path, grow)| Step::Insert(path, grow)),
            (path(), 0usize..14).prop_map(|(path, part)| Step::Walk(path, part)),
            (0usize..20, 0usize..14).prop_map(|(pick, keep)| Step::Shorten(pick, keep)),
        ];
        prop::collection::vec((0..ROOTS.len(), step), 1..40)
    }

    /// Pages differ in their last byte only; a page that is not whole follows.
    fn key(path: &[u8], width: usize) -> Vec<u8> {
        let mut key: Vec<u8> =
            path.iter().flat_map(|page| [&vec![9; width - 1][..], &[*page]].concat()).collect();
        key.extend(vec![9; width - 1]);
        key
    }

    proptest! {
        #[test]
        fn keys_find_what_a_map_of_all_prefixes_finds(
            kind in prop::sample::select(KeyKind::ALL), page_size in 1u32..4, steps in steps(),
        ) {
            let mut both = Both::new(kind, page_size);
            let width = both.keys.width();
            for (root, step) in steps {
                let root = ROOTS[root];
                match step {
                    Step::Insert(path, grow) => both.insert(root, &key(&path, width), grow),
                    Step::Shorten(pick, keep) => both.shorten(pick, keep),
                    Step::Walk(path, part) => {
                        let key = key(&path, width);
                        let whole = both.keys.walk(root, &key);
                        prop_assert_eq!(&whole, &both.expected(root, &key));
                        // In two parts, the first of them anywhere in what is there.
                        let part = part.min(whole.pages as usize);
                        let (mut walk, rest) = (both.keys.walk(root, &key[..part * width]), &key[part * width..]);
                        prop_assert_eq!(walk.pages as usize, part);
                        let (_, before, own) = both.nodes[&walk.node];
                        let more = both.keys.resume(walk.node, (part - before) as u32, rest);
                        walk.pages += more;
                        if part + more as usize == before + own {
                            let further = both.keys.walk(walk.node, &rest[more as usize * width..]);
                            walk.nodes.extend(further.nodes);
                            walk.node = further.node;
                            walk.pages += further.pages;
                        }
                        prop_assert_eq!(walk, whole);
                    }
                }
                prop_assert_eq!(both.keys.check(both.nodes()), Ok(()));
            }
            for ((root, prefix), node) in &both.prefixes {
                prop_assert_eq!(both.keys.walk(*root, prefix).node, *node);
                let (_, before, _) = both.nodes[node];
                let own = both.keys.of(*node, 0).collect::<Vec<_>>().concat();
                prop_assert!(own.starts_with(&prefix[before * width..]));
            }
        }
    }

    #[test]
    fn check_finds_a_key_that_is_not_as_the_tree_has_it() {
        let mut keys = Keys::new(KeyKind::Tokens, 1);
        keys.add(1, 0, &[1, 0, 0, 0, 2, 0, 0, 0]);
        let root = (0, NONE, 0);
        assert_eq!(keys.check([root, (1, 0, 2)].into_iter()), Ok(()));
        assert!(keys.check([root, (1, 0, 1)].into_iter()).is_err());
        assert!(keys.check([root, (1, 2, 2)].into_iter()).is_err());
        assert!(keys.check([root].into_iter()).is_err());
        keys.unlink(1);
        assert!(keys.check([root, (1, 0, 2)].into_iter()).is_err());
    }

    #[test]
    fn bytes_of_a_key_stand_for_whole_tokens() {
        let tokens = |kind, bytes| Keys::new(kind, 16).tokens(bytes);
        assert_eq!(tokens(KeyKind::Tokens, 4 * 17 + 3), 17);
        assert_eq!(tokens(KeyKind::Pairs, 8 * 17 + 7), 17);
        assert_eq!(tokens(KeyKind::Digests, 32 * 2 + 31), 32);
    }
}
