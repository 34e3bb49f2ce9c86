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

/// 40 bytes a node beside its key, and 10 to 20 for its entry among the children.
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
mod tests;
