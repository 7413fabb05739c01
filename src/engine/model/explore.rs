//! Breadth-first search over canonical states: the first violation found is one of the shortest.
//!
//! Only fingerprints and the steps that led to them are kept; a state is rebuilt from its steps
//! when its turn comes. Threads share each batch, and what they found is taken in in order, so that
//! the same bounds visit the same states, however many threads there are. No clock is read here: who
//! searches is asked before each batch whether to go on.

use std::collections::HashSet;
use std::fmt::{self, Write as _};
use std::hash::{BuildHasherDefault, Hasher};

use super::oracle::Violation;
use super::run::Run;
use super::scenario::scenario;
use super::step::Step;

const BATCH: usize = 512;
/// One state in so many, by its fingerprint, is watched for quiet: that takes long.
const WATCHED_FOR_QUIET: u128 = 512;
const NO_PARENT: u32 = u32::MAX;

/// A run that broke a property.
pub(crate) struct Counterexample {
    /// Where it began.
    pub start: &'static str,
    /// What happened.
    pub steps: Vec<Step>,
    /// What did not hold after the last step.
    pub violation: Violation,
    /// The same for `pleg replay`.
    pub scenario: String,
}

impl Counterexample {
    pub(crate) fn new(
        name: &'static str,
        start: &Run,
        steps: Vec<Step>,
        violation: Violation,
    ) -> Self {
        let scenario = scenario(name, start, &steps, &violation);
        Self {
            start: name,
            steps,
            violation,
            scenario,
        }
    }
}

impl fmt::Display for Counterexample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut steps = String::new();
        for step in &self.steps {
            writeln!(steps, "    {step:?},")?;
        }
        write!(
            f,
            "{} does not hold: {}\nfrom {:?}:\n{steps}\nas a scenario, for pleg replay:\n\n{}",
            self.violation.property, self.violation.detail, self.start, self.scenario
        )
    }
}

/// Where a search ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// After so many states.
    pub states: usize,
    /// After so many steps.
    pub depth: usize,
    /// Who shares the work; 1: nobody but the caller's own thread.
    pub threads: usize,
}

impl Bounds {
    #[allow(dead_code, reason = "for those who break a law on purpose")]
    /// So many states, of any depth, on the caller's own thread.
    pub(crate) fn states(states: usize) -> Self {
        Self {
            states,
            depth: usize::MAX,
            threads: 1,
        }
    }
}

/// How far a search came.
#[derive(Clone, Debug, Default)]
pub(crate) struct Explored {
    pub states: usize,
    pub rested: usize,
    pub depth: usize,
    /// Whether everything within the budget was visited.
    pub exhausted: bool,
    /// The most full relists that any state at rest needed.
    pub full_relists: u64,
}

#[derive(Clone, Copy)]
struct Node {
    parent: u32,
    step: Step,
}

/// A state that was reached, before it is known whether it is new.
struct Reached {
    fingerprint: u128,
    parent: u32,
    step: Step,
}

/// Fingerprints are hashes already.
#[derive(Default)]
struct AsIs(u64);

impl Hasher for AsIs {
    fn write(&mut self, _: &[u8]) {}
    fn write_u128(&mut self, value: u128) {
        self.0 = (value >> 64) as u64;
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

type Visited = HashSet<u128, BuildHasherDefault<AsIs>>;

struct Search<'a> {
    name: &'static str,
    start: &'a Run,
    threads: usize,
    nodes: Vec<Node>,
    visited: Visited,
}

/// Visits the states that can be reached from `start`, shortest ways first, for as long as there are
/// new ones, the bounds allow it and `goes_on` says so.
pub(crate) fn search(
    name: &'static str,
    start: &Run,
    bounds: Bounds,
    goes_on: &dyn Fn() -> bool,
) -> Result<Explored, Box<Counterexample>> {
    let mut search = Search {
        name,
        start,
        threads: bounds.threads.max(1),
        nodes: Vec::new(),
        visited: Visited::default(),
    };
    search.visited.insert(start.fingerprint());
    let mut explored = Explored {
        states: 1,
        ..Explored::default()
    };
    let mut level = vec![NO_PARENT];
    while !level.is_empty() {
        if explored.depth == bounds.depth {
            return Ok(explored);
        }
        let mut next = Vec::new();
        for batch in level.chunks(BATCH) {
            if explored.states >= bounds.states || !goes_on() {
                return Ok(explored);
            }
            for found in search.expand(batch)? {
                explored.rested += found.rested;
                explored.full_relists = explored.full_relists.max(found.full_relists);
                for reached in found.reached {
                    if search.visited.insert(reached.fingerprint) {
                        next.push(search.add(&reached));
                    }
                }
            }
            explored.states = search.visited.len();
        }
        explored.depth += 1;
        level = next;
    }
    explored.exhausted = true;
    Ok(explored)
}

#[derive(Default)]
struct Found {
    reached: Vec<Reached>,
    rested: usize,
    full_relists: u64,
}

impl Search<'_> {
    fn add(&mut self, reached: &Reached) -> u32 {
        let at = u32::try_from(self.nodes.len()).expect("fewer than 2^32 states fit in memory");
        self.nodes.push(Node {
            parent: reached.parent,
            step: reached.step,
        });
        at
    }

    fn expand(&self, batch: &[u32]) -> Result<Vec<Found>, Box<Counterexample>> {
        if self.threads == 1 {
            return Ok(vec![self.expand_each(batch)?]);
        }
        let share = batch.len().div_ceil(self.threads);
        std::thread::scope(|scope| {
            let workers: Vec<_> = batch
                .chunks(share)
                .map(|nodes| scope.spawn(move || self.expand_each(nodes)))
                .collect();
            workers
                .into_iter()
                .map(|worker| worker.join().expect("a worker does not panic"))
                .collect()
        })
    }

    fn expand_each(&self, nodes: &[u32]) -> Result<Found, Box<Counterexample>> {
        let mut found = Found::default();
        let mut known: Option<(u32, Run)> = None;
        for &node in nodes {
            let run = self.rebuild(node, &mut known);
            for step in run.steps() {
                let mut after = run.clone();
                let failed = |violation| self.counterexample(node, Some(step), violation);
                after.apply(step).map_err(failed)?;
                let fingerprint = after.fingerprint();
                if self.visited.contains(&fingerprint) {
                    continue;
                }
                if after.is_drained() {
                    let effort = after.rest().map_err(failed)?;
                    found.rested += 1;
                    found.full_relists = found.full_relists.max(effort.full_relists);
                    if fingerprint.is_multiple_of(WATCHED_FOR_QUIET) {
                        after.idle().map_err(failed)?;
                    }
                }
                found.reached.push(Reached {
                    fingerprint,
                    parent: node,
                    step,
                });
            }
        }
        Ok(found)
    }

    /// The state of a node. Its siblings come one after the other, so their parent is kept.
    fn rebuild(&self, node: u32, known: &mut Option<(u32, Run)>) -> Run {
        if node == NO_PARENT {
            return self.start.clone();
        }
        let Node { parent, step } = self.nodes[node as usize];
        if known.as_ref().is_none_or(|(of, _)| *of != parent) {
            let mut run = self.start.clone();
            for step in self.steps_to(parent) {
                run.apply(step).expect("it was taken before, and held");
            }
            *known = Some((parent, run));
        }
        let (_, run) = known.as_ref().expect("just put there");
        let mut run = run.clone();
        run.apply(step).expect("it was taken before, and held");
        run
    }

    fn steps_to(&self, mut node: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        while node != NO_PARENT {
            let Node { parent, step } = self.nodes[node as usize];
            steps.push(step);
            node = parent;
        }
        steps.reverse();
        steps
    }

    #[allow(
        clippy::unnecessary_box_returns,
        reason = "it goes into an error, which stays small"
    )]
    fn counterexample(
        &self,
        node: u32,
        last: Option<Step>,
        violation: Violation,
    ) -> Box<Counterexample> {
        let mut steps = self.steps_to(node);
        steps.extend(last);
        Box::new(Counterexample::new(self.name, self.start, steps, violation))
    }
}
