//! What a report shows of a run.

use super::escape::escape;
use super::history::History;
use super::lane::{Gravity, RowKey};
use super::scale::{Scale, roughly};
use super::*;
use crate::lifecycle::{LifecycleKind, ReportedState, Source};
use crate::scenario::{Played, Scenario, play};
use std::time::Duration;

const STORY: &str = "
version: 1
name: report
story: a container dies unseen, comes back and is removed with its pod
initial:
  - run: {pod: web, containers: [app, envoy]}
  - runMany: {named: p, pods: 11, containers: [app]}
steps:
  - at: 20s
    do: [lose: {next: 1, type: STOPPED}, exit: {container: web/app, code: 137, reason: OOMKilled}]
    expect: {delivered: anything}
  - at: 60s
    do: [emit: {typeNumber: 7, about: p-2/app}, runContainer: web/app]
  - at: 70s
    do: [removePod: web]
  - at: 80s
    expect: {delivered: anything}
";

fn played() -> Played {
    let scenario = Scenario::parse(STORY).unwrap();
    let played = play(&scenario).unwrap();
    assert!(played.passed(), "{:?}", played.failures);
    played
}

fn page(trace: &Trace, names: &Names, failures: Vec<(Option<Mono>, String)>) -> String {
    let mut report = Report::default();
    report.add(&Section {
        title: "report.yaml",
        is_good: failures.is_empty(),
        remark: "",
        failures,
        trace,
        names,
        began: Mono(0),
        ended: Mono(80_000_000_000),
    });
    let mut page = Vec::new();
    report.write(&mut page).unwrap();
    String::from_utf8(page).unwrap()
}

fn history(played: &Played) -> History {
    History::new(&played.trace, &played.names, Mono(80_000_000_000))
}

#[test]
fn each_pod_has_a_lane_those_with_a_miss_or_a_contradiction_first() {
    let history = history(&played());
    let names: Vec<_> = history.lanes.iter().map(|lane| &*lane.name).collect();
    let expected = [
        "p-2", "web", "p-0", "p-1", "p-3", "p-4", "p-5", "p-6", "p-7", "p-8", "p-9", "p-10",
    ];
    assert_eq!(names, expected);
    let [first, second, ..] = &history.lanes[..] else {
        panic!("{} lanes", history.lanes.len());
    };
    assert_eq!(first.count(Gravity::Contradiction), 1);
    assert_eq!(second.count(Gravity::Miss), 1);
}

#[test]
fn the_phases_of_all_attempts_of_a_container_share_a_row() {
    let history = history(&played());
    let web = history
        .lanes
        .iter()
        .find(|lane| lane.name == "web")
        .unwrap();
    let row = &web.rows[&RowKey::Container("app".into())];
    let phases: Vec<_> = row
        .bars
        .iter()
        .map(|bar| (&*bar.words, bar.state, bar.is_failure))
        .collect();
    assert!(phases.contains(&("app#0 running", ReportedState::Running, false)));
    assert!(phases.contains(&("app#0 exited 137 OOMKilled", ReportedState::Exited, true)));
    assert!(phases.contains(&("app#1 running", ReportedState::Running, false)));
    assert!(row.bars.iter().all(|bar| bar.from <= bar.until));
    let died = row
        .marks
        .iter()
        .find(|mark| mark.kind == LifecycleKind::ContainerDied)
        .unwrap();
    assert_eq!(died.source, Source::Relist);
    assert!(row.bars.iter().all(|bar| bar.until <= Mono(71_000_000_000)));
}

#[test]
fn every_delivered_event_is_a_mark_and_every_trouble_is_seen() {
    let played = played();
    let page = page(&played.trace, &played.names, Vec::new());
    let (_, chart) = page.split_once("<main>").unwrap();
    assert_eq!(chart.matches("class=\"mark ").count(), played.delivered);
    assert_eq!(chart.matches("class=\"lane\"").count(), 12);
    // Once in its lane, once above all lanes.
    assert_eq!(chart.matches("class=\"trouble miss\"").count(), 2);
    assert_eq!(chart.matches("class=\"trouble contra\"").count(), 2);
    assert!(chart.contains("1 missed") && chart.contains("1 contradicted"));
    assert!(chart.contains("band evented") && chart.contains("band period"));
    assert!(chart.contains("class=\"relist\""));
}

#[test]
fn the_same_run_gives_the_same_file() {
    let (first, again) = (played(), played());
    assert_eq!(
        page(&first.trace, &first.names, Vec::new()),
        page(&again.trace, &again.names, Vec::new())
    );
}

#[test]
fn nothing_that_a_runtime_says_becomes_markup() {
    let hostile = "</title></svg><script>alert(1)</script>\\\" onload='x'&{{sections}}";
    let json = serde_json::to_string(&played().trace).unwrap();
    let json = json
        .replace("\"web\"", &format!("\"{hostile}\""))
        .replace("\"app\"", &format!("\"{hostile}\""))
        .replace("\"OOMKilled\"", &format!("\"{hostile}\""));
    let trace: Trace = serde_json::from_str(&json).unwrap();
    let page = page(
        &trace,
        &Names::default(),
        vec![(Some(Mono(1)), "<b>wrong</b>".to_owned())],
    );
    assert!(page.contains("&lt;script&gt;alert(1)"));
    assert!(!page.contains("<script>alert"));
    assert!(!page.contains("<b>wrong"));
    assert!(!page.contains("onload='"));
    assert_eq!(page.matches("<script>").count(), 1);
    assert_eq!(page.matches("<main>").count(), 1);
}

#[test]
fn what_would_not_be_seen_is_escaped_too() {
    assert_eq!(
        escape("a<b>\"c\"&'d'"),
        "a&lt;b&gt;&quot;c&quot;&amp;&#39;d&#39;"
    );
    assert_eq!(
        escape("a\u{1b}[2J\0\u{202e}b\nc"),
        "a\u{fffd}[2J\u{fffd}\u{fffd}b\nc"
    );
}

#[test]
fn what_was_not_as_expected_is_told_and_drawn() {
    let played = played();
    let failures = vec![(Some(Mono(20_000_000_000)), "the mode".to_owned())];
    let page = page(&played.trace, &played.names, failures);
    assert!(page.contains("at 20.000s: the mode"));
    assert!(page.contains("class=\"failure\""));
    assert!(page.contains("1 replay, 1 not as expected"));
}

#[test]
fn a_run_of_nothing_and_a_file_that_cannot_be_played_have_a_section() {
    let mut report = Report::default();
    report.add_unplayed("broken.yaml", "line 3: <what>");
    report.add(&Section {
        title: "empty.jsonl",
        is_good: true,
        remark: "exact",
        failures: Vec::new(),
        trace: &Trace::default(),
        names: &Names::default(),
        began: Mono(5),
        ended: Mono(5),
    });
    let mut page = Vec::new();
    report.write(&mut page).unwrap();
    let page = String::from_utf8(page).unwrap();
    assert!(page.contains("line 3: &lt;what&gt;"));
    assert!(page.contains("0 events · 0 pods · 0.000s · exact"));
    assert!(page.contains("2 replays, 1 not as expected"));
}

#[test]
fn the_axis_has_a_handful_of_labels_however_long_the_run_was() {
    for seconds in [0, 1, 53, 90, 400, 86_400, 604_800, 100_000_000] {
        let scale = Scale::new(Mono(7), Mono(7).after(Duration::from_secs(seconds)));
        let ticks = scale.ticks();
        assert!((2..=13).contains(&ticks.len()), "{seconds}: {ticks:?}");
    }
    assert_eq!(roughly(Duration::from_millis(250)), "250ms");
    assert_eq!(roughly(Duration::from_secs(90)), "1m30s");
    assert_eq!(roughly(Duration::from_secs(21_600)), "6h");
}
