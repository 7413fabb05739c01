//! Random simulation: scenarios from seeds, played and judged; a seed that fails is made as small as it
//! still fails and given as a scenario that can be replayed.
//!
//! A seed gives the same scenario everywhere, and a scenario the same outcome. Nothing here plays or
//! judges by itself: the player does, as with any scenario file, so that what is printed fails by
//! `pleg replay` as it failed here.

mod dice;
mod faults;
mod generate;
mod node;
mod shrink;

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::file::Scenario;
use super::player::{Failure, Played, play};

/// The scenario of a seed.
#[must_use]
pub fn scenario(seed: u64) -> Scenario {
    generate::generate(seed).scenario
}

/// A seed that failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Finding {
    /// The seed.
    pub seed: u64,
    /// What was not as it should be, first things first.
    pub why: String,
    /// The scenario, as small as it still fails.
    pub scenario: Scenario,
    /// How many scenarios were played to make it so small.
    pub plays: usize,
}

/// What became of one seed.
#[derive(Clone, Debug)]
pub enum Simulated {
    /// All laws held.
    Lawful(Box<Played>),
    /// They did not.
    Failed(Box<Finding>),
}

/// Plays the scenario of a seed; makes it small if it fails.
///
/// # Errors
/// If no event loop can be made for it.
pub fn simulate(seed: u64) -> io::Result<Simulated> {
    let generated = generate::generate(seed);
    let outcome = play_through(&generated.scenario)?;
    let Err(failure) = outcome.verdict() else {
        return Ok(Simulated::Lawful(Box::new(outcome.played)));
    };
    let smallest = shrink::smallest(&generated, &failure)?;
    Ok(Simulated::Failed(Box::new(Finding {
        seed,
        why: failure.to_string(),
        scenario: smallest.scenario,
        plays: smallest.plays,
    })))
}

/// What came of playing a scenario to its end, if need be a bad one.
#[derive(Debug)]
struct Outcome {
    played: Played,
    panicked: Option<String>,
}

/// The first thing that was wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wrong {
    /// The law or the expectation; by it two failures are the same.
    law: String,
    told: String,
}

impl std::fmt::Display for Wrong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.told)
    }
}

impl Outcome {
    fn verdict(&self) -> Result<(), Wrong> {
        if let Some(panicked) = &self.panicked {
            return Err(Wrong {
                law: "nothing panics".to_owned(),
                told: format!("a panic: {panicked}"),
            });
        }
        match self.played.failures.first() {
            None => Ok(()),
            Some(failure) => Err(wrong(failure)),
        }
    }

    /// Whether it is wrong in this way too.
    fn is_wrong_as(&self, law: &str) -> bool {
        let laws = self
            .played
            .failures
            .iter()
            .map(|failure| failure.expected.as_str());
        laws.chain(self.panicked.is_some().then_some("nothing panics"))
            .any(|broken| broken == law)
    }
}

fn wrong(failure: &Failure) -> Wrong {
    Wrong {
        law: failure.expected.clone(),
        told: format!(
            "{failure}: expected {}, got {}",
            failure.expected, failure.got
        ),
    }
}

fn play_through(scenario: &Scenario) -> io::Result<Outcome> {
    match catch_unwind(AssertUnwindSafe(|| play(scenario))) {
        Ok(played) => Ok(Outcome {
            played: played?,
            panicked: None,
        }),
        Err(panic) => Ok(Outcome {
            played: Played::default(),
            panicked: Some(words(&*panic)),
        }),
    }
}

fn words(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "without words".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::action::Action;
    use crate::scenario::values::{At, Count};

    /// The first seed whose story ends a stream, with the false expectation that none ends.
    fn failing() -> generate::Generated {
        (1..)
            .map(generate::generate)
            .find_map(|mut generated| {
                let scenario = &mut generated.scenario;
                let mut actions = scenario.steps.iter().flat_map(|step| &step.value.actions);
                let ends = |action: &At<Action>| matches!(action.value, Action::BreakStream(_));
                if scenario.settings.evented == Some(false) || !actions.any(ends) {
                    return None;
                }
                let expect = scenario.steps.last_mut()?.value.expect.as_mut()?;
                let none = Count { least: 0, most: 0 };
                let name = "streamsEnded".to_owned();
                expect.value.counters.insert(name, At::from(none));
                expect.value.lawful = None;
                let is_broken = play_through(scenario).unwrap().verdict().is_err();
                is_broken.then_some(generated)
            })
            .unwrap()
    }

    #[test]
    fn a_failing_story_is_made_small_and_fails_as_it_did() {
        let generated = failing();
        let wrong = play_through(&generated.scenario)
            .unwrap()
            .verdict()
            .unwrap_err();
        let smallest = shrink::smallest(&generated, &wrong).unwrap();
        let left = |scenario: &Scenario, rest: usize| {
            let steps = scenario.steps.iter().take(scenario.steps.len() - rest);
            let done: usize = steps.map(|step| step.value.actions.len()).sum();
            done + scenario.initial.len()
        };
        let rest = generated.scenario.steps.len() - generated.rest;
        assert!(left(&generated.scenario, rest) > 3);
        assert!(
            left(&smallest.scenario, rest) <= 3,
            "{}",
            smallest.scenario.to_yaml()
        );
        let written = Scenario::parse(&smallest.scenario.to_yaml()).unwrap();
        let again = play_through(&written).unwrap().verdict().unwrap_err();
        assert_eq!(again.law, wrong.law);
    }
}
