//! What happens, as server-sent events: whoever comes back gets what followed, or is told to list.

use axum::http::Method;

use super::client::told;
use super::house::House;
use crate::serve::Limits;
use crate::serve::http::HttpLimits;
use crate::simulate::{Character, StreamEnd};

#[tokio::test(start_paused = true)]
async fn whoever_comes_without_an_id_gets_a_snapshot_and_then_what_happens() {
    let house = House::evented().await;
    let mut follower = house.follow(None).await;
    assert_eq!(follower.frame().await.unwrap().retry.unwrap(), "1000");
    let snapshot = follower.snapshot().await;
    assert_eq!(snapshot[0].event, "snapshot-begin");
    assert_eq!(snapshot[0].data["reason"], "Fresh");
    let end = snapshot.last().unwrap();
    assert_eq!(end.id.as_deref(), end.data["position"].as_str());
    let events = &snapshot[1..snapshot.len() - 1];
    assert!(
        events.len() >= 6,
        "three pods have as many sandboxes, and containers"
    );
    for frame in events {
        assert_eq!(frame.event, "lifecycle");
        assert_eq!(frame.data["initial"], true);
        // Resumed from the middle of a snapshot, the rest of it would be a gap.
        assert_eq!(frame.id, None);
    }
    let pod = house.runtime.run_pod("shop", "web", &["app"]);
    assert_eq!(follower.told().await, "Started web/sandbox");
    assert_eq!(follower.told().await, "Started web/app");
    house.runtime.exit_container(&pod.containers[0], 7).unwrap();
    let died = follower.event().await.unwrap();
    assert_eq!(told(&died.data), "Died web/app");
    assert_eq!(
        (&died.data["exitCode"], &died.data["initial"]),
        (&7.into(), &false.into())
    );
    let revision = died.data["revision"].as_u64().unwrap();
    assert_eq!(died.id.unwrap(), format!("feed000000000001-{revision}"));
}

#[tokio::test(start_paused = true)]
async fn whoever_comes_back_gets_exactly_what_followed() {
    let house = House::evented().await;
    let mut follower = house.follow(None).await;
    follower.snapshot().await;
    let pod = house.runtime.run_pod("shop", "web", &["app"]);
    assert_eq!(follower.told().await, "Started web/sandbox");
    let id = follower.id.clone();
    drop(follower);
    house.wait(2).await;
    house.runtime.exit_container(&pod.containers[0], 0).unwrap();
    house.wait(2).await;

    let mut back = house.follow(Some(&id)).await;
    back.frame().await;
    // It has the id that it came with, should it be cut off before anything else happens.
    assert_eq!(back.frame().await.unwrap().id, Some(id.clone()));
    assert_eq!(back.told().await, "Started web/app");
    assert_eq!(back.told().await, "Died web/app");

    // A browser's own id goes before the address that it was given long ago.
    let list = house.get("/api/v1/pods").await.json();
    let path = format!(
        "/api/v1/events?after={}",
        list["position"].as_str().unwrap()
    );
    let headers = [("host", "localhost"), ("last-event-id", &*id)];
    let (_, _, body) = house.begin(Method::GET, &path, &headers).await;
    drop(body);
    house.runtime.run_pod("shop", "late", &[]);
    let (status, ..) = house
        .begin(Method::GET, &path, &[("host", "localhost")])
        .await;
    assert_eq!(status, 200);
}

#[tokio::test(start_paused = true)]
async fn after_a_restart_everybody_lists_again() {
    let house = House::evented().await;
    let mut follower = house.follow(Some("feed000000000000-17")).await;
    let again = follower.event().await.unwrap();
    assert_eq!((&*again.event, again.id), ("list-again", None));
    assert_eq!(again.data["reason"], "OtherEpoch");
    let snapshot = follower.snapshot().await;
    assert_eq!(snapshot[0].data["reason"], "OtherEpoch");
    assert!(follower.id.starts_with("feed000000000001-"));
    house.runtime.run_pod("shop", "web", &[]);
    assert_eq!(follower.told().await, "Started web/sandbox");
    let metrics = house.get("/metrics").await.text;
    assert!(metrics.contains("pleg_list_agains_total{reason=\"OtherEpoch\"} 1\n"));
    assert!(metrics.contains("pleg_watchers{transport=\"http\"} 1\n"));
}

#[tokio::test(start_paused = true)]
async fn whoever_falls_behind_what_is_kept_is_told_so_and_everything_again() {
    let house = House::keeping(10).await;
    let mut follower = house.follow(None).await;
    follower.snapshot().await;
    let before = follower.id.clone();
    for n in 0..20 {
        house.runtime.run_pod("shop", &format!("web-{n}"), &["app"]);
    }
    house.wait(3).await;
    let again = follower.event().await.unwrap();
    assert_eq!(again.event, "list-again");
    assert_eq!(again.data["reason"], "Behind");
    let snapshot = follower.snapshot().await;
    let shown: Vec<_> = snapshot.iter().map(|frame| told(&frame.data)).collect();
    for n in 0..20 {
        assert!(shown.contains(&format!("Started web-{n}/app")), "web-{n}");
    }
    // And one that was away meanwhile, the same.
    let mut back = house.follow(Some(&before)).await;
    assert_eq!(back.event().await.unwrap().data["reason"], "Behind");
}

#[tokio::test(start_paused = true)]
async fn what_was_never_handed_out_is_no_id() {
    let house = House::evented().await;
    for id in ["2026-11-30T12:00:00Z", "1796040000", "x"] {
        let headers = [("host", "localhost"), ("last-event-id", id)];
        let answer = house.ask(Method::GET, "/api/v1/events", &headers).await;
        assert_eq!(answer.reason(), (400, "BadRequest".to_owned()), "{id}");
    }
    let unknown = house.get("/api/v1/events?since=x").await;
    assert_eq!(unknown.reason(), (400, "BadRequest".to_owned()));
    // From the future: it was never handed out in this life.
    let mut follower = house.follow(Some("feed000000000001-99999999")).await;
    assert_eq!(follower.event().await.unwrap().data["reason"], "Future");
}

#[tokio::test(start_paused = true)]
async fn a_change_of_mode_is_told_and_leaves_the_position_as_it_was() {
    let house = House::evented().await;
    let mut follower = house.follow(None).await;
    follower.snapshot().await;
    let id = follower.id.clone();
    house.runtime.become_character(Character::containerd_1_6());
    house.runtime.end_streams(&StreamEnd::Clean);
    let mode = loop {
        let frame = follower.event().await.unwrap();
        if frame.event == "mode" {
            break frame;
        }
    };
    assert_eq!(
        (&mode.data["from"], &mode.data["to"]),
        (&"Evented".into(), &"Polling".into())
    );
    assert!(mode.data["reason"].is_string() && mode.data["cause"].is_string());
    assert_eq!(follower.id, id);
}

#[tokio::test(start_paused = true)]
async fn watchers_are_bounded_and_a_place_is_free_again_once_one_leaves() {
    let limits = HttpLimits {
        watchers: 2,
        ..HttpLimits::default()
    };
    let house = House::with(limits, Limits::default());
    house.settled().await;
    let first = house.follow(None).await;
    let _second = house.follow(None).await;
    let third = house.get("/api/v1/events").await;
    assert_eq!(third.reason(), (503, "TooManyWatchers".to_owned()));
    assert_eq!(third.header("retry-after"), "5");
    drop(first);
    house.follow(None).await;
}

#[tokio::test(start_paused = true)]
async fn a_quiet_node_still_says_something_now_and_then() {
    let house = House::evented().await;
    let mut follower = house.follow(None).await;
    follower.snapshot().await;
    let before = tokio::time::Instant::now();
    let frame = follower.frame().await.unwrap();
    assert!(frame.comment && frame.event.is_empty());
    let waited = tokio::time::Instant::now().duration_since(before);
    assert_eq!(waited.as_secs(), 15);
}

#[tokio::test(start_paused = true)]
async fn once_the_driver_has_ended_the_stream_ends_after_what_it_told() {
    let house = House::evented().await;
    let mut follower = house.follow(None).await;
    follower.snapshot().await;
    house.runtime.run_pod("shop", "web", &[]);
    house.wait(1).await;
    house.serving.pleg().shutdown().await;
    assert_eq!(follower.told().await, "Started web/sandbox");
    while let Some(frame) = follower.frame().await {
        assert_eq!(frame.event, "", "nothing more is told");
    }
}
