//! What one observer of a node tells, collected as it tells it.
//!
//! The observer is any stream of what it told; this module only waits and compares.

use std::time::Duration;

use futures::{Stream, StreamExt};
use pleg::lifecycle::PodIdentity;
use tokio::pin;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::truth::{Sight, Told, Truth};

/// How long an observer is listened to after it has told everything: it might go on with what it
/// must not tell.
const AFTERMATH: Duration = Duration::from_millis(500);

/// An observer's account of the node so far. It ends with the value.
pub(crate) struct Account {
    told: watch::Receiver<Vec<Told>>,
    reader: JoinHandle<()>,
}

impl Account {
    pub(crate) fn of(observer: impl Stream<Item = Told> + Send + 'static) -> Self {
        let (sender, told) = watch::channel(Vec::new());
        let reader = tokio::spawn(async move {
            pin!(observer);
            while let Some(event) = observer.next().await {
                sender.send_modify(|told| told.push(event));
            }
        });
        Self { told, reader }
    }

    /// All that was told so far.
    pub(crate) fn all(&self) -> Vec<Told> {
        self.told.borrow().clone()
    }

    /// What was told about a pod, in the order in which it was told.
    pub(crate) fn of_pod(&self, pod: &PodIdentity) -> Vec<Told> {
        let told = self.told.borrow();
        told.iter()
            .filter(|event| event.pod == pod.uid)
            .cloned()
            .collect()
    }

    /// Waits, at most this long, until the observer has told of the pod what it must.
    pub(crate) async fn until_told(&self, truth: &Truth, sight: Sight, within: Duration) -> bool {
        let mut told = self.told.clone();
        let all_told = told.wait_for(|told| truth.is_told(told, sight));
        matches!(timeout(within, all_told).await, Ok(Ok(_)))
    }

    /// Waits as [`Self::until_told`] and a little longer, then says what is wrong with the account.
    pub(crate) async fn mistakes(
        &self,
        truth: &Truth,
        sight: Sight,
        within: Duration,
    ) -> Vec<String> {
        self.until_told(truth, sight, within).await;
        sleep(AFTERMATH).await;
        truth.discrepancies(&self.told.borrow(), sight)
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        self.reader.abort();
    }
}
