//! The commands of one core, as they were given, in numbered pieces, so that a piece that is missing is missed.
//!
//! A piece is `PIECE`, its number from 1, the length of what it holds, the XXH3-64 of that, and the XXH3-64 of these
//! three (each a little-endian u64), and then what it holds. That, of all pieces, is `JOURNAL`, the configuration, and
//! the moment and the command of each call. Without pieces around it, it is a journal too: one that was never divided.

use xxhash_rust::xxh3::xxh3_64;

use crate::command::Command;
use crate::config::Config;
use crate::core::{Core, PolicyMaker};
use crate::refusal::{Answer, Refusal};
use crate::wire::Wire;

const JOURNAL: &[u8; 8] = b"kvjrnl\x00\x02";
const PIECE: &[u8; 8] = b"kvpiece\x01";
const HEADER_BYTES: usize = 40;

pub struct Journal {
    /// What the next piece holds so far.
    held: Vec<u8>,
    /// Its number.
    next: u64,
}

impl Journal {
    pub fn new(config: &Config) -> Self {
        let mut held = JOURNAL.to_vec();
        config.put(&mut held);
        Journal { held, next: 1 }
    }

    pub fn append(&mut self, now: i64, command: &Command) {
        now.put(&mut self.held);
        command.encode(&mut self.held);
    }

    /// What was written since the last one was taken; empty when nothing was.
    pub fn piece(&self) -> Vec<u8> {
        if self.held.is_empty() {
            return Vec::new();
        }
        let mut piece = PIECE.to_vec();
        self.next.put(&mut piece);
        (self.held.len() as u64).put(&mut piece);
        xxh3_64(&self.held).put(&mut piece);
        xxh3_64(&piece[PIECE.len()..]).put(&mut piece);
        piece.extend(&self.held);
        piece
    }

    /// The same, to be kept elsewhere.
    pub fn take(&mut self) -> Vec<u8> {
        let piece = self.piece();
        if !piece.is_empty() {
            self.next += 1;
            self.held.clear();
        }
        piece
    }
}

/// What the pieces of a journal hold, and the bytes at its end that are less than a piece.
#[derive(Debug, PartialEq)]
pub struct Pieces<'a> {
    pub whole: Vec<&'a [u8]>,
    pub cut: usize,
}

/// A crash may cut the last piece off anywhere. Any other piece that is not there whole is refused by its number.
pub fn pieces_of(journal: &[u8]) -> Answer<Pieces<'_>> {
    if journal.starts_with(JOURNAL) {
        return Ok(Pieces { whole: vec![journal], cut: 0 });
    }
    let refuse = |why: String| Err(Refusal::Log(why));
    let (mut whole, mut rest) = (Vec::new(), journal);
    while !rest.is_empty() {
        let due = whole.len() as u64 + 1;
        let header = header(rest);
        match header {
            Some((number, ..)) if number > due => {
                let gone =
                    if number == due + 1 { due.to_string() } else { format!("{due} to {}", number - 1) };
                return refuse(format!("piece {gone} of the journal is missing: piece {number} follows"));
            }
            Some((number, ..)) if number < due => {
                return refuse(format!("piece {number} of the journal is there again, before piece {due}"));
            }
            Some((_, length, sum)) if length <= (rest.len() - HEADER_BYTES) as u64 => {
                let (piece, after) = rest.split_at(HEADER_BYTES + length as usize);
                let held = &piece[HEADER_BYTES..];
                if xxh3_64(held) != sum {
                    return refuse(torn(rest, piece.len(), due).unwrap_or_else(|| damaged(due)));
                }
                whole.push(held);
                rest = after;
            }
            _ => match torn(rest, rest.len(), due) {
                Some(why) => return refuse(why),
                None if header.is_some() || begins(rest) => break,
                None if due == 1 => return refuse("not a journal".into()),
                None => return refuse(damaged(due)),
            },
        }
    }
    Ok(Pieces { whole, cut: rest.len() })
}

/// (number, length, sum) of the piece that begins here.
fn header(bytes: &[u8]) -> Option<(u64, u64, u64)> {
    let header = bytes.get(PIECE.len()..HEADER_BYTES).filter(|_| bytes.starts_with(PIECE))?;
    let (words, _) = header.as_chunks::<8>();
    let [number, length, sum, own] = [0, 1, 2, 3].map(|i| u64::from_le_bytes(words[i]));
    (xxh3_64(&header[..24]) == own).then_some((number, length, sum))
}

fn begins(bytes: &[u8]) -> bool {
    bytes.len() < HEADER_BYTES && PIECE.starts_with(&bytes[..bytes.len().min(PIECE.len())])
}

/// A piece that was cut has a later one where more of it should be.
fn torn(bytes: &[u8], end: usize, due: u64) -> Option<String> {
    let headers = (1..end).filter_map(|at| header(&bytes[at..]));
    let later = headers.map(|(number, ..)| number).find(|number| *number > due)?;
    Some(format!("piece {due} of the journal is cut: piece {later} follows"))
}

fn damaged(piece: u64) -> String {
    format!("piece {piece} of the journal is damaged")
}

impl Core {
    /// Run a journal again from nothing. All of it has to be there.
    pub fn replay(journal: &[u8], make: PolicyMaker) -> Answer<Core> {
        let pieces = pieces_of(journal)?;
        let number = pieces.whole.len();
        if pieces.cut > 0 {
            let why =
                format!("piece {} of the journal is cut: {} bytes of it are there", number + 1, pieces.cut);
            return Err(Refusal::Log(why));
        }
        let mut whole = (1..).zip(pieces.whole);
        let first = whole.next().and_then(|(_, held)| held.strip_prefix(JOURNAL));
        let mut held = first.ok_or_else(|| Refusal::Log("not a journal".into()))?;
        let config = Config::get(&mut held).ok_or_else(|| broken(1, held.len()))?;
        let mut core = Core::new(config, make)?;
        core.run_all(1, held)?;
        whole.try_for_each(|(number, held)| core.run_all(number, held))?;
        Ok(core)
    }

    fn run_all(&mut self, piece: usize, mut held: &[u8]) -> Answer<()> {
        while !held.is_empty() {
            let left = held.len();
            let now = i64::get(&mut held).ok_or_else(|| broken(piece, left))?;
            let command = Command::decode(&mut held).ok_or_else(|| broken(piece, left))?;
            // A refused command was refused the first time too.
            if let Err(Refusal::Internal(fault)) = self.run(now, &command) {
                return Err(Refusal::Internal(fault));
            }
            self.actions.clear();
        }
        Ok(())
    }
}

fn broken(piece: usize, left: usize) -> Refusal {
    Refusal::Log(format!("piece {piece} of the journal is broken {left} bytes before its end"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A journal of pieces that hold these numbers of bytes.
    fn pieces(lengths: &[usize]) -> Vec<Vec<u8>> {
        let mut journal = Journal { held: Vec::new(), next: 1 };
        let piece = |length: &usize| {
            journal.held = vec![7; *length];
            journal.take()
        };
        lengths.iter().map(piece).collect()
    }

    fn refusal(bytes: &[u8]) -> String {
        match pieces_of(bytes) {
            Err(Refusal::Log(why)) => why,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_piece_that_is_missing_damaged_or_there_twice_is_named() {
        let four = pieces(&[9, 1, 300, 20]);
        let whole = pieces_of(&four.concat()).unwrap().whole.len();
        assert_eq!(whole, 4);
        let without = |gone: &[usize]| {
            let left = (0..4).filter(|i| !gone.contains(i)).map(|i| four[i].clone());
            refusal(&left.collect::<Vec<_>>().concat())
        };
        assert_eq!(without(&[0]), "piece 1 of the journal is missing: piece 2 follows");
        assert_eq!(without(&[1, 2]), "piece 2 to 3 of the journal is missing: piece 4 follows");
        let again = [four[0].clone(), four[1].clone(), four[1].clone()].concat();
        assert_eq!(refusal(&again), "piece 2 of the journal is there again, before piece 3");
        for at in 0..four[2].len() {
            let mut torn = four.clone();
            torn[2][at] ^= 1;
            let why = if at < HEADER_BYTES { "cut: piece 4 follows" } else { "damaged" };
            assert_eq!(refusal(&torn.concat()), format!("piece 3 of the journal is {why}"), "{at}");
        }
        let last =
            [&four[..3].concat(), &b"kvpiece\x01 that nobody wrote, and longer than a header"[..]].concat();
        assert_eq!(refusal(&last), "piece 4 of the journal is damaged");
    }

    #[test]
    fn a_cut_is_the_end_only_at_the_end() {
        let three = pieces(&[9, 300, 20]);
        let all = three.concat();
        let whole = three[0].len() + three[1].len();
        for end in 0..=all.len() {
            let found = pieces_of(&all[..end]).unwrap();
            let expected =
                [0, three[0].len(), whole, all.len()].iter().rposition(|ends| *ends <= end).unwrap();
            assert_eq!(found.whole.len(), expected, "{end}");
            assert_eq!(found.cut, end - three[..expected].concat().len());
        }
        for kept in 0..three[1].len() {
            let cut = [&three[0], &three[1][..kept], &three[2][..]].concat();
            let gone = if kept == 0 { "missing" } else { "cut" };
            assert_eq!(refusal(&cut), format!("piece 2 of the journal is {gone}: piece 3 follows"));
        }
    }

    #[test]
    fn what_is_taken_is_not_given_again() {
        let mut journal = Journal { held: vec![1], next: 1 };
        assert_eq!(journal.piece(), journal.take());
        assert_eq!((journal.piece(), journal.take(), journal.next), (vec![], vec![], 2));
    }
}
