//! One run on one runtime: load and faults, a rest, the judgement and its figures.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::chance::Chance;
use crate::companion::Companion;
use crate::driver::Driver;
use crate::faults::{Faults, OverAtLast, end_what_is_left};
use crate::judge::{Verdict, judge};
use crate::testbed::{Testbed, Version};
use crate::vitals::{growth, leaked, quarters};
use crate::watcher::{Vitals, Watcher};
use crate::workload::{Node, WORKERS};

/// How often the flight recording is read: it keeps ten minutes, or 32 MiB.
const RECORDING_PERIOD: Duration = Duration::from_secs(120);

/// How long the end of all lives, the return of the mode and the last news may take each.
const REST: Duration = Duration::from_secs(180);

pub(crate) struct Report {
    pub(crate) text: String,
    pub(crate) wrong: Vec<String>,
}

pub(crate) async fn run(
    version: Version,
    mut chance: Chance,
    seed: u64,
    lasts: Duration,
) -> Report {
    let bed = Testbed::start(version).await;
    let directory =
        Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("chaos-{}-{seed}", version.label()));
    fs::create_dir_all(&directory).expect("the target directory can be written");
    let node = Node::new(Driver::new(&bed.socket()));
    let companion = Companion::attach(&bed);
    let mut watcher = Watcher::start(&bed.endpoint(), &directory).await;
    until(REST, || watcher.mode() == right_mode(version)).await;
    let before = watcher.descriptors();
    let over = Arc::new(AtomicBool::new(false));
    let _over_at_last = OverAtLast(Arc::clone(&over));

    let mut helpers = tokio::task::JoinSet::new();
    let lister = node.clone();
    helpers.spawn(async move { lister.keep_listing().await });
    let janitor = node.clone();
    helpers.spawn(async move { janitor.keep_clean().await });
    let mut workers = tokio::task::JoinSet::new();
    for _ in 0..WORKERS {
        let (worker, chance, over) = (node.clone(), chance.fork(), Arc::clone(&over));
        workers.spawn(async move { worker.work(chance, over).await });
    }
    let faults = Faults::new(&bed, &node, &watcher, &over);
    let mut vitals = Vec::new();
    tokio::join!(
        faults.of_the_daemon(chance.fork()),
        faults.of_others(chance.fork()),
        measure(&watcher, &over, &mut vitals),
        read_recordings(&watcher, &over),
        async {
            sleep(lasts).await;
            over.store(true, Ordering::Relaxed);
        },
    );
    let all_lives_end = async { while workers.join_next().await.is_some() {} };
    let _ = tokio::time::timeout(REST, all_lives_end).await;
    workers.abort_all();
    let resting = rest(&node, &watcher, &companion, version, &mut chance);
    let mut wrong = Box::pin(resting).await;
    helpers.abort_all();

    let differences = companion.differences(&node.driver, REST).await;
    wrong.extend(differences.into_iter().map(|line| format!("cache: {line}")));
    watcher.look_at_the_recording().await;
    let (verdict, beside) = settled(&node, &watcher, &companion).await;
    let quarters = quarters(&vitals);
    match quarters {
        Some((first, last)) => wrong.extend(growth(first, last, lasts)),
        None => wrong.push("pleg was never measured".to_owned()),
    }
    let after = watcher.descriptors();
    wrong.extend(leaked(&before, &after));
    wrong.extend(complaints_of("pleg watch", &verdict));
    wrong.extend(complaints_of("beside", &beside));
    let (strange, said) = watcher.asides();
    wrong.extend(strange.into_iter().map(|line| format!("printed: {line}")));
    let mut text = figures(version, &node, &watcher, &verdict, &beside, quarters);
    let counters = companion.stats().await.engine.counters;
    let _ = writeln!(
        text,
        "  beside: missed {:?}, ignored {:?}, contradictions {:?}, doubts {}, streams {}, relists {}",
        counters.missed,
        counters.ignored,
        counters.contradictions,
        counters.doubts,
        counters.streams_opened,
        counters.relists
    );
    let _ = writeln!(
        text,
        "  pleg watch, at rest before and after: descriptors {before:?} and {after:?}"
    );
    let keeps = std::env::var_os("PLEG_CHAOS_KEEP").is_some();
    if !wrong.is_empty() || keeps {
        keep(&directory, &node, &watcher, &companion, &said);
    }
    if !watcher.end().await {
        wrong.push("pleg watch did not end well".to_owned());
    }
    if wrong.is_empty() && !keeps {
        let _ = fs::remove_dir_all(&directory);
    }
    drop(watcher);
    if !bed.stop() {
        wrong.push("the test bed was not cleaned up".to_owned());
    }
    let ids: Vec<String> = node.record.lock().lives.keys().cloned().collect();
    let orphans = end_what_is_left(ids.into_iter());
    let _ = writeln!(text, "  processes that had outlived their shims: {orphans}");
    let label = version.label();
    let wrong = wrong.into_iter().map(|line| format!("{label}: {line}"));
    Report {
        text,
        wrong: wrong.collect(),
    }
}

/// Leaves some pods, and lets a few others come and go until the mode is what it should be: trust in a
/// stream comes back by events. Says what is wrong with the modes then.
async fn rest(
    node: &Node,
    watcher: &Watcher,
    companion: &Companion,
    version: Version,
    chance: &mut Chance,
) -> Vec<String> {
    node.clean(Duration::ZERO).await;
    for _ in 0..3 {
        let _ = node.stay(chance).await;
    }
    let right = right_mode(version);
    let right_beside = match version {
        Version::Containerd17 => "Polling(Disabled)",
        _ => right,
    };
    let is_right = || watcher.mode() == right && companion.mode() == right_beside;
    let begun = Instant::now();
    while !is_right() && Instant::now().duration_since(begun) < REST {
        let _ = node.life(chance).await;
        sleep(Duration::from_secs(1)).await;
    }
    if is_right() {
        return Vec::new();
    }
    let (mode, beside) = (watcher.mode(), companion.mode());
    vec![format!("the mode is {mode}, and {beside} beside")]
}

/// How `pleg watch` follows this runtime while all is well.
fn right_mode(version: Version) -> &'static str {
    match version {
        Version::Containerd16 => "Polling(Unsupported)",
        Version::Containerd17 | Version::Containerd21 => "Evented",
    }
}

/// Waits until it is so, but no longer than this.
async fn until(within: Duration, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() && Instant::now().duration_since(begun) < within {
        sleep(Duration::from_millis(50)).await;
    }
}

/// The judgement on both, once nothing is missing any more or the time for that is over.
async fn settled(node: &Node, watcher: &Watcher, companion: &Companion) -> (Verdict, Verdict) {
    let begun = Instant::now();
    loop {
        node.list().await;
        let record = node.record.lock().clone();
        let verdict = judge(&record, &watcher.told(), &watcher.shown().0);
        let beside = judge(&record, &companion.told(), &companion.shown());
        let all_told = verdict.lost.is_empty() && beside.lost.is_empty();
        if all_told || Instant::now().duration_since(begun) > REST {
            return (verdict, beside);
        }
        sleep(Duration::from_secs(2)).await;
    }
}

async fn measure(watcher: &Watcher, over: &AtomicBool, vitals: &mut Vec<Vitals>) {
    while !over.load(Ordering::Relaxed) {
        sleep(Duration::from_secs(1)).await;
        vitals.extend(watcher.vitals());
    }
}

async fn read_recordings(watcher: &Watcher, over: &AtomicBool) {
    let mut next = Instant::now() + RECORDING_PERIOD;
    while !over.load(Ordering::Relaxed) {
        sleep(Duration::from_millis(200)).await;
        if Instant::now() >= next {
            watcher.look_at_the_recording().await;
            next = Instant::now() + RECORDING_PERIOD;
        }
    }
}

fn complaints_of(who: &str, verdict: &Verdict) -> Vec<String> {
    let lines = |what: &'static str, lines: &[String]| {
        let first = lines.iter().take(5);
        let first = first.map(|line| format!("{who} {what}: {line}"));
        first.collect::<Vec<_>>()
    };
    let mut all = lines("lost", &verdict.lost);
    all.extend(lines("repeated", &verdict.repeated));
    all.extend(lines("untrue", &verdict.untrue));
    all
}

fn figures(
    version: Version,
    node: &Node,
    watcher: &Watcher,
    verdict: &Verdict,
    beside: &Verdict,
    quarters: Option<(Vitals, Vitals)>,
) -> String {
    let record = node.record.lock();
    let mut text = format!("containerd {}\n", version.label());
    let faults = record.faults.iter();
    let faults: Vec<String> = faults
        .map(|(kind, count)| format!("{kind} {count}"))
        .collect();
    let _ = writeln!(text, "  faults: {}", faults.join(", "));
    let (answered, failed) = record.calls;
    let subjects = record.lives.len();
    let _ = writeln!(
        text,
        "  calls: {answered} answered, {failed} failed; subjects: {subjects}, reappeared {}",
        record.reappeared
    );
    for (who, verdict) in [("pleg watch", verdict), ("beside", beside)] {
        let _ = writeln!(
            text,
            "  {who}: transitions {}, delivered {}, lost {}, repeated {}, untrue {}, \
             unseen {}, stepped back {}",
            verdict.transitions,
            verdict.delivered,
            verdict.lost.len(),
            verdict.repeated.len(),
            verdict.untrue.len(),
            verdict.unseen,
            verdict.steps_back
        );
        for (mode, delay) in &verdict.delays {
            let _ = writeln!(
                text,
                "    worst delay, {mode}: {:.2} s undisturbed, {:.2} s at all",
                delay.calm.as_secs_f64(),
                delay.any.as_secs_f64()
            );
        }
    }
    let (shown, gaps) = watcher.shown();
    let _ = writeln!(
        text,
        "  shown to pleg watch: {} subjects in {} lists and {} events; recordings with a gap {gaps}",
        shown.subjects.len(),
        shown.lists,
        shown.events
    );
    let _ = writeln!(
        text,
        "  modes: {:?}, now {}",
        watcher.modes(),
        watcher.mode()
    );
    if let Some((first, last)) = quarters {
        let _ = writeln!(
            text,
            "  pleg watch, first and last quarter: RSS {} and {} KiB, descriptors {} and {}",
            first.rss_kib, last.rss_kib, first.fds, last.fds
        );
    }
    text
}

/// Leaves what explains a failure.
fn keep(directory: &Path, node: &Node, watcher: &Watcher, companion: &Companion, said: &[String]) {
    let write = |name: &str, lines: String| {
        let path: PathBuf = directory.join(name);
        fs::write(&path, lines).expect("the target directory can be written");
    };
    let _ = fs::copy(watcher.recording(), directory.join("at-the-end.jsonl"));
    write("record.txt", format!("{:#?}", node.record.lock()));
    let lines = |told: Vec<crate::judge::Telling>| {
        let lines = told.iter().map(|event| format!("{event:?}\n"));
        lines.collect::<String>()
    };
    write("told.txt", lines(watcher.told()));
    write("told-beside.txt", lines(companion.told()));
    write("said.txt", said.join("\n"));
}
