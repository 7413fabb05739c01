//! The event stream and its reader.

use std::convert::Infallible;
use std::future::Ready;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use prost::Message;
use tokio::time::Instant;
use tonic::body::Body;
use tonic::codegen::{BoxStream, Service, http};
use tonic::server::{Grpc, NamedService, ServerStreamingService};
use tonic::{Request, Response, Status};

use super::net::Net;
use crate::cri::wire::codec::BytesCodec;
use crate::cri::wire::messages::ContainerEventResponse;
use crate::cri::wire::samples::sandbox_status;
use crate::cri::{Inbox, ReaderLimits, ReaderPlace, StreamItem, StreamReader, StreamSource};
use crate::engine::{FailureKind, Input, SessionId, StreamEnd};
use crate::lifecycle::Refusal;

const FIRST: SessionId = SessionId(1);
const SECOND: SessionId = SessionId(2);

pub(super) fn event(id: &str) -> ContainerEventResponse {
    ContainerEventResponse {
        container_id: id.into(),
        container_event_type: 1,
        created_at: 1_700_000_000_000_000_000,
        pod_sandbox_status: Some(sandbox_status("s1")),
        containers_statuses: vec![],
    }
}

fn read(source: StreamSource) -> (StreamReader, Inbox) {
    let place = ReaderPlace::CurrentRuntime;
    StreamReader::start(source, place, ReaderLimits::default()).expect("there is a runtime")
}

pub(super) async fn next(inbox: &mut Inbox) -> Vec<String> {
    let mut batch = Vec::new();
    inbox.recv_batch(&mut batch).await;
    let tell = |item: &StreamItem| match item {
        StreamItem::Message { session, event } => format!("{} {}", session.0, event.id),
        StreamItem::Garbage { session, refusal } => format!("{} {refusal:?}", session.0),
        StreamItem::Overflow { dropped, .. } => format!("lost {dropped}"),
        StreamItem::Ended { session, end } => match end {
            StreamEnd::Broken(failure) => format!("{} broken: {:?}", session.0, failure.kind),
            end => format!("{} {end:?}", session.0),
        },
    };
    batch.iter().map(tell).collect()
}

/// F1, F2: the call does not return before the first event, and nothing may end it for that.
#[tokio::test(start_paused = true)]
async fn an_idle_stream_stays_asked_for_while_the_heartbeat_answers() {
    let (net, fake, mut watched) = Net::to_a_fake();
    let client = net.client();
    let (reader, mut inbox) = read(StreamSource::Channel(net.channel()));
    reader.open(FIRST);
    let stream = watched.stream().await;
    let began = Instant::now();
    while Instant::now().duration_since(began) < Duration::from_hours(1) {
        tokio::time::sleep(Duration::from_secs(10)).await;
        client.version().await.expect("the heartbeat");
    }
    let mut batch = Vec::new();
    assert_eq!(inbox.recv_batch(&mut batch).now_or_never(), None);
    let log = fake.take_log().into_iter();
    let others: Vec<_> = log.filter(|line| line != "Version").collect();
    assert_eq!(others, ["GetContainerEvents"], "and without a deadline");

    stream.send(Ok(event("c1"))).expect("it is still read");
    assert_eq!(next(&mut inbox).await, ["1 c1"]);
    tokio::time::sleep(Duration::from_hours(24)).await;
    stream.send(Ok(event("c2"))).expect("it is still read");
    assert_eq!(next(&mut inbox).await, ["1 c2"]);
}

/// F1 on one connection: while the stream's call is pending, the calls beside it answer.
#[tokio::test(start_paused = true)]
async fn a_pending_stream_does_not_hold_up_calls_on_its_own_channel() {
    let (net, _fake, mut watched) = Net::to_a_fake();
    let client = net.client();
    let opening = tokio::spawn({
        let client = client.clone();
        async move { client.events().await.map(|_| ()) }
    });
    let stream = watched.stream().await;
    for _ in 0..360 {
        tokio::time::sleep(Duration::from_secs(10)).await;
        client.version().await.expect("the heartbeat");
    }
    assert!(!opening.is_finished());
    assert_eq!(net.dials(), 1);
    stream.send(Ok(event("c1"))).expect("it is still wanted");
    assert!(opening.await.expect("no panic").is_ok());
}

/// F3: a cut surfaces as some error of the transport, not as `Unavailable`.
#[tokio::test(start_paused = true)]
async fn a_cut_connection_breaks_the_stream_before_its_first_message_and_after() {
    for send_first in [false, true] {
        let (net, _fake, mut watched) = Net::to_a_fake();
        let (reader, mut inbox) = read(net.source());
        reader.open(FIRST);
        let stream = watched.stream().await;
        if send_first {
            stream.send(Ok(event("c1"))).expect("it is read");
            assert_eq!(next(&mut inbox).await, ["1 c1"]);
        } else {
            watched.until_told("GetContainerEvents").await;
        }
        net.cut();
        assert_eq!(next(&mut inbox).await, ["1 broken: Unavailable"]);
    }
}

/// F4: CRI-O with its pod events off ends the call at once, without an error.
#[tokio::test(start_paused = true)]
async fn a_stream_that_the_runtime_closes_ends_cleanly() {
    for messages in [0, 2] {
        let (net, _fake, mut watched) = Net::to_a_fake();
        let (reader, mut inbox) = read(net.source());
        reader.open(FIRST);
        let stream = watched.stream().await;
        for _ in 0..messages {
            stream.send(Ok(event("c1"))).expect("it is read");
        }
        drop(stream);
        let mut told = Vec::new();
        while told.last().is_none_or(|last| last == "1 c1") {
            told.extend(next(&mut inbox).await);
        }
        assert_eq!(told.len(), messages + 1);
        assert_eq!(told.last().map(String::as_str), Some("1 Clean"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_runtime_without_events_is_told_from_one_that_says_no() {
    for (status, told) in [
        (Status::unimplemented("unknown method"), "1 Unimplemented"),
        (Status::internal("no"), "1 broken: Other"),
        (Status::unavailable("not now"), "1 broken: Unavailable"),
    ] {
        let (net, _fake, mut watched) = Net::to_a_fake();
        let (reader, mut inbox) = read(net.source());
        reader.open(FIRST);
        let stream = watched.stream().await;
        stream.send(Err(status)).expect("it is wanted");
        assert_eq!(next(&mut inbox).await, [told]);
    }
}

#[tokio::test(start_paused = true)]
async fn the_old_stream_is_dropped_before_the_next_is_asked_for() {
    for share_a_channel in [false, true] {
        let (net, fake, mut watched) = Net::to_a_fake();
        let source = if share_a_channel {
            StreamSource::Channel(net.channel())
        } else {
            net.source()
        };
        let (reader, mut inbox) = read(source);
        reader.open(FIRST);
        let first = watched.stream().await;
        first.send(Ok(event("c1"))).expect("it is read");
        assert_eq!(next(&mut inbox).await, ["1 c1"]);
        reader.open(SECOND);
        let second = watched.stream().await;
        second.send(Ok(event("c2"))).expect("it is read");
        assert_eq!(next(&mut inbox).await, ["2 c2"]);
        assert_eq!(
            fake.log(),
            ["GetContainerEvents", "stream dropped", "GetContainerEvents"]
        );
        assert!(first.is_closed());
        assert_eq!(net.dials(), if share_a_channel { 1 } else { 2 });
        assert_eq!(reader.counts().sessions, 2);
    }
}

/// F9, and before the first message too, when the call has not returned yet.
#[tokio::test(start_paused = true)]
async fn closing_cancels_the_stream_and_tells_nothing() {
    for send_first in [false, true] {
        let (net, _fake, mut watched) = Net::to_a_fake();
        let (reader, mut inbox) = read(net.source());
        reader.open(FIRST);
        let stream = watched.stream().await;
        if send_first {
            stream.send(Ok(event("c1"))).expect("it is read");
            assert_eq!(next(&mut inbox).await, ["1 c1"]);
        }
        // The close of another stream is none of this one's business.
        reader.close(SECOND);
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert!(!stream.is_closed());
        reader.close(FIRST);
        watched.until_told("stream dropped").await;
        let mut batch = Vec::new();
        assert_eq!(inbox.recv_batch(&mut batch).now_or_never(), None);
    }
}

/// F15: a client that stops reading stalls the runtime.
#[tokio::test(start_paused = true)]
async fn a_consumer_that_stalls_never_stops_the_reading() {
    let (net, _fake, mut watched) = Net::to_a_fake();
    let limits = ReaderLimits {
        inbox_size: 64 << 10,
        ..ReaderLimits::default()
    };
    let place = ReaderPlace::CurrentRuntime;
    let (reader, mut inbox) =
        StreamReader::start(net.source(), place, limits).expect("there is a runtime");
    reader.open(FIRST);
    let stream = watched.stream().await;
    for n in 0..20_000 {
        stream
            .send(Ok(event(&format!("c{n}"))))
            .expect("it is read");
    }
    // Nothing was taken yet, and yet every message leaves the runtime.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let counts = reader.counts();
    assert_eq!(counts.messages, 20_000);
    assert!(counts.dropped > 0);
    assert!(counts.most_bytes <= 64 << 10, "{counts:?}");

    let mut batch = Vec::new();
    while !matches!(batch.last(), Some(StreamItem::Overflow { .. })) {
        inbox.recv_batch(&mut batch).await;
    }
    let Some(StreamItem::Overflow { pods, dropped, .. }) = batch.pop() else {
        panic!("not a report: {batch:?}");
    };
    assert_eq!(dropped, counts.dropped);
    assert_eq!(pods.len(), 1, "{pods:?}");
    assert_eq!(u64::try_from(batch.len()), Ok(20_000 - dropped));

    stream.send(Ok(event("after"))).expect("it is read");
    assert_eq!(next(&mut inbox).await, ["1 after"]);
}

/// Sends these messages as they are, then stays open.
#[derive(Clone)]
struct Raw(Vec<Vec<u8>>);

impl NamedService for Raw {
    const NAME: &'static str = "runtime.v1.RuntimeService";
}

impl ServerStreamingService<Bytes> for Raw {
    type Response = Vec<u8>;
    type ResponseStream = BoxStream<Vec<u8>>;
    type Future = Ready<Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, _: Request<Bytes>) -> Self::Future {
        let messages = tokio_stream::iter(self.0.clone().into_iter().map(Ok));
        let open = tokio_stream::StreamExt::chain(messages, tokio_stream::pending());
        std::future::ready(Ok(Response::new(Box::pin(open))))
    }
}

impl Service<http::Request<Body>> for Raw {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let raw = self.clone();
        async move { Ok(Grpc::new(BytesCodec).server_streaming(raw, request).await) }.boxed()
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_is_none_does_not_end_the_stream() {
    let messages = vec![
        event("c1").encode_to_vec(),
        vec![0xff; 7],
        vec![],
        event("c2").encode_to_vec(),
    ];
    let net = Net::to(Raw(messages));
    let (reader, mut inbox) = read(net.source());
    reader.open(FIRST);
    let mut told = Vec::new();
    while told.len() < 4 {
        told.extend(next(&mut inbox).await);
    }
    // The third is a message of CRI, if a strange one: nothing in it is set.
    assert_eq!(told, ["1 c1", "1 Undecodable", "1 ", "1 c2"]);
    let counts = inbox.counts();
    assert_eq!((counts.messages, counts.garbage), (4, 1));
}

#[tokio::test(start_paused = true)]
async fn a_message_over_the_limit_breaks_the_stream_and_says_why() {
    let mut big = event("c1");
    big.container_id = "x".repeat(16 << 20);
    let net = Net::to(Raw(vec![big.encode_to_vec()]));
    let (reader, mut inbox) = read(net.source());
    reader.open(FIRST);
    let mut batch = Vec::new();
    inbox.recv_batch(&mut batch).await;
    let [
        StreamItem::Ended {
            end: StreamEnd::Broken(failure),
            ..
        },
    ] = &batch[..]
    else {
        panic!("not an end: {batch:?}");
    };
    assert_eq!(failure.kind, FailureKind::TooLarge);
    assert!(failure.message.contains("--max-message-size"), "{failure}");
}

#[tokio::test(start_paused = true)]
async fn a_panic_in_the_reader_is_a_broken_stream_and_the_next_one_can_be_opened() {
    let place = ReaderPlace::CurrentRuntime;
    let source = StreamSource::Connector(Arc::new(|| panic!("as the test says")));
    let limits = ReaderLimits::default();
    let (reader, mut inbox) = StreamReader::start(source, place, limits).expect("it starts");
    for session in [FIRST, SECOND] {
        reader.open(session);
        let told = next(&mut inbox).await;
        assert_eq!(told, [format!("{} broken: Other", session.0)]);
    }
}

#[tokio::test(start_paused = true)]
async fn shutdown_leaves_no_stream_and_no_task() {
    let (net, _fake, mut watched) = Net::to_a_fake();
    let alive = || {
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks()
    };
    let before = alive();
    let (reader, mut inbox) = read(net.source());
    reader.open(FIRST);
    let stream = watched.stream().await;
    stream.send(Ok(event("c1"))).expect("it is read");
    assert_eq!(next(&mut inbox).await, ["1 c1"]);
    assert!(alive() > before);
    reader.shutdown().await;
    assert_eq!(next(&mut inbox).await, [""; 0], "the reader has ended");
    watched.until_told("stream dropped").await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(alive(), before);
}

#[tokio::test(start_paused = true)]
async fn a_reader_whose_handle_or_inbox_is_dropped_cancels_its_stream() {
    for drop_the_inbox in [false, true] {
        let (net, _fake, mut watched) = Net::to_a_fake();
        let (reader, inbox) = read(net.source());
        reader.open(FIRST);
        let stream = watched.stream().await;
        let (kept_reader, kept_inbox) = if drop_the_inbox {
            drop(inbox);
            (Some(reader), None)
        } else {
            drop(reader);
            (None, Some(inbox))
        };
        watched.until_told("stream dropped").await;
        assert!(stream.is_closed());
        drop((kept_reader, kept_inbox));
    }
}

#[test]
fn a_reader_needs_a_runtime_or_a_thread_of_its_own() {
    let source = || StreamSource::Connector(Arc::new(|| panic!("never dialled")));
    let limits = ReaderLimits::default();
    assert!(StreamReader::start(source(), ReaderPlace::CurrentRuntime, limits).is_err());
    assert!(StreamReader::start(source(), ReaderPlace::OwnThread, limits).is_ok());
}

#[test]
fn what_the_stream_brought_is_an_input_of_the_engines() {
    let session = FIRST;
    let refusal = Refusal::Undecodable;
    assert_eq!(
        Input::from(StreamItem::Garbage { session, refusal }),
        Input::StreamGarbage { session, refusal }
    );
    let end = StreamEnd::Clean;
    assert_eq!(
        Input::from(StreamItem::Ended {
            session,
            end: end.clone()
        }),
        Input::StreamEnded { session, end }
    );
}
