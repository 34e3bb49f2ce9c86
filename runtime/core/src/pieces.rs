//! A node's key: whole pages of bytes, kept in pieces, so that neither growth nor a split copies all of it.

use thin_vec::ThinVec;

/// A key of 128 Ki tokens is 16 pieces; nothing below copies more than one of them beside what is new.
pub const PIECE_BYTES: usize = 32 << 10;

/// Most keys fit into `first`. Every piece is whole pages, and each of them but the first and the last has
/// exactly `room` bytes (a parameter, since it depends on the page): so a page is found without a search.
#[derive(Clone, Debug)]
pub struct Pieces {
    first: Vec<u8>,
    /// Nearly always empty, and then one word.
    rest: ThinVec<Vec<u8>>,
}

impl Pieces {
    pub const EMPTY: Pieces = Pieces { first: Vec::new(), rest: ThinVec::new() };

    /// In bytes.
    pub fn size(&self) -> usize {
        self.first.len() + self.rest.iter().map(Vec::len).sum::<usize>()
    }

    /// The bytes that lie together at the start: a page at least, unless there is nothing.
    pub fn head(&self) -> &[u8] {
        &self.first
    }

    /// The bytes from `at` on, in order.
    pub fn from(&self, at: usize, room: usize) -> impl Iterator<Item = &[u8]> {
        let (piece, within) = self.locate(at, room);
        let pieces = std::iter::once(&self.first).chain(&self.rest).skip(piece);
        pieces.enumerate().map(move |(i, piece)| if i == 0 { &piece[within..] } else { piece.as_slice() })
    }

    /// How many bytes of `key` equal ours from `at` on.
    pub fn common(&self, at: usize, key: &[u8], room: usize) -> usize {
        let mut same = 0;
        for piece in self.from(at, room) {
            let more = common_bytes(piece, &key[same..]);
            same += more;
            if more < piece.len() {
                break;
            }
        }
        same
    }

    /// The last piece is filled up, copied on growth at most (by a quarter each time, so that a byte is copied
    /// four times until its piece is full); what does not fit goes to new pieces.
    pub fn append(&mut self, key: &[u8], room: usize) {
        let last = self.rest.last_mut().unwrap_or(&mut self.first);
        let (fits, more) = key.split_at(key.len().min(room - last.len()));
        if last.capacity() - last.len() < fits.len() {
            let spare = (last.len() / 4).min(room - last.len());
            last.reserve_exact(fits.len().max(spare));
        }
        last.extend_from_slice(fits);
        self.rest.extend(more.chunks(room).map(<[u8]>::to_vec));
    }

    /// Keep what is before `at`, which is neither end, and return the rest.
    pub fn split_off(&mut self, at: usize, room: usize) -> Pieces {
        let (piece, within) = self.locate(at - 1, room);
        let mut rest = self.rest.split_off(piece);
        let last = self.piece_mut(piece);
        let mut first = last.split_off(within + 1);
        last.shrink_to_fit();
        if first.is_empty() {
            first = rest.remove(0);
        }
        Pieces { first, rest }
    }

    pub fn truncate(&mut self, len: usize, room: usize) {
        if len == 0 {
            *self = Pieces::EMPTY;
            return;
        }
        let (piece, within) = self.locate(len - 1, room);
        self.rest.truncate(piece);
        let last = self.piece_mut(piece);
        last.truncate(within + 1);
        // Not each time: where an allocator shrinks by copying, page after page would cost the square.
        if last.capacity() / 2 > last.len() {
            last.shrink_to_fit();
        }
    }

    /// The piece that has byte `at`, and where in it. At the very end: a piece that is not there.
    fn locate(&self, at: usize, room: usize) -> (usize, usize) {
        match at.checked_sub(self.first.len()) {
            None => (0, at),
            Some(at) => (1 + at / room, at % room),
        }
    }

    fn piece_mut(&mut self, piece: usize) -> &mut Vec<u8> {
        if piece == 0 { &mut self.first } else { &mut self.rest[piece - 1] }
    }

    pub fn check(&self, width: usize, room: usize) -> Result<(), String> {
        let middle = &self.rest[..self.rest.len().saturating_sub(1)];
        if let Some(piece) = middle.iter().find(|piece| piece.len() != room) {
            return Err(format!("a middle piece has {} bytes, not {room}", piece.len()));
        }
        for piece in std::iter::once(&self.first).chain(&self.rest) {
            if piece.is_empty() || piece.len() % width != 0 || piece.len() > room {
                return Err(format!("a piece has {} bytes; a page {width}, a piece {room}", piece.len()));
            }
        }
        Ok(())
    }
}

/// Bytes that two sequences share at their start.
pub fn common_bytes(a: &[u8], b: &[u8]) -> usize {
    /// Compared again, half by half, where the two differ; long enough for memcmp at its full speed.
    const BLOCK: usize = 4 << 10;
    let (mut same, mut end) = (0, a.len().min(b.len()));
    while same < end {
        let to = end.min(same + BLOCK);
        if a[same..to] != b[same..to] {
            end = to - 1;
            break;
        }
        same = to;
    }
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
        fn common_bytes_ends_where_the_first_difference_is(
            a in prop::collection::vec(0u8..3, 0..40), cut in 0usize..40, tail in prop::collection::vec(0u8..3, 0..40),
            block in 0usize..3,
        ) {
            let mut a = a;
            let mut b = a[..cut.min(a.len())].to_vec();
            b.extend(tail);
            for side in [&mut a, &mut b] {
                side.splice(0..0, vec![7; block * 4095]);
            }
            let expected = a.iter().zip(&b).take_while(|(x, y)| x == y).count();
            prop_assert_eq!(common_bytes(&a, &b), expected);
        }

        #[test]
        fn pieces_are_a_vector_of_bytes(
            steps in prop::collection::vec((0u8..3, 0usize..12, any::<u8>()), 1..40),
        ) {
            const WIDTH: usize = 2;
            const ROOM: usize = 6;
            let (mut pieces, mut plain) = (Pieces::EMPTY, Vec::new());
            for (step, pages, byte) in steps {
                let at = (pages * WIDTH).min(plain.len());
                match step {
                    0 => {
                        let new: Vec<u8> = (0..pages * WIDTH).map(|i| byte.wrapping_add(i as u8)).collect();
                        pieces.append(&new, ROOM);
                        plain.extend(new);
                    }
                    1 if 0 < at && at < plain.len() => {
                        let back = pieces.split_off(at, ROOM);
                        let (front, plain_front) = (std::mem::replace(&mut pieces, back), plain.drain(..at));
                        prop_assert_eq!(front.from(0, ROOM).collect::<Vec<_>>().concat(), plain_front.collect::<Vec<u8>>());
                        prop_assert_eq!(front.check(WIDTH, ROOM), Ok(()));
                    }
                    1 => {}
                    _ => {
                        pieces.truncate(at, ROOM);
                        plain.truncate(at);
                    }
                }
                prop_assert_eq!(pieces.size(), plain.len());
                for at in (0..=plain.len()).step_by(WIDTH) {
                    prop_assert_eq!(pieces.from(at, ROOM).collect::<Vec<_>>().concat(), &plain[at..]);
                    prop_assert_eq!(pieces.common(at, &plain[at..], ROOM), plain.len() - at);
                }
                if !plain.is_empty() {
                    prop_assert_eq!(pieces.check(WIDTH, ROOM), Ok(()));
                }
            }
        }
    }
}
