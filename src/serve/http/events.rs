//! `/api/v1/events`: what happens, as server-sent events.
//!
//! | event | data | id |
//! |---|---|---|
//! | `lifecycle` | a lifecycle event, as everywhere | its position; none in a snapshot |
//! | `snapshot-begin` | why there is one | none: forget what you know |
//! | `snapshot-end` | the position | the position |
//! | `list-again` | the reason; a snapshot follows | none |
//! | `mode` | a change of mode | none: it cannot be resumed |
//!
//! Whoever comes without an id gets a snapshot first. Whoever comes with one (`Last-Event-ID`, which
//! browsers send by themselves, or `?after=`) gets exactly what followed, or `list-again` and a
//! snapshot: never a silent gap, neither at the beginning nor later. An event of a snapshot has no id,
//! because a client that is cut off in the middle of one must not resume there.

use std::collections::VecDeque;
use std::convert::Infallible;

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::{Stream, StreamExt, stream};
use serde::Deserialize;
use serde_json::json;
use tokio::sync::{OwnedSemaphorePermit, watch};

use super::problem::Problem;
use super::{Shared, stopped};
use crate::engine::{Mode, ModeChange};
use crate::serve::{
    Client, ListAgain, Position, Serving, Told, WatchEnd, WatchRefused, WatchStart, Watcher,
    event_json,
};

/// How many events are taken at once.
const BATCH: usize = 64;

/// After how long a browser that was cut off comes back.
const COME_BACK_AFTER: std::time::Duration = std::time::Duration::from_secs(1);

/// Where to begin.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct From {
    /// A position: that of a list or of an event. What a browser sends by itself goes before it.
    after: Option<String>,
}

/// Follows what happens.
pub(super) async fn follow(
    State(shared): State<Shared>,
    from: Result<Query<From>, axum::extract::rejection::QueryRejection>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let Query(from) = from.map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
    let position = position(&headers, &from)?;
    let place = std::sync::Arc::clone(&shared.watchers).try_acquire_owned();
    let place = place.map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "TooManyWatchers",
            "there are as many watchers over HTTP as are allowed",
        )
    })?;
    let client = client(&headers);
    let following = Following::begin(&shared, position, client, place)?;
    let keep_alive = KeepAlive::new().interval(shared.keep_alive);
    let events = Sse::new(following.into_stream()).keep_alive(keep_alive);
    // A proxy in between is not to wait for more.
    Ok(([("x-accel-buffering", "no")], events).into_response())
}

fn position(headers: &HeaderMap, from: &From) -> Result<Option<Position>, Problem> {
    let header = match headers.get("last-event-id") {
        None => None,
        Some(id) => Some(
            id.to_str()
                .map_err(|_| Problem::bad_request("Last-Event-ID is no position"))?,
        ),
    };
    let position = header.filter(|id| !id.is_empty()).or(from.after.as_deref());
    Ok(position.map(str::parse).transpose()?)
}

fn client(headers: &HeaderMap) -> Client {
    let agent = headers.get(header::USER_AGENT);
    Client {
        transport: "http",
        name: agent
            .and_then(|agent| agent.to_str().ok())
            .unwrap_or_default()
            .to_owned(),
    }
}

/// One client that follows.
struct Following {
    serving: Serving,
    watcher: Watcher,
    client: Client,
    modes: std::pin::Pin<Box<dyn Stream<Item = ModeChange> + Send>>,
    stops: watch::Receiver<bool>,
    /// What is to be told before anything that comes.
    ready: VecDeque<Event>,
    ended: bool,
    _place: OwnedSemaphorePermit,
}

impl Following {
    fn begin(
        shared: &Shared,
        position: Option<Position>,
        client: Client,
        place: OwnedSemaphorePermit,
    ) -> Result<Self, Problem> {
        let serving = shared.serving.clone();
        // Before the watcher, so that no change falls between.
        let modes = Box::pin(serving.pleg().modes());
        let mut ready = VecDeque::from([Event::default().retry(COME_BACK_AFTER)]);
        let start = position.map_or(WatchStart::Snapshot, WatchStart::After);
        let watcher = match serving.watch(start, client.clone()) {
            Ok(watcher) => {
                ready.push_back(match position {
                    None => snapshot_begin("Fresh"),
                    // A client that is cut off before anything happens comes back to here.
                    Some(position) => Event::default().id(position.to_string()),
                });
                watcher
            }
            Err(WatchRefused::ListAgain(why)) => {
                ready.extend([list_again(why), snapshot_begin(why.reason())]);
                serving.watch(WatchStart::Snapshot, client.clone())?
            }
            Err(refused) => return Err(refused.into()),
        };
        Ok(Self {
            serving,
            watcher,
            client,
            modes,
            stops: shared.stops.clone(),
            ready,
            ended: false,
            _place: place,
        })
    }

    fn into_stream(self) -> impl Stream<Item = Result<Event, Infallible>> {
        stream::unfold(self, |mut following| async move {
            let event = following.next().await?;
            Some((Ok(event), following))
        })
    }

    async fn next(&mut self) -> Option<Event> {
        loop {
            if let Some(event) = self.ready.pop_front() {
                return Some(event);
            }
            if self.ended {
                return None;
            }
            let told = tokio::select! {
                biased;
                () = stopped(&mut self.stops) => return None,
                Some(change) = self.modes.next() => return Some(mode(&change)),
                told = self.watcher.next(BATCH) => told,
            };
            match told {
                Ok(told) => {
                    let epoch = self.serving.epoch();
                    self.ready.extend(told.iter().map(|told| match told {
                        Told::Initial(event) => lifecycle(&event_json(epoch, event)),
                        Told::Event(event) => {
                            lifecycle(&event.json()).id(event.position.to_string())
                        }
                        Told::SnapshotEnd(position) => snapshot_end(*position),
                    }));
                }
                Err(WatchEnd::ListAgain(why)) => self.begin_again(why),
                Err(WatchEnd::Closed) => return None,
            }
        }
    }

    /// It fell behind: it is told so, and everything again.
    fn begin_again(&mut self, why: ListAgain) {
        self.ready.push_back(list_again(why));
        match self
            .serving
            .watch(WatchStart::Snapshot, self.client.clone())
        {
            Ok(watcher) => {
                self.ready.push_back(snapshot_begin(why.reason()));
                self.watcher = watcher;
            }
            // It comes back with the id that it has, and is told the same again.
            Err(_) => self.ended = true,
        }
    }
}

fn lifecycle(json: &[u8]) -> Event {
    // JSON is UTF-8; what is not would be told as an empty object.
    let json = std::str::from_utf8(json).unwrap_or("{}");
    Event::default().event("lifecycle").data(json)
}

fn snapshot_begin(reason: &str) -> Event {
    let data = json!({ "reason": reason }).to_string();
    Event::default().event("snapshot-begin").data(data)
}

fn snapshot_end(position: Position) -> Event {
    let data = json!({ "position": position }).to_string();
    Event::default()
        .event("snapshot-end")
        .id(position.to_string())
        .data(data)
}

fn list_again(why: ListAgain) -> Event {
    let data = json!({ "reason": why.reason(), "message": why.to_string() }).to_string();
    Event::default().event("list-again").data(data)
}

fn mode(change: &ModeChange) -> Event {
    let reason = match change.to {
        Mode::Polling { reason } => Some(reason),
        Mode::Connecting | Mode::Evented { .. } => None,
    };
    let data = json!({
        "from": change.from.name(),
        "to": change.to.name(),
        "reason": reason,
        "cause": change.cause,
        "at": change.at,
    });
    Event::default().event("mode").data(data.to_string())
}
