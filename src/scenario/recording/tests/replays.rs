//! A replay tells what the live run told.

use super::*;
use crate::engine::Mode;
use crate::simulate::{Character, StreamEnd};

fn busy(character: Character, seed: u64) -> SimulatedRuntime {
    SimulatedRuntime::builder()
        .character(character)
        .busy_node()
        .seed(seed)
        .epoch(EPOCH)
        .build()
}

fn is_told_exactly(run: &Run<Vec<u8>>) -> Replayed {
    let (told, replayed) = replay(&run.kept, None);
    assert_eq!(replayed.fidelity, Fidelity::Exact);
    assert_eq!(told.len(), run.live.len());
    for (told, live) in told.iter().zip(&run.live) {
        // All of it: stamps, revisions and sources too. Only what is never written differs.
        assert_eq!(**told, **live);
    }
    assert!(!replayed.is_cut_off);
    replayed
}

/// Breaks the stream, severs, freezes, restarts and loses events, again and again.
async fn trouble(runtime: SimulatedRuntime) {
    loop {
        tokio::time::sleep(Duration::from_secs(7)).await;
        runtime.end_streams(&StreamEnd::Clean);
        tokio::time::sleep(Duration::from_secs(5)).await;
        runtime.withhold_events(5);
        tokio::time::sleep(Duration::from_secs(6)).await;
        runtime.sever();
        tokio::time::sleep(Duration::from_secs(8)).await;
        runtime.set_frozen(true);
        tokio::time::sleep(Duration::from_secs(16)).await;
        runtime.set_frozen(false);
        tokio::time::sleep(Duration::from_secs(9)).await;
        runtime.restart();
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_tells_one_by_one_what_the_live_run_told() {
    for seed in 1..=3 {
        let runtime = busy(Character::containerd_2(), seed);
        let disturb = std::future::pending();
        let run = run(
            InMemory::default(),
            runtime,
            |builder| builder.seed(seed),
            Duration::from_secs(90),
            disturb,
        )
        .await;
        assert!(run.live.len() > 200, "{}", run.live.len());
        let replayed = is_told_exactly(&run);
        assert!(matches!(replayed.mode, Mode::Evented { .. }));
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_breaks_losses_and_freezes_is_exact_too() {
    for seed in 1..=3 {
        let character = [
            Character::containerd_1_7(),
            Character::containerd_2(),
            Character::cri_o(),
        ][usize::try_from(seed % 3).unwrap()]
        .clone();
        let runtime = busy(character, seed);
        let disturb = trouble(runtime.clone());
        let run = run(
            InMemory::default(),
            runtime,
            |builder| builder.seed(seed),
            Duration::from_secs(110),
            disturb,
        )
        .await;
        assert!(run.live.len() > 200, "{}", run.live.len());
        let replayed = is_told_exactly(&run);
        assert!(replayed.counters.streams_ended > 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_replay_of_polling_is_exact_and_most_of_its_lists_are_short() {
    for seed in 1..=2 {
        let runtime = SimulatedRuntime::builder()
            .character(Character::containerd_1_6())
            .pods(40)
            .churn(0.5)
            .seed(seed)
            .epoch(EPOCH)
            .build();
        let run = run(
            InMemory::default(),
            runtime,
            |builder| builder.seed(seed),
            Duration::from_secs(120),
            std::future::pending(),
        )
        .await;
        is_told_exactly(&run);
        let text = String::from_utf8(run.kept).unwrap();
        let lists = |kind: &str| {
            let key = format!("\"content\":{{\"{kind}\":");
            text.lines().filter(|line| line.contains(&key)).count()
        };
        assert_eq!(lists("full"), 1);
        assert!(lists("same") > 40, "{}", lists("same"));
        assert!(lists("changed") > 20, "{}", lists("changed"));
    }
}

#[tokio::test(start_paused = true)]
async fn wishes_and_marks_are_replayed_where_they_were_made() {
    let runtime = busy(Character::containerd_2(), 3);
    let web = runtime.run_pod("default", "web-0", &["app"]);
    let uid = runtime.world(|world| world.sandbox(web.sandbox.as_str()).unwrap().pod.uid.clone());
    let tap = AtOnce::new(InMemory::default());
    let seeing = Arc::clone(&tap);
    let (pleg, driver) = {
        let runtime = runtime.clone();
        Pleg::builder()
            .connector(move || runtime.channel())
            .stream_thread(false)
            .seed(1)
            .clock(Clock::starting_at(EPOCH))
            .tap(move |tapped| seeing.see(tapped))
            .build()
            .unwrap()
    };
    let told = tokio::spawn(pleg.watch(WatchFrom::Now).unwrap().collect::<Vec<_>>());
    let driver = tokio::spawn(driver.run());
    let uid = crate::lifecycle::PodUid::from(&*uid.to_string());
    for _ in 0..3 {
        let mark = pleg.mark().await.unwrap();
        let details = crate::engine::Freshness::Details;
        pleg.get_newer_than(uid.clone(), mark, details)
            .await
            .unwrap();
        pleg.request_reinspect(uid.clone()).await.unwrap();
        pleg.request_full_relist().await.unwrap();
        runtime.exit_container(&web.containers[0], 1).ok();
        tokio::time::sleep(Duration::from_secs(2)).await;
    }
    pleg.shutdown().await;
    driver.await.unwrap().unwrap();
    let run = Run {
        live: told.await.unwrap(),
        kept: tap.finish(),
    };
    is_told_exactly(&run);
}

#[tokio::test(start_paused = true)]
async fn an_engine_that_asks_otherwise_tells_the_same_story() {
    for seed in 1..=2 {
        let runtime = busy(Character::containerd_2(), seed);
        let run = run(
            InMemory::default(),
            runtime,
            |builder| builder.seed(seed),
            Duration::from_secs(90),
            std::future::pending(),
        )
        .await;
        let settings = Settings {
            slow_period: Duration::from_secs(4),
            heartbeat_period: Duration::from_secs(3),
            parallel_inspections: 1,
            ..Settings::default()
        };
        let (told, replayed) = replay(&run.kept, Some(settings));
        let Fidelity::Approximate(deviations) = replayed.fidelity else {
            panic!("{:?}", replayed.fidelity)
        };
        assert!(deviations.answered_otherwise > 10, "{deviations:?}");
        assert!(deviations.line > 1);
        let differences = deliveries(&run.live).differences(&deliveries(&told));
        // What the end of the recording cuts off may be missing.
        let ended = |difference: &&Difference| difference.got.is_none();
        let wrong: Vec<_> = differences.iter().filter(|d| !ended(d)).collect();
        assert!(wrong.is_empty(), "seed {seed}: {wrong:#?}");
        assert!(differences.len() <= 2, "seed {seed}: {differences:#?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_recording_compresses_and_is_the_same_again() {
    let runtime = busy(Character::containerd_2(), 9);
    let run = run(
        InMemory::default(),
        runtime,
        |builder| builder.seed(9),
        Duration::from_secs(60),
        std::future::pending(),
    )
    .await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.jsonl.zst");
    let small = compressed(&run.kept);
    std::fs::write(&path, &small).unwrap();
    assert!(small.len() * 5 < run.kept.len(), "{}", small.len());
    let mut reader = open(&path).unwrap();
    let replayed = play(&mut reader, None, &mut |_| {}).unwrap();
    assert_eq!(replayed.fidelity, Fidelity::Exact);
    assert_eq!(replayed.delivered, run.live.len() as u64);

    // Cut anywhere, it replays what is whole.
    for cut in [small.len() / 3, small.len() / 2, small.len() - 7] {
        std::fs::write(&path, &small[..cut]).unwrap();
        let replayed = play(&mut open(&path).unwrap(), None, &mut |_| {}).unwrap();
        assert_eq!(replayed.fidelity, Fidelity::Exact);
        assert!(replayed.is_cut_off, "cut at {cut}");
        assert!(replayed.delivered <= run.live.len() as u64);
    }
}
