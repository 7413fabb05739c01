//! A daemon without sockets: a simulated runtime, the driver, the feeder, the HTTP server.

use std::time::Duration;

use tokio::task::JoinHandle;

use crate::clock::Clock;
use crate::lifecycle::{Mark, UnixNanos};
use crate::serve::http::{HostPolicy, HttpLimits, HttpServer};
use crate::serve::status::Notebook;
use crate::serve::{Epoch, Limits, RingLimits, Serving};
use crate::simulate::{Character, SimulatedRuntime};
use crate::{Builder, Pleg};

pub(super) const EPOCH: Epoch = Epoch(0xfeed_0000_0000_0001);
const NOON: UnixNanos = UnixNanos(1_796_040_000_000_000_000);

pub(super) struct House {
    pub(super) runtime: SimulatedRuntime,
    pub(super) serving: Serving,
    pub(super) server: HttpServer,
    tasks: Vec<JoinHandle<()>>,
}

impl House {
    /// A node with three pods that is followed by events.
    pub(super) async fn evented() -> Self {
        let house = Self::with(HttpLimits::default(), Limits::default());
        house.settled().await;
        house
    }

    pub(super) fn with(http: HttpLimits, limits: Limits) -> Self {
        Self::built(http, limits, true, |builder| builder)
    }

    /// A daemon whose ring keeps so few events.
    pub(super) async fn keeping(events: usize) -> Self {
        let ring = RingLimits {
            events,
            ..RingLimits::default()
        };
        let limits = Limits {
            ring,
            ..Limits::default()
        };
        let house = Self::with(HttpLimits::default(), limits);
        house.settled().await;
        house
    }

    pub(super) fn built(
        http: HttpLimits,
        limits: Limits,
        runs: bool,
        build: impl FnOnce(Builder) -> Builder,
    ) -> Self {
        let runtime = SimulatedRuntime::builder()
            .character(Character::containerd_2())
            .epoch(NOON)
            .pods(3)
            .seed(7)
            .build();
        let notebook = Notebook::default();
        let noting = notebook.clone();
        let builder = Pleg::builder()
            .channel(runtime.channel())
            .clock(Clock::starting_at(NOON))
            .seed(1)
            .tap(move |tapped| noting.see(tapped));
        let (pleg, driver) = build(builder).build().expect("nothing contradicts itself");
        let (serving, feeder) =
            Serving::new(pleg, EPOCH, limits, notebook, None).expect("nothing has ended");
        let mut tasks = vec![tokio::spawn(feeder.run())];
        if runs {
            tasks.push(tokio::spawn(async move {
                driver.run().await.expect("a task can be spawned");
            }));
        } else {
            // It is there, but nobody runs it: it hangs.
            tasks.push(tokio::spawn(async move {
                let _driver = driver;
                std::future::pending::<()>().await;
            }));
        }
        let server = HttpServer::new(serving.clone(), HostPolicy::default(), http);
        Self {
            runtime,
            serving,
            server,
            tasks,
        }
    }

    /// Waits until the node was relisted, the stream stands, and the feeder has carried everything.
    pub(super) async fn settled(&self) {
        let pleg = self.serving.pleg();
        pleg.relisted_since(Mark::default()).await.expect("it runs");
        self.runtime.streams_opened(1).await;
        self.wait(5).await;
    }

    pub(super) async fn wait(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

impl Drop for House {
    fn drop(&mut self) {
        for task in &self.tasks {
            task.abort();
        }
    }
}
