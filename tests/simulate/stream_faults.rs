//! Event streams that go wrong on purpose.

use std::time::Duration;

use pleg::clock::Clock;
use pleg::cri::{Inbox, ReaderLimits, ReaderPlace, StreamItem, StreamReader};
use pleg::engine::SessionId;
use pleg::lifecycle::EventKind;
use pleg::simulate::{
    Character, Mishap, Preset, RawEvent, RunningPod, SimulatedRuntime, Stamps, StreamEnd,
    StreamFault,
};
use tokio::time::Instant;
use tonic::Code;

use crate::client::{Client, Events, cri};
use crate::{EPOCH, builder, runtime};

const SECOND: Duration = Duration::from_secs(1);

/// A runtime with one pod of two containers, and a client that has heard of them.
async fn listening() -> (SimulatedRuntime, RunningPod, Events) {
    let runtime = runtime(Character::containerd_2());
    let web = runtime.run_pod("default", "web-0", &["a", "b"]);
    let mut events = Client::to(&runtime).events(&runtime).await;
    assert_eq!(events.drain().await.len(), 6);
    (runtime, web, events)
}

/// The subjects of what was heard, as `a`, `b` or `-`.
fn subjects(web: &RunningPod, heard: &[cri::ContainerEventResponse]) -> String {
    heard
        .iter()
        .map(|event| {
            let names = web.containers.iter().zip(["a", "b"]);
            names
                .filter(|(id, _)| id.as_str() == event.container_id)
                .map(|(_, name)| name)
                .next()
                .unwrap_or("-")
        })
        .collect()
}

#[tokio::test(start_paused = true)]
async fn events_of_a_type_a_subject_or_a_pod_can_be_lost() {
    let (runtime, web, mut events) = listening().await;
    let other = runtime.run_pod("data", "db-0", &["db"]);
    events.drain().await;
    runtime.inject_stream(StreamFault::lose().of_kind(EventKind::Stopped));
    runtime.inject_stream(StreamFault::lose().about(web.containers[1].as_str()));
    runtime.inject_stream(StreamFault::lose().of_pod(other.uid.clone()));
    runtime.remove_container(&web.containers[0]).unwrap();
    runtime.remove_container(&web.containers[1]).unwrap();
    runtime.remove_sandbox(&other.sandbox).unwrap();
    let heard = events.drain().await;
    assert_eq!(subjects(&web, &heard), "a");
    let deleted = cri::ContainerEventType::ContainerDeletedEvent;
    assert_eq!(heard[0].container_event_type(), deleted);
    assert_eq!(runtime.event_counts().withheld, 7);
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_pod_is_lost_with_the_pod_even_if_its_message_names_none() {
    let runtime = runtime(Character::containerd_1_7());
    let web = runtime.run_pod("default", "web-0", &[]);
    let mut events = Client::to(&runtime).events(&runtime).await;
    events.drain().await;
    runtime.inject_stream(StreamFault::lose().of_pod(web.uid.clone()));
    runtime.remove_sandbox(&web.sandbox).unwrap();
    assert_eq!(events.drain().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_late_event_comes_late_with_what_was_true_when_it_was_made() {
    let (runtime, web, mut events) = listening().await;
    runtime.inject_stream(StreamFault::delay(3 * SECOND).times(1));
    let began = Instant::now();
    runtime.exit_container(&web.containers[0], 0).unwrap();
    runtime.exit_container(&web.containers[1], 0).unwrap();
    let first = events.next().await;
    assert_eq!(Instant::now() - began, Duration::ZERO);
    assert_eq!(first.container_id, web.containers[1].as_str());
    let late = events.next().await;
    assert_eq!(Instant::now() - began, 3 * SECOND);
    assert_eq!(late.container_id, web.containers[0].as_str());
    assert_eq!(late.created_at, first.created_at);
    let running = late
        .containers_statuses
        .iter()
        .filter(|status| status.state() == cri::ContainerState::ContainerRunning);
    assert_eq!(running.count(), 1, "b had not ended then");
    assert_eq!(runtime.event_counts().held, 1);
}

#[tokio::test(start_paused = true)]
async fn an_event_that_comes_due_while_nobody_listens_waits_like_any_other() {
    let (runtime, web, events) = listening().await;
    runtime.inject_stream(StreamFault::delay(5 * SECOND));
    runtime.exit_container(&web.containers[0], 0).unwrap();
    runtime.end_streams(&StreamEnd::Clean);
    events.end().await.unwrap();
    tokio::time::sleep(60 * SECOND).await;
    let mut events = Client::to(&runtime).events(&runtime).await;
    assert_eq!(subjects(&web, &events.drain().await), "a");
}

#[tokio::test(start_paused = true)]
async fn an_event_can_come_twice_and_another_fall_behind() {
    let (runtime, web, mut events) = listening().await;
    runtime.inject_stream(StreamFault::duplicate().times(1));
    runtime.inject_stream(StreamFault::behind(1).times(1));
    runtime.exit_container(&web.containers[0], 0).unwrap();
    runtime.remove_container(&web.containers[0]).unwrap();
    runtime.exit_container(&web.containers[1], 0).unwrap();
    let heard = events.drain().await;
    assert_eq!(subjects(&web, &heard), "aaba");
    assert_eq!(heard[0], heard[1]);
    assert_eq!(runtime.event_counts().duplicated, 1);
}

#[tokio::test(start_paused = true)]
async fn a_mute_stream_is_silent_until_it_is_no_longer() {
    let (runtime, web, mut events) = listening().await;
    runtime.set_muted(true);
    runtime.exit_container(&web.containers[0], 0).unwrap();
    assert_eq!(events.drain().await, []);
    runtime.set_muted(false);
    runtime.exit_container(&web.containers[1], 0).unwrap();
    assert_eq!(subjects(&web, &events.drain().await), "b");
}

#[tokio::test(start_paused = true)]
async fn a_stalled_stream_tells_everything_when_the_stall_is_lifted() {
    let (runtime, web, mut events) = listening().await;
    let stall = runtime.inject_stream(StreamFault::hold());
    runtime.exit_container(&web.containers[0], 0).unwrap();
    runtime.exit_container(&web.containers[1], 0).unwrap();
    assert_eq!(events.drain().await, []);
    runtime.lift(stall);
    assert_eq!(subjects(&web, &events.drain().await), "ab");
}

#[tokio::test(start_paused = true)]
async fn what_a_dying_runtime_kept_back_dies_with_it() {
    let (runtime, web, events) = listening().await;
    let stall = runtime.inject_stream(StreamFault::hold());
    runtime.exit_container(&web.containers[0], 0).unwrap();
    runtime.restart();
    events.end().await.unwrap_err();
    runtime.lift(stall);
    let mut events = Client::to(&runtime).events(&runtime).await;
    assert_eq!(events.drain().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_backlog_is_replayed_to_the_next_stream_only() {
    let (runtime, web, events) = listening().await;
    runtime.exit_container(&web.containers[0], 0).unwrap();
    events.cancel().await;
    runtime.replay_on_connect(3);
    let mut events = Client::to(&runtime).events(&runtime).await;
    let heard = events.drain().await;
    assert_eq!(subjects(&web, &heard), "bba");
    assert_eq!(heard[0].created_at, EPOCH.0);
    events.cancel().await;
    let mut again = Client::to(&runtime).events(&runtime).await;
    assert_eq!(again.drain().await, []);
}

#[tokio::test(start_paused = true)]
async fn a_broken_stream_takes_what_it_held_and_an_ended_one_sends_it() {
    for (breaks, heard) in [(false, 1), (true, 0)] {
        let (runtime, web, events) = listening().await;
        runtime.set_frozen(true);
        runtime.exit_container(&web.containers[0], 0).unwrap();
        let end = StreamEnd::failed(Code::Unknown, "ttrpc: closed");
        if breaks {
            runtime.break_streams(&end);
        } else {
            runtime.end_streams(&end);
        }
        runtime.set_frozen(false);
        let (told, ended) = events.until_end().await;
        assert_eq!(told.len(), heard);
        assert_eq!(ended.unwrap_err().message(), "ttrpc: closed");
        Client::to(&runtime).version().await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn an_honest_message_can_be_bent() {
    let (runtime, web, mut events) = listening().await;
    let app = web.containers[0].as_str();
    let honest = runtime.message_about(EventKind::Stopped, app).unwrap();
    let mut raw = RawEvent::from(&honest);
    raw.created_at = -1;
    raw.container_event_type = 42;
    raw.pod_sandbox_status.as_mut().unwrap().metadata = None;
    raw.containers_statuses.retain(|status| status.id == app);
    raw.containers_statuses[0].state = 2;
    raw.containers_statuses[0].metadata = None;
    runtime.emit_raw(raw.clone());
    let heard = events.next().await;
    assert_eq!(heard.created_at, -1);
    assert_eq!(heard.container_event_type, 42);
    let sandbox = heard.pod_sandbox_status.unwrap();
    assert_eq!(
        (sandbox.metadata, sandbox.id.as_str()),
        (None, web.sandbox.as_str())
    );
    assert_eq!(heard.containers_statuses.len(), 1);
    assert_eq!(heard.containers_statuses[0].metadata, None);
    assert_eq!(runtime.message_about(EventKind::Stopped, "nobody"), None);

    let text = serde_json::to_string(&raw).unwrap();
    assert_eq!(serde_json::from_str::<RawEvent>(&text).unwrap(), raw);
    let short = r#"{"containerId": "x", "containersStatuses": [{"id": "x", "state": 9}]}"#;
    let short: RawEvent = serde_json::from_str(short).unwrap();
    assert_eq!(short.pod_sandbox_status, None);
    assert!(serde_json::from_str::<RawEvent>(r#"{"containerID": "x"}"#).is_err());
}

async fn next(inbox: &mut Inbox) -> StreamItem {
    let mut batch = Vec::new();
    loop {
        assert!(inbox.recv_batch(&mut batch).await > 0, "the reader ended");
        for item in batch.drain(..) {
            if matches!(
                item,
                StreamItem::Message { .. } | StreamItem::Garbage { .. }
            ) {
                return item;
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn bytes_that_are_no_message_come_through_and_the_stream_goes_on() {
    let runtime = runtime(Character::containerd_2());
    let place = ReaderPlace::CurrentRuntime;
    let (reader, mut inbox) =
        StreamReader::start(runtime.stream_source(), place, ReaderLimits::default()).unwrap();
    reader.open(SessionId(1));
    runtime.streams_opened(1).await;
    runtime.emit_bytes(&b"\xff\xff\xff"[..]);
    assert!(matches!(next(&mut inbox).await, StreamItem::Garbage { .. }));
    runtime.run_pod("default", "web-0", &[]);
    assert!(matches!(next(&mut inbox).await, StreamItem::Message { .. }));
    reader.shutdown().await;
}

#[tokio::test(start_paused = true)]
async fn stamps_go_wrong_in_a_running_runtime() {
    let (runtime, web, mut events) = listening().await;
    let now = runtime.now().0;
    for (attempt, (stamps, expected)) in [
        (Stamps::Seconds, now / 1_000_000_000),
        (Stamps::Microseconds, now / 1_000),
        (Stamps::Negative, -now),
        (Stamps::Ahead(SECOND), now + 1_000_000_000),
    ]
    .into_iter()
    .enumerate()
    {
        runtime.set_stamps(stamps);
        let name = format!("c{attempt}");
        runtime.create_container(&web.sandbox, &name).unwrap();
        assert_eq!(events.next().await.created_at, expected, "{stamps:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_clock_step_dates_what_comes_after_it() {
    let clock = Clock::starting_at(EPOCH);
    let its_own = clock.clone();
    let runtime = builder(Character::containerd_2())
        .clock(move || its_own.now())
        .build();
    let mut events = Client::to(&runtime).events(&runtime).await;
    tokio::time::advance(SECOND).await;
    clock.step(-3_600_000_000_000);
    runtime.run_pod("default", "web-0", &[]);
    let stamp = events.next().await.created_at;
    assert_eq!(stamp, EPOCH.0 - 3_599_000_000_000);
    assert_eq!(clock.now().wall.0, stamp);
}

#[test]
fn a_stream_fault_reads_in_a_file_as_it_is_said() {
    let read = |text: &str| serde_json::from_str::<StreamFault>(text).unwrap();
    for (text, expected) in [
        (
            r#"{"kind": "stopped", "times": 3, "mishap": "lose"}"#,
            StreamFault::lose().of_kind(EventKind::Stopped).times(3),
        ),
        (
            r#"{"oneIn": 20, "mishap": {"delay": "2s"}}"#,
            StreamFault::delay(2 * SECOND).one_in(20),
        ),
        (r#"{"mishap": {"behind": 4}}"#, StreamFault::behind(4)),
        (r#"{"mishap": {"duplicate": 1}}"#, StreamFault::duplicate()),
    ] {
        assert_eq!(read(text), expected);
        let written = serde_json::to_string(&expected).unwrap();
        assert_eq!(read(&written), expected, "{written}");
    }
    assert_eq!(StreamFault::hold().mishap, Mishap::Hold);
    assert!(
        Preset::ALL
            .iter()
            .any(|preset| preset.name() == "containerd-1.7")
    );
}
