//! Hashing records into a sum: order does not matter, and a change costs two terms.

/// Hash of one record, to be summed with all others: order does not matter, and a change costs two terms.
pub struct Mixer {
    a: u64,
    b: u64,
}

impl Mixer {
    pub fn new(tag: u64, id: u64) -> Self {
        let mut mixer = Mixer { a: 0x9E37_79B9_7F4A_7C15, b: 0xC2B2_AE3D_27D4_EB4F };
        mixer.word(tag);
        mixer.word(id);
        mixer
    }

    pub fn word(&mut self, word: u64) {
        self.a = fold(self.a ^ word, 0xD6E8_FEB8_6659_FD93);
        self.b = fold(self.b.wrapping_add(word).rotate_left(23), 0xA076_1D64_78BD_642F);
    }

    pub fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        let bytes = text.as_bytes();
        match bytes.len() {
            0 => {}
            // Most names are short, and then their bytes say as much as a hash of them.
            1..=8 => self.word(short_word(bytes)),
            9..=16 => {
                self.word(short_word(&bytes[..8]));
                self.word(short_word(&bytes[8..]));
            }
            _ => self.word(xxhash_rust::xxh3::xxh3_64(bytes)),
        }
    }

    pub fn finish(self) -> u128 {
        let a = fold(self.a ^ self.b.rotate_left(32), 0xE703_7ED1_A0B4_28DB);
        let b = fold(self.b ^ self.a.rotate_left(17), 0x8EBC_6AF0_9C88_C6E3);
        (a as u128) << 64 | b as u128
    }
}

/// At most eight bytes, as a number.
fn short_word(bytes: &[u8]) -> u64 {
    bytes.iter().rev().fold(0, |word, byte| word << 8 | *byte as u64)
}

/// Two words and a number of what they belong to, well mixed: a hash of something small and frequent.
#[inline]
pub fn mix(x: u64, y: u64, whose: u64) -> u128 {
    let (a, b) = lanes(x, y, whose);
    (a as u128) << 64 | b as u128
}

/// The same of three words.
#[inline]
pub fn mix3(x: u64, y: u64, z: u64, whose: u64) -> u128 {
    let (a, b) = lanes(x, y, whose);
    let (a, b) = (fold(a ^ z, 0xA076_1D64_78BD_642F), fold(b ^ z, 0xD6E8_FEB8_6659_FD93));
    (a as u128) << 64 | b as u128
}

/// Two hashes. In one of them `x` is turned: else a bit could change places between `x` and `whose`, and neither
/// would tell.
#[inline(always)]
fn lanes(x: u64, y: u64, whose: u64) -> (u64, u64) {
    let (a, b) = (whose ^ x.rotate_left(29), whose.wrapping_add(x).rotate_left(23));
    let a = fold(fold(a, 0xD6E8_FEB8_6659_FD93) ^ y, 0xE703_7ED1_A0B4_28DB);
    let b = fold(fold(b, 0xA076_1D64_78BD_642F) ^ y, 0x8EBC_6AF0_9C88_C6E3);
    (a, b)
}

/// High and low half of the product, folded (the mixing step of wyhash). `| 1` keeps zero from absorbing.
#[inline]
pub(crate) fn fold(x: u64, y: u64) -> u64 {
    let product = (x | 1) as u128 * y as u128;
    (product as u64) ^ (product >> 64) as u64 ^ x.rotate_left(31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_terms_tell_neighbours_apart() {
        let mut seen = std::collections::HashSet::new();
        for x in 0..40 {
            for y in 0..40 {
                for whose in 0..40 {
                    assert!(seen.insert(mix(x << 32, y, whose)));
                    assert!(seen.insert(mix(x | 1 << 20, y, whose)));
                    assert!(seen.insert(mix3(x | 1 << 20, y, 41, whose)));
                    assert!(seen.insert(mix3(x << 32, y, 41, whose)));
                    assert!(seen.insert(mix3(x << 32, 41, y, whose)));
                }
            }
        }
    }

    #[test]
    fn mixer_tells_neighbouring_records_apart() {
        let mut seen = std::collections::HashSet::new();
        for tag in 0..4 {
            for id in 0..64 {
                for word in 0..64 {
                    let mut mixer = Mixer::new(tag, id);
                    mixer.word(word);
                    assert!(seen.insert(mixer.finish()));
                }
            }
        }
    }
}
