//! Who used each node last. A name is kept once while its session is open, and as long as a node has
//! it: the session may be closed by then.

use std::sync::Arc;

use crate::bitmap::Bitmap;
use crate::chunks::Chunks;

const NOBODY: u32 = 0;
const MORE_NAMES: u32 = 1024;

#[derive(Clone, Debug, Default)]
struct Named {
    name: Option<Arc<str>>,
    /// Nodes that it used last.
    nodes: u32,
}

#[derive(Clone, Debug)]
pub struct Users {
    /// By node: a number among the names.
    of: Chunks<u32>,
    names: Chunks<Named>,
    taken: Bitmap,
    /// By the number of an open session: the number that its name had, and still has if the name is there.
    seen: Chunks<u32>,
}

impl Default for Users {
    fn default() -> Self {
        let mut taken = Bitmap::new(MORE_NAMES);
        taken.take_one(NOBODY);
        Users { of: Chunks::default(), names: Chunks::default(), taken, seen: Chunks::default() }
    }
}

impl Users {
    pub fn get(&self, node: u32) -> Option<&Arc<str>> {
        self.names.get(*self.of.get(node)?)?.name.as_ref()
    }

    /// `nodes` were used by a session, which has the number `open` while it is open; by nobody known when None.
    pub fn set(
        &mut self,
        mut nodes: impl Iterator<Item = u32>,
        session: Option<&Arc<str>>,
        open: impl FnOnce() -> Option<u32>,
    ) {
        let Some(first) = nodes.next() else { return };
        let user = match session {
            None => NOBODY,
            Some(name) if self.get(first) == Some(name) => *self.of.entry(first),
            Some(name) => self.number(name, open()),
        };
        self.give(first, user);
        nodes.for_each(|node| self.give(node, user));
    }

    /// A node is gone.
    pub fn forget(&mut self, node: u32) {
        if self.of.get(node).is_some_and(|user| *user != NOBODY) {
            self.give(node, NOBODY);
        }
    }

    /// `head` was split off `tail`.
    pub fn split(&mut self, tail: u32, head: u32) {
        let user = self.of.get(tail).copied().unwrap_or(NOBODY);
        self.give(head, user);
    }

    #[inline]
    fn give(&mut self, node: u32, user: u32) {
        let before = std::mem::replace(self.of.entry(node), user);
        if before == user {
            return;
        }
        if user != NOBODY {
            self.names.entry(user).nodes += 1;
        }
        if before != NOBODY {
            let named = self.names.entry(before);
            named.nodes -= 1;
            if named.nodes == 0 {
                named.name = None;
                self.taken.release_one(before);
            }
        }
    }

    /// A name's number, to be given to a node at once.
    fn number(&mut self, name: &Arc<str>, open: Option<u32>) -> u32 {
        let seen = open.and_then(|open| self.seen.get(open)).copied();
        let still = |number: &u32| self.names.get(*number).and_then(|n| n.name.as_ref()) == Some(name);
        if let Some(number) = seen.filter(still) {
            return number;
        }
        let number = self.taken.first_free().unwrap_or_else(|| {
            let next = self.taken.capacity();
            self.taken.grow(next + MORE_NAMES);
            next
        });
        self.taken.take_one(number);
        self.names.entry(number).name = Some(name.clone());
        if let Some(open) = open {
            *self.seen.entry(open) = number;
        }
        number
    }

    /// Each name is there for as many nodes as have it, and none without.
    pub fn check(&self) -> Result<(), String> {
        let mut nodes = vec![0; self.taken.capacity() as usize];
        self.of.iter().for_each(|user| nodes[*user as usize] += 1);
        for (number, nodes) in (0..).zip(nodes).skip(1) {
            let named = self.names.get(number).cloned().unwrap_or_default();
            let is_kept = (named.name.is_some(), self.taken.is_taken(number));
            if named.nodes != nodes || is_kept != (nodes > 0, nodes > 0) {
                return Err(format!("{nodes} nodes have user {number}, which is {named:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_goes_with_the_last_node_that_had_it() {
        let (mut users, name) = (Users::default(), Arc::from("a"));
        users.set([3, 4].into_iter(), Some(&name), || Some(1));
        assert_eq!(Arc::strong_count(&name), 2);
        users.forget(3);
        assert_eq!((users.get(3), users.get(4)), (None, Some(&name)));
        users.forget(4);
        assert_eq!((Arc::strong_count(&name), users.check()), (1, Ok(())));
    }

    proptest! {
        #[test]
        fn users_are_a_map_from_node_to_name_and_keep_no_other_names(
            steps in prop::collection::vec((0u32..2, 0u32..5, prop::collection::vec(0u32..9, 0..4), any::<bool>()), 1..60),
        ) {
            let (mut users, mut model) = (Users::default(), BTreeMap::new());
            for (generation, session, nodes, open) in steps {
                // A number comes again for another session, and a name with another number.
                let name: Option<Arc<str>> = (session > 0).then(|| format!("{}", session + generation).into());
                let open = (open && name.is_some()).then_some(session);
                users.set(nodes.iter().copied(), name.as_ref(), || open);
                nodes.iter().for_each(|node| drop(model.insert(*node, name.clone())));
                if let [tail, head, ..] = *nodes {
                    users.split(tail, head + 9);
                    model.insert(head + 9, name);
                }
                prop_assert_eq!(users.check(), Ok(()));
                for node in 0..18 {
                    prop_assert_eq!(users.get(node), model.get(&node).and_then(Option::as_ref));
                }
            }
        }
    }
}
