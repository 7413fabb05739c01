//! Over a real unix socket, on the real clock, and with the reader on its own thread.

use std::io;

use tokio::net::UnixListener;
use tokio_stream::wrappers::UnixListenerStream;
use tonic::transport::Server;

use super::fake::Fake;
use super::stream::{event, next};
use crate::cri::wire::samples::{container, sandbox};
use crate::cri::wire::server::runtime_service_server::RuntimeServiceServer;
use crate::cri::{
    CallError, CallLimits, CriClient, Endpoint, ReaderLimits, ReaderPlace, StreamReader,
    StreamSource,
};
use crate::engine::{FailureKind, SessionId};

fn endpoint_in(folder: &tempfile::TempDir) -> Endpoint {
    let path = folder.path().join("runtime.sock");
    let path = path.to_str().expect("temporary folders have plain names");
    path.parse().expect("an absolute path")
}

fn serve(endpoint: &Endpoint, fake: Fake) -> io::Result<()> {
    let listener = UnixListener::bind(endpoint.path())?;
    let server = Server::builder().add_service(RuntimeServiceServer::new(fake));
    tokio::spawn(server.serve_with_incoming(UnixListenerStream::new(listener)));
    Ok(())
}

#[tokio::test]
async fn calls_and_streams_pass_through_a_socket() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let endpoint = endpoint_in(&folder);
    let (fake, mut watched) = Fake::new();
    fake.script().sandboxes = vec![sandbox("s1", "u1")];
    fake.script().containers = vec![container("c1", 1)];
    serve(&endpoint, fake.clone()).expect("the socket is new");

    let client = CriClient::for_endpoint(&endpoint, CallLimits::default());
    let version = client.version().await.expect("it answers");
    assert_eq!(&*version.name, "fake");
    let list = client.list_node().await.expect("it answers");
    assert_eq!(list.containers.items.len(), 1);
    fake.take_log();

    let source = StreamSource::Endpoint(endpoint);
    let limits = ReaderLimits::default();
    let (reader, mut inbox) =
        StreamReader::start(source, ReaderPlace::OwnThread, limits).expect("a thread");
    reader.open(SessionId(1));
    let first = watched.stream().await;
    first.send(Ok(event("c1"))).expect("it is read");
    assert_eq!(next(&mut inbox).await, ["1 c1"]);

    // The first connection is closed before the second is dialled.
    reader.open(SessionId(2));
    let second = watched.stream().await;
    second.send(Ok(event("c2"))).expect("it is read");
    assert_eq!(next(&mut inbox).await, ["2 c2"]);
    first.closed().await;

    reader.shutdown().await;
    assert_eq!(next(&mut inbox).await, [""; 0], "the reader has ended");
    second.closed().await;
}

/// F11: nothing is dialled before the first call, and that one says why it failed.
#[tokio::test]
async fn a_socket_that_is_not_there_is_named_by_its_own_error() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let endpoint = endpoint_in(&folder);
    let client = CriClient::for_endpoint(&endpoint, CallLimits::default());
    let error = client.version().await.expect_err("nobody listens");
    assert_eq!(error.kind(), FailureKind::Unavailable);
    assert!(matches!(error, CallError::Unreachable { .. }), "{error:?}");
    let text = error.to_string();
    assert!(text.contains("No such file or directory"), "{text}");

    let limits = ReaderLimits::default();
    let source = StreamSource::Endpoint(endpoint.clone());
    let (reader, mut inbox) =
        StreamReader::start(source, ReaderPlace::OwnThread, limits).expect("a thread");
    reader.open(SessionId(1));
    assert_eq!(next(&mut inbox).await, ["1 broken: Unavailable"]);

    // And the same client finds it once it is there.
    let (fake, _watched) = Fake::new();
    serve(&endpoint, fake).expect("the socket is new");
    client.version().await.expect("it answers now");
}
