//! Seeded choices: the same seed draws the same plan of pods and faults, though real time decides how
//! they meet.

use std::time::Duration;

/// `SplitMix64`.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64);

impl Chance {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below `bound`, which is not 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        u64::try_from((u128::from(self.bits()) * u128::from(bound)) >> 64).expect("below a u64")
    }

    pub(crate) fn index(&mut self, len: usize) -> usize {
        usize::try_from(self.below(len as u64)).expect("below a usize")
    }

    pub(crate) fn pick<'a, T>(&mut self, choices: &'a [T]) -> Option<&'a T> {
        (!choices.is_empty()).then(|| &choices[self.index(choices.len())])
    }

    pub(crate) fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    pub(crate) fn millis(&mut self, from: u64, to: u64) -> Duration {
        Duration::from_millis(from + self.below(to - from))
    }

    /// A sequence of its own, which draws on this one only once.
    pub(crate) fn fork(&mut self) -> Self {
        Self(self.bits())
    }
}

/// A deck of choices, shuffled anew each time it has been dealt: each kind comes soon, in no order.
pub(crate) struct Deck<T> {
    cards: Vec<T>,
    left: Vec<T>,
}

impl<T: Copy> Deck<T> {
    pub(crate) fn new(cards: Vec<T>) -> Self {
        Self {
            cards,
            left: Vec::new(),
        }
    }

    pub(crate) fn deal(&mut self, chance: &mut Chance) -> T {
        if self.left.is_empty() {
            self.left.clone_from(&self.cards);
        }
        let at = chance.index(self.left.len());
        self.left.swap_remove(at)
    }
}
