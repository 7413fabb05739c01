//! From the runtime's stamp of a message to its delivery by `watch()`, over a unix socket.
//!
//! `cargo bench --bench latency`: 110 pods of 3 containers, 100 starts and ends a second for 20 s, the
//! simulated runtime on a thread of its own. Prints percentiles; asserts nothing.

use std::time::Duration;

use futures::StreamExt;
use pleg::clock::Clock;
use pleg::feed::WatchFrom;
use pleg::lifecycle::Source;
use pleg::simulate::SimulatedRuntime;
use pleg::{BuildError, Pleg};

const FOR: Duration = Duration::from_secs(20);

fn one_thread() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .expect("an event loop can be made")
}

fn main() -> Result<(), BuildError> {
    let folder = tempfile::tempdir().expect("a folder can be made");
    let socket = folder.path().join("cri.sock");
    let served = socket.clone();
    std::thread::spawn(move || {
        one_thread().block_on(async {
            let runtime = SimulatedRuntime::builder()
                .pods(110)
                .containers(3)
                .churn(100.0)
                .build();
            let _server = runtime.serve_unix(&served).expect("the socket is free");
            runtime.churn().await;
        });
    });
    while !socket.exists() {
        std::thread::yield_now();
    }
    let endpoint = format!("unix://{}", socket.display());
    let mut latencies = one_thread().block_on(async {
        let endpoint = endpoint.parse().expect("it is an endpoint");
        let (pleg, driver) = Pleg::builder().endpoint(endpoint).build()?;
        tokio::spawn(driver.run());
        let mut events = pleg.watch(WatchFrom::Now).expect("the feed has begun");
        let clock = Clock::system();
        let mut latencies = Vec::new();
        let until = tokio::time::sleep(FOR);
        tokio::pin!(until);
        loop {
            let event = tokio::select! {
                biased;
                () = &mut until => break,
                event = events.next() => event,
            };
            let Some(event) = event else { break };
            if event.source == Source::Event
                && let Some(stamp) = event.runtime_stamp
            {
                latencies.push(clock.now().wall.0 - stamp.0);
            }
        }
        Ok(latencies)
    })?;
    latencies.sort_unstable();
    let micros = |part: usize| {
        latencies
            .get(latencies.len() * part / 1000)
            .map(|ns| ns / 1000)
    };
    println!(
        "{} events: p50 {:?} us, p90 {:?} us, p99 {:?} us",
        latencies.len(),
        micros(500),
        micros(900),
        micros(990)
    );
    Ok(())
}
