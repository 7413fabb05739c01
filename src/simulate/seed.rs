//! Numbers that look random and repeat for a seed.
//!
//! `SplitMix64`: a counter and a mixing step, enough for ids and for the choices of the churn. It is
//! not for secrets.

/// A seeded sequence of numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seeded(u64);

impl Seeded {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, or 0 if that is 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        // The high half of a 128-bit product is below `bound`, so it fits.
        u64::try_from((u128::from(self.bits()) * u128::from(bound)) >> 64).unwrap_or(0)
    }

    /// One of `choices`, or `None` if there is none.
    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        let index = self.below(choices.len() as u64);
        usize::try_from(index).ok().and_then(|at| choices.get(at))
    }

    /// A runtime id: 64 hexadecimal digits.
    pub(crate) fn runtime_id(&mut self) -> String {
        let [a, b, c, d] = std::array::from_fn(|_| self.bits());
        format!("{a:016x}{b:016x}{c:016x}{d:016x}")
    }

    /// A pod uid in the form of a version 4 UUID.
    pub(crate) fn pod_uid(&mut self) -> String {
        let high = (self.bits() & !0xf000) | 0x4000;
        let low = (self.bits() & !(0b11 << 62)) | (0b10 << 62);
        format!(
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            high >> 32,
            (high >> 16) & 0xffff,
            high & 0xffff,
            low >> 48,
            low & 0xffff_ffff_ffff
        )
    }

    /// A suffix as the API server makes for pods of a workload: no vowels, nothing that misreads.
    pub(crate) fn name_suffix(&mut self, length: usize) -> String {
        const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
        (0..length)
            .filter_map(|_| self.pick(LETTERS).copied().map(char::from))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sequence_is_splitmix64() {
        // The first outputs for seed 1234567, as published with the algorithm's test vectors.
        let mut numbers = Seeded::new(1_234_567);
        assert_eq!(numbers.bits(), 6_457_827_717_110_365_317);
        assert_eq!(numbers.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn ids_have_the_shapes_of_a_real_runtime() {
        let mut numbers = Seeded::new(1);
        let id = numbers.runtime_id();
        assert_eq!(id.len(), 64);
        assert!(id.bytes().all(|byte| byte.is_ascii_hexdigit()));
        let uid = numbers.pod_uid();
        let parts: Vec<usize> = uid.split('-').map(str::len).collect();
        assert_eq!(parts, [8, 4, 4, 4, 12]);
        assert_eq!(uid.as_bytes()[14], b'4');
        assert!(b"89ab".contains(&uid.as_bytes()[19]));
    }

    #[test]
    fn a_bound_is_kept_and_reached() {
        let mut numbers = Seeded::new(3);
        let drawn: std::collections::BTreeSet<u64> = (0..200).map(|_| numbers.below(5)).collect();
        assert_eq!(drawn.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
        assert_eq!(numbers.below(0), 0);
    }
}
