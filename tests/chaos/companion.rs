//! A `pleg` inside the test, beside the one that is a process: it is never stopped, and its cache can be
//! looked at.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::StreamExt;
use pleg::cri::Tapped;
use pleg::engine::Output;
use pleg::feed::WatchFrom;
use pleg::lifecycle::{EventSubject, Now};
use pleg::{Pleg, Stats};
use tokio::time::{sleep, timeout};

use crate::driver::{Driver, wall_clock};
use crate::judge::Telling;
use crate::runtime_lists::{Entry, Listed, listed_of_node, shown_of};
use crate::shown::Shown;
use crate::testbed::{Testbed, Version};

pub(crate) struct Companion {
    pleg: Pleg,
    told: Arc<Mutex<Vec<Telling>>>,
    seen: Arc<Mutex<(Now, Shown)>>,
    runtime: Option<tokio::runtime::Runtime>,
}

impl Companion {
    /// On containerd 1.7 it polls: there it would take the other one's events.
    pub(crate) fn attach(bed: &Testbed) -> Self {
        let seen: Arc<Mutex<(Now, Shown)>> = Arc::default();
        let see = Arc::clone(&seen);
        let (pleg, driver) = Pleg::builder()
            .endpoint(bed.endpoint().parse().expect("the socket is an endpoint"))
            .evented_pleg(bed.version() != Version::Containerd17)
            .tap(move |tapped| take(&mut see.lock().expect("nobody panics"), tapped))
            .build()
            .expect("the settings agree");
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("companion")
            .enable_all()
            .build()
            .expect("a tokio runtime");
        let told: Arc<Mutex<Vec<Telling>>> = Arc::default();
        let mut events = pleg.watch(WatchFrom::Now).expect("the feed is open");
        let (list, handle) = (Arc::clone(&told), pleg.clone());
        runtime.spawn(async move {
            while let Some(event) = events.next().await {
                let id = event.subject.as_ref().map(EventSubject::id);
                list.lock().expect("nobody panics").push(Telling {
                    pod: event.pod.uid.to_string(),
                    id: id.map(|id| id.as_str().to_owned()).unwrap_or_default(),
                    kind: event.kind,
                    exit_code: event.exit.as_ref().map(|exit| exit.exit_code),
                    at: wall_clock(),
                    mode: handle.mode().to_string(),
                });
            }
        });
        runtime.spawn(driver.run());
        Self {
            pleg,
            told,
            seen,
            runtime: Some(runtime),
        }
    }

    pub(crate) fn told(&self) -> Vec<Telling> {
        self.told.lock().expect("nobody panics").clone()
    }

    pub(crate) fn shown(&self) -> Shown {
        self.seen.lock().expect("nobody panics").1.clone()
    }

    pub(crate) fn mode(&self) -> String {
        self.pleg.mode().to_string()
    }

    pub(crate) async fn stats(&self) -> Stats {
        self.pleg.stats().await.expect("the driver runs")
    }

    /// Where the cache still differs from the runtime's lists after this long of rest.
    pub(crate) async fn differences(&self, driver: &Driver, within: Duration) -> Vec<String> {
        let mut found = vec!["never compared".to_owned()];
        let compare = async {
            while !found.is_empty() {
                sleep(Duration::from_millis(500)).await;
                let listed = listed_of_node(driver).await;
                let pods = self.pleg.cache().list();
                let failing: BTreeSet<String> = pods
                    .iter()
                    .filter(|cached| cached.status.error.is_some())
                    .map(|cached| cached.status.pod.uid.to_string())
                    .collect();
                let shown = pods.iter().flat_map(|cached| shown_of(&cached.status));
                found = differences(&listed, &shown.collect());
                found.extend(
                    failing
                        .iter()
                        .map(|uid| format!("cannot be inspected: {uid}")),
                );
            }
        };
        // On a time-out what was found last stands.
        let _ = timeout(within, compare).await;
        found
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn take((now, shown): &mut (Now, Shown), tapped: Tapped<'_>) {
    match tapped {
        Tapped::Input { now: at, input } => {
            *now = at;
            shown.took(input);
        }
        Tapped::Output(Output::Ask { request, question }) => shown.asked(*now, *request, question),
        _ => {}
    }
}

fn differences(listed: &Listed, shown: &Listed) -> Vec<String> {
    let line = |word: &str, entry: &Entry| format!("{word}: {entry:?}");
    let missing = listed
        .difference(shown)
        .map(|entry| line("not in the cache", entry));
    let extra = shown
        .difference(listed)
        .map(|entry| line("only in the cache", entry));
    missing.chain(extra).collect()
}
