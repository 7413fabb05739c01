//! One line for each container that was killed for want of memory.
//!
//!     cargo run --example alert_on_oom -- unix:///run/containerd/containerd.sock
//!     cargo run --example alert_on_oom                       # on a simulated node

use futures::StreamExt;
use pleg::feed::WatchFrom;
use pleg::lifecycle::EventSubject;
use pleg::{Pleg, simulate::SimulatedRuntime};

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (pleg, driver) = if let Some(endpoint) = std::env::args().nth(1) {
        Pleg::builder().endpoint(endpoint.parse()?).build()?
    } else {
        let runtime = SimulatedRuntime::builder().busy_node().churn(20.0).build();
        let churning = runtime.clone();
        tokio::spawn(async move { churning.churn().await });
        Pleg::builder()
            .connector(move || runtime.channel())
            .build()?
    };
    tokio::spawn(driver.run());

    let mut events = pleg.watch(WatchFrom::Now)?;
    while let Some(event) = events.next().await {
        if let (Some(EventSubject::Container { name, .. }), Some(exit)) =
            (&event.subject, &event.exit)
            && &*exit.reason == "OOMKilled"
        {
            let pod = &event.pod;
            println!(
                "{}/{} {name}: exit code {}, {}",
                pod.namespace, pod.name, exit.exit_code, exit.reason
            );
        }
    }
    Ok(())
}
