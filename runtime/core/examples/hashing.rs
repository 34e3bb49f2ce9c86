//! What digests of pages cost against SHA-256 of the same crate over as many blocks at once: pairs of microseconds,
//! a line each. Arguments: tokens of a prompt, tokens of a page, repetitions.

use std::hint::black_box;
use std::time::Instant;

use _core::digest::page_digests;
use _core::names::KeyKind;
use sha2::{Digest, Sha256};

fn main() {
    let [tokens, page, repeat] =
        std::env::args().skip(1).map(|n| n.parse().unwrap()).collect::<Vec<usize>>()[..]
    else {
        panic!("three numbers: tokens of a prompt, tokens of a page, repetitions")
    };
    let key: Vec<u8> = (0..4 * tokens).map(|i| (i * 31 % 251) as u8).collect();
    let blocks = tokens / page * (32 + 4 * page + 9).div_ceil(64);
    let text: Vec<u8> = (0..64 * blocks - 9).map(|i| (i * 17 % 253) as u8).collect();
    let mut digests = Vec::with_capacity(tokens / page);
    for _ in 0..repeat {
        let started = Instant::now();
        digests.clear();
        page_digests(KeyKind::Tokens, &[7; 32], black_box(&key), 4 * page, &mut digests);
        black_box(&digests);
        let ours = started.elapsed();
        let started = Instant::now();
        black_box(Sha256::digest(black_box(&text)));
        let alone = started.elapsed();
        println!("{} {}", ours.as_secs_f64() * 1e6, alone.as_secs_f64() * 1e6);
    }
}
