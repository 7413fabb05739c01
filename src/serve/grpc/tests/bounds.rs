//! What nobody may take too much of: places, bytes, and what waits for whoever does not read.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_watcher_that_stalls_for_an_hour_costs_a_bound_and_nobody_notices() {
    let runtime = SimulatedRuntime::builder()
        .epoch(NOON)
        .pods(30)
        .seed(5)
        .build();
    let door = Door::default();
    let limits = Limits {
        ring: RingLimits {
            events: 200,
            ..RingLimits::default()
        },
        ..Limits::default()
    };
    let life = Life::begin(&runtime, &door, 1, limits).driven().await;
    let mut stub = door.narrow_stub();
    let mut stalled = stub
        .watch(WatchRequest {
            client: "stalled".to_owned(),
            ..WatchRequest::default()
        })
        .await
        .unwrap()
        .into_inner();
    let mut reading = door.client().watch(Begin::Snapshot, "reads");
    let reader = tokio::spawn(async move {
        let mut told = 0_u64;
        let mut again = 0_u64;
        loop {
            match tokio::time::timeout(seconds(120), reading.next()).await {
                Ok(Ok(Watched::Event(event))) => told += u64::from(!event.initial),
                Ok(Ok(Watched::ListAgain(_))) => again += 1,
                Ok(Ok(_)) => {}
                Ok(Err(error)) => panic!("{error}"),
                Err(_) => return (told, again),
            }
        }
    });
    tokio::time::sleep(seconds(1)).await;
    assert_eq!(life.serving.watchers().len(), 2);
    let before = life.serving.pleg().feed_stats().published;
    for _ in 0..60 {
        runtime.burst(40);
        tokio::time::sleep(seconds(60)).await;
        let stats = life.serving.ring().stats();
        assert!(stats.events <= 200 && stats.bytes <= RingLimits::default().bytes);
    }
    let status = life.serving.status().await;
    let of = |name: &str| {
        let mut all = status.subscribers.iter();
        all.find(|subscriber| subscriber.client == name).unwrap()
    };
    assert_eq!(of("stalled").lag, None);
    assert_eq!(of("reads").lag, Some(0));
    let (told, again) = reader.await.unwrap();
    assert_eq!(again, 0, "somebody else's stall was noticed");
    let stats = life.serving.pleg().stats().await.unwrap();
    let published = stats.feed.published - before;
    assert!(published > 1_500, "{published}");
    assert_eq!(told, published);
    assert_eq!(stats.feed.totals.folded, 0);
    assert_eq!((stats.reader.dropped, stats.reader.overflows), (0, 0));
    assert_eq!(runtime.blocked_producers(), 0);

    let end = loop {
        match stalled.message().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("it ended without a word"),
            Err(status) => break status,
        }
    };
    let reason = end.metadata().get(LIST_AGAIN).unwrap();
    assert_eq!(
        (end.code(), reason.to_str().unwrap()),
        (Code::OutOfRange, "Behind")
    );
    assert_eq!(life.serving.watchers().totals().behind, 1);
}

#[tokio::test(start_paused = true)]
async fn a_feeder_that_was_folded_for_has_everybody_list_again() {
    let runtime = SimulatedRuntime::builder().epoch(NOON).build();
    let (pleg, driver) = Pleg::builder()
        .channel(runtime.channel())
        .clock(Clock::starting_at(NOON))
        .channel_capacity(4)
        .build()
        .unwrap();
    let begun = Serving::new(pleg, Epoch(1), Limits::default(), Notebook::default(), None);
    let (serving, feeder) = begun.unwrap();
    let client = || crate::serve::Client {
        transport: "grpc",
        name: "w".to_owned(),
    };
    let start = crate::serve::WatchStart::Now;
    let mut early = serving.watch(start, client()).unwrap();
    assert!(matches!(
        early.next(9).await.unwrap().as_slice(),
        [crate::serve::Told::SnapshotEnd(_)]
    ));
    tokio::spawn(async { driver.run().await.unwrap() });
    for pod in 0..8 {
        let pod = runtime.run_pod("shop", &format!("web-{pod}"), &["app"]);
        tokio::time::sleep(seconds(2)).await;
        let exit = crate::simulate::ExitStatus::code(1);
        runtime.exit_container(&pod.containers[0], exit).unwrap();
        tokio::time::sleep(seconds(2)).await;
    }
    assert!(serving.pleg().feed_stats().totals.folded > 0);
    tokio::spawn(feeder.run());
    let end = early.next(9).await.unwrap_err();
    assert_eq!(end, crate::serve::ListAgain::Behind.into());
    assert_eq!(serving.ring().stats().gaps, 1);
    // A quiet node: whoever lists, or begins with a snapshot, can go on from there at once.
    let list = serving.list().position;
    let after = crate::serve::WatchStart::After(list);
    assert!(serving.watch(after, client()).is_ok());
    let snapshot = crate::serve::WatchStart::Snapshot;
    assert!(serving.watch(snapshot, client()).is_ok());
}

#[tokio::test(start_paused = true)]
async fn watchers_are_bounded_and_one_that_leaves_makes_room() {
    let runtime = busy_node();
    let door = Door::default();
    let limits = Limits {
        watchers: 2,
        ..Limits::default()
    };
    let life = Life::begin(&runtime, &door, 1, limits).driven().await;
    let mut stub = door.stub();
    let first = stub.watch(WatchRequest::default()).await.unwrap();
    let _second = stub.watch(WatchRequest::default()).await.unwrap();
    let third = refusal(stub.watch(WatchRequest::default()).await);
    assert_eq!(third.0, Code::ResourceExhausted);
    drop(first);
    tokio::time::sleep(seconds(1)).await;
    stub.watch(WatchRequest::default()).await.unwrap();
    assert_eq!(life.serving.watchers().totals().refused, 1);
}

#[tokio::test(start_paused = true)]
async fn a_request_that_is_too_large_is_refused_unread() {
    let runtime = busy_node();
    let door = Door::default();
    let _life = Life::of(&runtime, &door, 1).await;
    let large = WatchRequest {
        client: "x".repeat(100 << 10),
        ..WatchRequest::default()
    };
    let (code, ..) = refusal(door.stub().watch(Request::new(large)).await);
    assert_eq!(code, Code::OutOfRange);
}
