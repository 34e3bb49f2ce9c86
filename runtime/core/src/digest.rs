//! Identities: page digests (what a page is) and the multiset hash (what the state is).

use sha2::{Digest as _, Sha256};

/// sha256(parent ‖ token ids as u32 little-endian), as in SGLang's hash scheme.
pub type Digest = [u8; 32];

/// The root under which a namespace's pages hang: every field is length-prefixed, so that no two
/// choices of fields encode alike.
pub fn root_digest(namespace: &str, secret: &[u8]) -> Digest {
    let mut sha = Sha256::new();
    sha.update(b"kvctl-namespace-v1");
    for part in [namespace.as_bytes(), secret] {
        sha.update((part.len() as u64).to_le_bytes());
        sha.update(part);
    }
    sha.finalize().into()
}

pub fn page_digest(parent: &Digest, tokens: &[u32]) -> Digest {
    let mut sha = Sha256::new();
    sha.update(parent);
    sha.update(as_le_bytes(tokens).as_ref());
    sha.finalize().into()
}

#[cfg(target_endian = "little")]
fn as_le_bytes(tokens: &[u32]) -> &[u8] {
    // Safety: u32 has no padding, any alignment suits bytes, and the length is exact.
    unsafe { std::slice::from_raw_parts(tokens.as_ptr().cast(), size_of_val(tokens)) }
}

#[cfg(target_endian = "big")]
fn as_le_bytes(tokens: &[u32]) -> Vec<u8> {
    tokens.iter().flat_map(|t| t.to_le_bytes()).collect()
}

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

    /// Half of it is as good as all of it here, and being a hash already it needs no step for each word.
    pub fn digest(&mut self, digest: &Digest) {
        let (head, _) = digest.as_chunks::<8>();
        self.word(u64::from_le_bytes(head[0]));
        self.b ^= u64::from_le_bytes(head[1]);
    }

    pub fn text(&mut self, text: &str) {
        self.word(text.len() as u64);
        self.word(xxhash_rust::xxh3::xxh3_64(text.as_bytes()));
    }

    pub fn finish(self) -> u128 {
        let a = fold(self.a ^ self.b.rotate_left(32), 0xE703_7ED1_A0B4_28DB);
        let b = fold(self.b ^ self.a.rotate_left(17), 0x8EBC_6AF0_9C88_C6E3);
        (a as u128) << 64 | b as u128
    }
}

/// High and low half of the product, folded (the mixing step of wyhash). `| 1` keeps zero from absorbing.
fn fold(x: u64, y: u64) -> u64 {
    let product = (x | 1) as u128 * y as u128;
    (product as u64) ^ (product >> 64) as u64 ^ x.rotate_left(31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_digest_is_sha256_of_parent_and_little_endian_tokens() {
        let mut bytes = vec![7u8; 32];
        bytes.extend([1, 0, 0, 0, 0, 1, 0, 0]);
        let expected: Digest = Sha256::digest(&bytes).into();
        assert_eq!(page_digest(&[7; 32], &[1, 256]), expected);
    }

    #[test]
    fn namespace_and_secret_do_not_run_into_each_other() {
        assert_ne!(root_digest("ab", b"c"), root_digest("a", b"bc"));
        assert_ne!(root_digest("a", b""), root_digest("a", b"\0"));
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
