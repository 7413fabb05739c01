//! Every scenario under `scenarios/`, played; that playing is the same each time; that a wrong
//! expectation is found; and that the documents beside them say what is so.
#![cfg(feature = "scenarios")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use pleg::scenario::{
    At, Count, Delivered, DeliveredItem, EventLine, Played, PodExpect, Scenario, play,
    scenario_files,
};

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

fn files() -> Vec<PathBuf> {
    let mut files = scenario_files(&here("scenarios")).unwrap();
    files.retain(|file| {
        file.extension()
            .is_some_and(|extension| extension == "yaml")
    });
    assert!(files.len() >= 50, "only {} scenarios", files.len());
    files
}

fn load(name: &str) -> Scenario {
    Scenario::load(&here(&format!("scenarios/{name}.yaml"))).unwrap()
}

fn failures(played: &Played) -> String {
    let told = played.failures.iter().map(|failure| {
        let diff = failure.diff.as_deref().unwrap_or_default();
        format!(
            "line {}: {failure}: expected {}, got {}\n{diff}",
            failure.line, failure.expected, failure.got
        )
    });
    told.collect::<Vec<_>>().join("\n")
}

#[test]
fn each_scenario_passes() {
    let files = files();
    let next = std::sync::atomic::AtomicUsize::new(0);
    let bad = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while let Some(file) =
                    files.get(next.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
                {
                    let scenario = Scenario::load(file).unwrap_or_else(|error| panic!("{error}"));
                    let name = file.file_stem().unwrap().to_string_lossy().into_owned();
                    assert_eq!(scenario.name, name, "a scenario has the name of its file");
                    let played = play(&scenario).unwrap();
                    assert!(played.checks > 0, "{name} expects nothing");
                    if !played.passed() {
                        bad.lock()
                            .unwrap()
                            .push(format!("{name}:\n{}", failures(&played)));
                    }
                }
            });
        }
    });
    let bad = bad.into_inner().unwrap();
    assert!(bad.is_empty(), "{}", bad.join("\n\n"));
}

#[test]
fn the_same_scenario_gives_the_same_trace_to_the_byte() {
    for name in [
        "second-client-steals",
        "restart-of-the-runtime",
        "flapping-stream",
        "many-pods-change-at-once",
        "upgrade-in-flight",
    ] {
        let scenario = load(name);
        let bytes = || {
            let played = play(&scenario).unwrap();
            let mut bytes = played.trace.text(&played.names).into_bytes();
            played.trace.write_json_lines(&mut bytes).unwrap();
            bytes
        };
        let (once, again) = (bytes(), bytes());
        assert!(once.len() > 1_000, "{name}");
        assert!(once == again, "{name} differs between two runs");
    }
}

#[test]
fn a_trace_can_be_read_back() {
    let played = play(&load("half-way-status")).unwrap();
    let mut bytes = Vec::new();
    played.trace.write_json_lines(&mut bytes).unwrap();
    let entries: Vec<pleg::scenario::TraceEntry> = String::from_utf8(bytes)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    // What a subscriber's queue needs beside an event is its own affair, and not written down.
    assert_eq!(entries.len(), played.trace.entries.len());
}

/// Everything that says of a scenario what must be so, each altered into what must not.
fn alterations(scenario: &Scenario) -> Vec<(String, Scenario)> {
    let mut all = Vec::new();
    for (number, step) in scenario.steps.iter().enumerate() {
        let Some(expect) = &step.value.expect else {
            continue;
        };
        let mut alter = |what: &str, change: &dyn Fn(&mut pleg::scenario::Expect)| {
            let mut altered = scenario.clone();
            if let Some(expect) = &mut altered.steps[number].value.expect {
                change(&mut expect.value);
            }
            all.push((format!("{what} of step {number}"), altered));
        };
        match expect
            .value
            .delivered
            .as_ref()
            .map(|delivered| &delivered.value)
        {
            Some(Delivered::Exactly(items)) if items.is_empty() => {
                let wrong = first_event(scenario);
                alter("nothing delivered", &move |expect| {
                    let item = DeliveredItem::Event(wrong.clone());
                    expect.delivered = Some(At::from(Delivered::Exactly(vec![item])));
                });
            }
            Some(Delivered::Exactly(_)) => alter("what was delivered", &|expect| {
                let delivered = expect.delivered.as_mut();
                if let Some(Delivered::Exactly(items)) =
                    delivered.map(|delivered| &mut delivered.value)
                {
                    items.pop();
                }
            }),
            Some(Delivered::Number(_)) => alter("the number delivered", &|expect| {
                let wrong = Count {
                    least: 999_999,
                    most: 999_999,
                };
                expect.delivered = Some(At::from(Delivered::Number(wrong)));
            }),
            Some(Delivered::Anything) | None => {}
        }
        for pod in expect.value.cache.keys() {
            let pod = pod.clone();
            alter("the cache", &move |expect| {
                if let Some(shown) = expect.cache.get_mut(&pod) {
                    shown.value = match &shown.value {
                        PodExpect::Absent => PodExpect::Shows(pleg::scenario::PodShows::default()),
                        PodExpect::Shows(_) => PodExpect::Absent,
                    };
                }
            });
        }
        if expect.value.converged.is_some() {
            alter("converged", &|expect| {
                if let Some(converged) = &mut expect.converged {
                    converged.value = !converged.value;
                }
            });
        }
        if expect.value.mode.is_some() {
            alter("the mode", &|expect| {
                if let Some(mode) = &mut expect.mode {
                    mode.value = "Polling(Disabled)".to_owned().try_into().unwrap();
                }
            });
        }
        for name in expect.value.counters.keys() {
            let name = name.clone();
            alter("a counter", &move |expect| {
                if let Some(counter) = expect.counters.get_mut(&name) {
                    counter.value = Count {
                        least: 7_777_777,
                        most: 7_777_777,
                    };
                }
            });
        }
    }
    all
}

fn first_event(scenario: &Scenario) -> EventLine {
    let pod = scenario
        .initial
        .iter()
        .find_map(|action| match &action.value {
            pleg::scenario::Action::Run(run) => Some(run.pod.0.clone()),
            pleg::scenario::Action::RunMany(many) => Some(format!("{}-0", many.named)),
            _ => None,
        });
    format!("PodSync {}", pod.unwrap_or_else(|| "web".into()))
        .try_into()
        .unwrap()
}

#[test]
fn altering_any_right_value_makes_that_scenario_fail_where_it_was_altered() {
    let mut altered_in_all = 0;
    for name in [
        "relist-repeats-nothing",
        "old-sandbox-goes-live-pod-stays",
        "clock-steps-back",
        "late-event-of-a-removed-pod",
        "half-way-status",
    ] {
        let scenario = load(name);
        assert!(play(&scenario).unwrap().passed(), "{name}");
        for (what, altered) in alterations(&scenario) {
            let played = play(&altered).unwrap();
            assert!(!played.passed(), "{name} still passes with {what} altered");
            altered_in_all += 1;
        }
    }
    assert!(altered_in_all >= 30, "only {altered_in_all} alterations");
}

#[test]
fn a_failure_shows_what_was_expected_and_what_came() {
    let mut scenario = load("lost-exit-found-on-demand");
    let altered = scenario.steps.iter_mut().find_map(|step| {
        let delivered = step.value.expect.as_mut()?.value.delivered.as_mut()?;
        match &mut delivered.value {
            Delivered::Exactly(items) => items.iter_mut().find_map(|item| match item {
                DeliveredItem::Event(line) if line.code == Some(137) => Some(line),
                _ => None,
            }),
            _ => None,
        }
    });
    altered.expect("an event to alter").code = Some(1);
    let played = play(&scenario).unwrap();
    assert_eq!(played.failures.len(), 1, "{}", failures(&played));
    let diff = played.failures[0].diff.as_deref().unwrap();
    let lines: Vec<_> = diff.lines().collect();
    assert_eq!(lines[0], "  - Died web/app 1");
    assert!(
        lines[1].starts_with("  + Died web/app 137 Error by "),
        "{diff}"
    );
    assert!(played.failures[0].line > 0);
}

/// The ids that `COVERAGE.md` names in a table row, and where it says they are.
fn rows(document: &str) -> Vec<(String, String)> {
    document
        .lines()
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| ")?.split(" | ");
            let (id, place) = (cells.next()?.trim(), cells.next()?.trim());
            let is_id = id.chars().next()?.is_ascii_uppercase() && !id.contains(' ');
            is_id.then(|| (id.to_owned(), place.trim_end_matches(" |").to_owned()))
        })
        .collect()
}

#[test]
fn each_id_of_the_coverage_is_where_it_is_said_to_be() {
    let document = fs::read_to_string(here("scenarios/COVERAGE.md")).unwrap();
    let rows = rows(&document);
    assert!(rows.len() >= 120, "only {} ids", rows.len());
    let mut seen = BTreeSet::new();
    for (id, places) in &rows {
        assert!(seen.insert(id), "{id} is there twice");
        assert!(!places.is_empty(), "{id} is nowhere");
        if let Some(reason) = places.strip_prefix("deviation: ") {
            assert!(reason.len() > 20, "{id}: {reason:?} is no reason");
            continue;
        }
        for place in places.split(", ") {
            let place = place.trim_matches('`');
            if let Some(name) = place.strip_suffix(".yaml") {
                let covers = load(name).covers;
                assert!(
                    covers.contains(id),
                    "{name} does not say that it covers {id}"
                );
            } else if let Some((file, test)) = place.split_once("::") {
                let text = fs::read_to_string(here(file))
                    .unwrap_or_else(|error| panic!("{id}: {file}: {error}"));
                assert!(
                    text.contains(&format!("fn {test}(")),
                    "{id}: {file} has no test {test}"
                );
            } else {
                panic!("{id}: what is {place:?}?");
            }
        }
    }
    for file in files() {
        let scenario = Scenario::load(&file).unwrap();
        for id in &scenario.covers {
            let name = format!("`{}.yaml`", scenario.name);
            let row = rows.iter().find(|(row, _)| row == id);
            assert!(
                row.is_some_and(|(_, places)| places.contains(&name)),
                "{name} covers {id}, and the coverage does not say so"
            );
        }
    }
}
