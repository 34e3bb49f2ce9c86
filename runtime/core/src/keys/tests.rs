//! Keys against a map of all prefixes.

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

#[test]
fn a_node_is_no_larger_than_it_says() {
    assert_eq!(size_of::<Node>(), 40);
}
