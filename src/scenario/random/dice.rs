//! Chance from a seed: the same seed throws the same numbers on every machine.

use std::time::Duration;

/// `SplitMix64`: small, well mixed, and nothing to keep secret.
#[derive(Clone, Debug)]
pub(super) struct Dice(u64);

impl Dice {
    /// Seeds next to each other throw nothing alike.
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0xD134_2543_DE82_EF95))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// From 0 to `number` - 1; 0 of none. The bias of the remainder does not matter here.
    pub(super) fn below(&mut self, number: u64) -> u64 {
        self.next().checked_rem(number).unwrap_or(0)
    }

    /// From `least` to `most`.
    pub(super) fn between(&mut self, least: u64, most: u64) -> u64 {
        least.saturating_add(self.below(most.saturating_sub(least).saturating_add(1)))
    }

    pub(super) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).unwrap_or(0)
    }

    /// So many times in a hundred.
    pub(super) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(super) fn pick<T: Clone>(&mut self, from: &[T]) -> Option<T> {
        let index = self.index(from.len());
        from.get(index).cloned()
    }

    /// One of several, each as often as its weight says.
    pub(super) fn weighted<T: Copy>(&mut self, from: &[(u64, T)]) -> Option<T> {
        let mut left = self.below(from.iter().map(|(weight, _)| weight).sum());
        for (weight, choice) in from {
            match left.checked_sub(*weight) {
                None => return Some(*choice),
                Some(rest) => left = rest,
            }
        }
        None
    }

    /// Whole milliseconds, which is what timers tell apart.
    pub(super) fn millis(&mut self, least: u64, most: u64) -> Duration {
        Duration::from_millis(self.between(least, most))
    }
}
