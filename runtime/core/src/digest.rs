//! Identities: what a page is, by all tokens up to its end.

use sha2::block_api::compress256;
use sha2::{Digest as _, Sha256};

use crate::names::KeyKind;

/// sha256(parent ‖ token ids as u32 little-endian), as in SGLang's hash scheme; of pairs, both ids of each.
pub type Digest = [u8; 32];

/// SHA-256's first state (FIPS 180-4, 5.3.3).
const INITIAL: [u32; 8] =
    [0x6a09_e667, 0xbb67_ae85, 0x3c6e_f372, 0xa54f_f53a, 0x510e_527f, 0x9b05_688c, 0x1f83_d9ab, 0x5be0_cd19];

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

/// A page's digest after `parent`, that of the page before it.
pub fn page_digest(kind: KeyKind, parent: &Digest, page: &[u8]) -> Digest {
    match kind {
        KeyKind::Tokens | KeyKind::Pairs => chained(parent, page),
        KeyKind::Digests => {
            let mut digest = [0; 32];
            digest.copy_from_slice(page);
            digest
        }
    }
}

/// The digests of consecutive pages of `width` bytes, the first of them after `parent`.
pub fn page_digests(kind: KeyKind, parent: &Digest, pages: &[u8], width: usize, out: &mut Vec<Digest>) {
    let mut parent = *parent;
    out.extend(pages.chunks_exact(width).map(|page| {
        parent = page_digest(kind, &parent, page);
        parent
    }));
}

/// Blocks of a page of 64 pairs of tokens, with what SHA-256 adds.
const SMALL: usize = 9;

/// sha256(parent ‖ page), FIPS 180-4. A small page is put together with its padding and compressed at once: the
/// hasher of `sha2` spends as much on its buffer as on hashing there.
fn chained(parent: &Digest, page: &[u8]) -> Digest {
    let length = parent.len() + page.len();
    let mut message = [[0; 64]; SMALL];
    // One bit and the length in bits come after it, at the end of a block.
    let Some(blocks) = message.get_mut(..(length + 9).div_ceil(64)) else {
        return Sha256::new_with_prefix(parent).chain_update(page).finalize().into();
    };
    let (head, rest) = blocks.as_flattened_mut().split_at_mut(parent.len());
    let (body, padding) = rest.split_at_mut(page.len());
    head.copy_from_slice(parent);
    body.copy_from_slice(page);
    padding[0] = 0x80;
    let end = padding.len() - 8;
    padding[end..].copy_from_slice(&(8 * length as u64).to_be_bytes());
    let mut state = INITIAL;
    compress256(&mut state, blocks);
    let mut digest = [0; 32];
    for (bytes, word) in digest.as_chunks_mut().0.iter_mut().zip(state) {
        *bytes = word.to_be_bytes();
    }
    digest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_s_digest_is_sha256_of_its_parent_and_its_little_endian_tokens() {
        let mut bytes = vec![7u8; 32];
        bytes.extend([1, 0, 0, 0, 0, 1, 0, 0]);
        let expected: Digest = Sha256::digest(&bytes).into();
        assert_eq!(page_digest(KeyKind::Tokens, &[7; 32], &bytes[32..]), expected);
        assert_eq!(page_digest(KeyKind::Pairs, &[7; 32], &bytes[32..]), expected);
    }

    #[test]
    fn a_page_of_any_length_is_hashed_as_the_library_would() {
        let bytes: Vec<u8> = (0..700u32).map(|i| (i * 7) as u8).collect();
        for len in 32..bytes.len() {
            let (parent, page) = bytes[..len].split_first_chunk().unwrap();
            let expected: Digest = Sha256::digest(&bytes[..len]).into();
            assert_eq!(page_digest(KeyKind::Tokens, parent, page), expected, "{len} bytes");
        }
    }

    #[test]
    fn consecutive_pages_are_chained_and_digests_are_taken_as_they_are() {
        let pages: Vec<u8> = (0..96).collect();
        let mut out = vec![[1; 32]];
        page_digests(KeyKind::Tokens, &[7; 32], &pages, 32, &mut out);
        let first = page_digest(KeyKind::Tokens, &[7; 32], &pages[..32]);
        let second = page_digest(KeyKind::Tokens, &first, &pages[32..64]);
        let third = page_digest(KeyKind::Tokens, &second, &pages[64..]);
        assert_eq!(out, [[1; 32], first, second, third]);

        out.clear();
        page_digests(KeyKind::Digests, &[7; 32], &pages, 32, &mut out);
        assert_eq!(out.concat(), pages);
    }

    #[test]
    fn namespace_and_secret_do_not_run_into_each_other() {
        assert_ne!(root_digest("ab", b"c"), root_digest("a", b"bc"));
        assert_ne!(root_digest("a", b""), root_digest("a", b"\0"));
    }
}
