//! What the runtime was: every change of the last minutes, each with what was before it.
//!
//! A past state is the present one with the changes since then taken back, so that remembering costs
//! a change's own size and nothing while nothing changes. Bounded in time and number; pure.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use super::World;
use super::fault::AsOf;
use super::world::Former;
use crate::lifecycle::Mono;

/// How far back it reaches unless asked otherwise.
pub(super) const REACH: Duration = Duration::from_mins(10);

/// The most changes kept, whatever the time: some 40 MB.
const MOST_CHANGES: usize = 65_536;

#[derive(Debug)]
pub(super) struct History {
    reach: Duration,
    changes: VecDeque<(Mono, Former)>,
    remembered: BTreeMap<Arc<str>, World>,
}

impl History {
    /// Zero keeps nothing.
    pub(super) fn new(reach: Duration) -> Self {
        Self {
            reach,
            changes: VecDeque::new(),
            remembered: BTreeMap::new(),
        }
    }

    /// Notes what was before the changes that were just made.
    pub(super) fn note(&mut self, now: Mono, former: impl IntoIterator<Item = Former>) {
        if self.reach.is_zero() {
            return;
        }
        self.changes
            .extend(former.into_iter().map(|former| (now, former)));
        while let Some((at, _)) = self.changes.front()
            && (now.since(*at) > self.reach || self.changes.len() > MOST_CHANGES)
        {
            self.changes.pop_front();
        }
    }

    pub(super) fn remember(&mut self, name: Arc<str>, world: World) {
        self.remembered.insert(name, world);
    }

    /// The world as it was. `None`: there is no such memory.
    pub(super) fn world(&self, now: Mono, world: &World, as_of: &AsOf) -> Option<World> {
        match as_of {
            AsOf::Remembered(name) => self.remembered.get(name).cloned(),
            AsOf::Ago(ago) => {
                let reach = u64::try_from(ago.as_nanos()).unwrap_or(u64::MAX);
                // What happened at the moment itself had happened then.
                let then = now.0.saturating_sub(reach);
                let mut past = world.clone();
                for (at, former) in self.changes.iter().rev() {
                    if at.0 <= then {
                        break;
                    }
                    past.take_back(former.clone());
                }
                Some(past)
            }
        }
    }
}
