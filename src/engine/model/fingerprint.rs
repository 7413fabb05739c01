//! A 128-bit hash of a state: at tens of millions of states the chance that two share one is far
//! below that of a bit flip, so that only fingerprints have to be kept.

use std::hash::Hasher;

const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;

pub(super) struct Fingerprint(u128);

impl Default for Fingerprint {
    fn default() -> Self {
        Self(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d)
    }
}

impl Fingerprint {
    pub(super) fn value(&self) -> u128 {
        let mixed =
            (self.0 ^ (self.0 >> 67)).wrapping_mul(0x9e37_79b9_7f4a_7c15_f39c_c060_5ced_c835);
        mixed ^ (mixed >> 61)
    }

    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ u128::from(word)).wrapping_mul(PRIME);
        self.0 = self.0.rotate_left(59);
    }
}

impl Hasher for Fingerprint {
    fn write(&mut self, bytes: &[u8]) {
        let mut words = bytes.chunks_exact(8);
        for word in &mut words {
            let mut whole = [0; 8];
            whole.copy_from_slice(word);
            self.word(u64::from_le_bytes(whole));
        }
        let rest = words.remainder();
        if !rest.is_empty() {
            let mut padded = [0; 8];
            padded[..rest.len()].copy_from_slice(rest);
            self.word(u64::from_le_bytes(padded));
        }
        self.word(bytes.len() as u64);
    }

    fn write_u8(&mut self, value: u8) {
        self.word(u64::from(value));
    }

    fn write_u32(&mut self, value: u32) {
        self.word(u64::from(value));
    }

    fn write_u64(&mut self, value: u64) {
        self.word(value);
    }

    fn write_usize(&mut self, value: usize) {
        self.word(value as u64);
    }

    fn finish(&self) -> u64 {
        self.value() as u64
    }
}
