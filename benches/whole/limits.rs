//! What the same work costs at the least: the same answers over gRPC without a look at them, the same
//! bytes through prost, the same bytes through a socket.

use std::hint::black_box;
use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use bytes::{Buf, BufMut, Bytes};
use http::uri::PathAndQuery;
use pleg::clock::Clock;
use prost::Message;
use tonic::client::Grpc;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::transport::Channel;
use tonic::{Request, Status};

use crate::memory::asked;
use crate::process::{cpu, thread_cpu};

/// The messages of the subset that is read, as prost decodes them.
#[allow(
    dead_code,
    missing_docs,
    unreachable_pub,
    clippy::all,
    clippy::pedantic,
    reason = "written by a generator"
)]
pub(crate) mod cri {
    include!("../../src/cri/wire/generated/runtime.v1.rs");
}

/// Messages as they are.
#[derive(Clone, Copy, Default)]
struct Bare;

impl Codec for Bare {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Bare {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, buffer: &mut EncodeBuf<'_>) -> Result<(), Status> {
        buffer.put(item);
        Ok(())
    }
}

impl Decoder for Bare {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buffer.copy_to_bytes(buffer.remaining())))
    }
}

/// Asks a runtime for its lists and does nothing with them.
pub(crate) struct BareClient(Grpc<Channel>);

impl BareClient {
    pub(crate) fn over(channel: Channel) -> Self {
        Self(Grpc::new(channel).max_decoding_message_size(256 << 20))
    }

    async fn ask(&mut self, method: &'static str) -> Bytes {
        self.0.ready().await.expect("a connection");
        let path = PathAndQuery::from_static(method);
        let answer = self.0.unary(Request::new(Bytes::new()), path, Bare).await;
        answer.expect("an answer").into_inner()
    }

    /// Both lists, as they came.
    pub(crate) async fn lists(&mut self) -> (Bytes, Bytes) {
        (
            self.ask("/runtime.v1.RuntimeService/ListPodSandbox").await,
            self.ask("/runtime.v1.RuntimeService/ListContainers").await,
        )
    }
}

impl BareClient {
    /// How long each of so many calls takes of which the answer is small, in µs.
    pub(crate) async fn versions(mut self, clock: &Clock, times: u32) -> Vec<f64> {
        let mut waits = Vec::new();
        for _ in 0..times {
            let began = clock.now().mono;
            black_box(self.ask("/runtime.v1.RuntimeService/Version").await);
            waits.push(clock.now().mono.since(began).as_secs_f64() * 1e6);
        }
        waits
    }
}

/// Messages of the event stream that nobody looks at.
pub(crate) struct BareMessages {
    /// Processor time of all.
    pub(crate) cpu: Duration,
    /// From the runtime's stamp until each was here, in ns.
    pub(crate) delays: Vec<i64>,
}

pub(crate) async fn of_messages(
    client: &mut BareClient,
    clock: &Clock,
    time: Duration,
) -> BareMessages {
    let path = PathAndQuery::from_static("/runtime.v1.RuntimeService/GetContainerEvents");
    let request = Request::new(Bytes::new());
    client.0.ready().await.expect("a connection");
    let answer = client.0.server_streaming(request, path, Bare).await;
    let mut messages = answer.expect("a stream").into_inner();
    // What had gathered without a client comes first.
    let warm = clock.now().mono.after(Duration::from_secs(1));
    let end = warm.after(time);
    let (mut before, mut came) = (cpu(), Vec::new());
    loop {
        let message = messages.message().await.expect("a message");
        let now = clock.now();
        if now.mono >= end {
            break;
        }
        if now.mono < warm {
            before = cpu();
        } else {
            came.push((now.wall.0, message.expect("the stream goes on")));
        }
    }
    let cpu = cpu().saturating_sub(before);
    // Their stamps are read only now, so that nothing but the wait was measured.
    let delays = came.into_iter().map(|(came, message)| {
        let message = cri::ContainerEventResponse::decode(message).expect("a message");
        came - message.created_at
    });
    let delays = delays.collect();
    BareMessages { cpu, delays }
}

/// Processor time of one pair of lists.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) bytes: usize,
    pub(crate) over_grpc: Duration,
    /// Of the same.
    pub(crate) allocations: u64,
    pub(crate) through_prost: Duration,
    pub(crate) through_a_socket: Duration,
}

pub(crate) async fn of_lists(client: &mut BareClient, times: u32) -> Limits {
    let (sandboxes, containers) = client.lists().await;
    let asked_before = asked();
    let before = cpu();
    for _ in 0..times {
        black_box(client.lists().await);
    }
    let over_grpc = cpu().saturating_sub(before) / times;
    let allocations = asked().allocations - asked_before.allocations;
    let before = thread_cpu();
    for _ in 0..times {
        let sandboxes = cri::ListPodSandboxResponse::decode(black_box(&*sandboxes));
        let containers = cri::ListContainersResponse::decode(black_box(&*containers));
        black_box((sandboxes.expect("a list"), containers.expect("a list")));
    }
    let through_prost = thread_cpu().saturating_sub(before) / times;
    let bytes = sandboxes.len() + containers.len();
    Limits {
        bytes,
        over_grpc,
        allocations: allocations / u64::from(times),
        through_prost,
        through_a_socket: socket(bytes, times),
    }
}

/// What a thread spends on reading so many bytes that another writes.
fn socket(bytes: usize, times: u32) -> Duration {
    let (mut here, mut there) = UnixStream::pair().expect("a pair of sockets");
    let writer = std::thread::spawn(move || {
        let piece = vec![7; 64 << 10];
        for _ in 0..times {
            let mut left = bytes;
            while left > 0 {
                let part = left.min(piece.len());
                there.write_all(&piece[..part]).expect("somebody reads");
                left -= part;
            }
        }
    });
    let mut buffer = vec![0; 64 << 10];
    let before = thread_cpu();
    while here.read(&mut buffer).expect("somebody writes") > 0 {
        black_box(&buffer);
    }
    let spent = thread_cpu().saturating_sub(before);
    writer.join().expect("it ends");
    spent / times
}
