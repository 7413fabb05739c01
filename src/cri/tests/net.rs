//! Connections in memory that can be cut.

use std::convert::Infallible;
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use hyper_util::rt::TokioIo;
use tokio::io::DuplexStream;
use tokio::task::JoinHandle;
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::NamedService;
use tonic::transport::{Channel, Server};

use super::fake::{Fake, Watched};
use crate::cri::wire::server::runtime_service_server::RuntimeServiceServer;
use crate::cri::{CallLimits, CriClient, StreamSource};

type Serve = dyn Fn(DuplexStream) + Send + Sync;

/// Dials the runtime in memory, one pair of pipes and a cuttable cable between them each time.
#[derive(Clone)]
pub(super) struct Net {
    serve: Arc<Serve>,
    dials: Arc<AtomicUsize>,
    cables: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

impl Net {
    /// A runtime that follows a script, and the net that leads to it.
    pub(super) fn to_a_fake() -> (Self, Fake, Watched) {
        let (fake, watched) = Fake::new();
        let service = RuntimeServiceServer::new(fake.clone());
        (Self::to(service), fake, watched)
    }

    pub(super) fn to<S>(service: S) -> Self
    where
        S: Service<http::Request<Body>, Response = http::Response<Body>, Error = Infallible>
            + NamedService
            + Clone
            + Send
            + Sync
            + 'static,
        S::Future: Send,
    {
        let serve = move |io: DuplexStream| {
            let connections = tokio_stream::once(Ok::<_, io::Error>(io));
            let server = Server::builder().add_service(service.clone());
            tokio::spawn(server.serve_with_incoming(connections));
        };
        Self {
            serve: Arc::new(serve),
            dials: Arc::default(),
            cables: Arc::default(),
        }
    }

    fn dial(&self) -> DuplexStream {
        self.dials.fetch_add(1, Ordering::Relaxed);
        let (here, mut near) = tokio::io::duplex(64 << 10);
        let (mut far, there) = tokio::io::duplex(64 << 10);
        (self.serve)(there);
        let cable = tokio::spawn(async move {
            let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
        });
        self.cables.lock().expect("no test panics").push(cable);
        here
    }

    pub(super) fn dials(&self) -> usize {
        self.dials.load(Ordering::Relaxed)
    }

    /// Cuts every connection.
    pub(super) fn cut(&self) {
        for cable in self.cables.lock().expect("no test panics").drain(..) {
            cable.abort();
        }
    }

    pub(super) fn channel(&self) -> Channel {
        let net = self.clone();
        let connect = tower::service_fn(move |_: http::Uri| {
            let io = net.dial();
            async move { Ok::<_, io::Error>(TokioIo::new(io)) }
        });
        tonic::transport::Endpoint::from_static("http://in.memory")
            .connect_with_connector_lazy(connect)
    }

    pub(super) fn client(&self) -> CriClient {
        CriClient::new(self.channel(), CallLimits::default())
    }

    /// A channel for each stream.
    pub(super) fn source(&self) -> StreamSource {
        let net = self.clone();
        StreamSource::Connector(Arc::new(move || net.channel()))
    }
}
