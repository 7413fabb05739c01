//! The service: each method in terms of [`Serving`], and nothing kept here.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt, stream};
use prost::Message;
use tokio::sync::Semaphore;
use tonic::metadata::MetadataValue;
use tonic::{Code, Request, Response, Status};

use super::convert;
use super::encoded::Encoded;
use super::messages::{
    self, GetPodRequest, GetPodResponse, GetRecordingRequest, GetRecordingResponse,
    GetStatusRequest, GetStatusResponse, ListPodsRequest, ListPodsResponse, RequestRelistRequest,
    RequestRelistResponse, SnapshotEnd, TakeMarkRequest, TakeMarkResponse, WatchFrom, WatchRequest,
    WatchResponse, watch_response,
};
use super::server::pleg_server;
use crate::engine::{Freshness, ModeChange};
use crate::lifecycle::{LifecycleEvent, Mark, PodUid};
use crate::serve::{
    Client, EpochMark, ListAgain, Position, PositionError, RingEvent, Serving, Told, WatchEnd,
    WatchRefused, WatchStart, Watcher,
};
use crate::{Pleg, Stopped};

/// The trailer that says why a watcher must list again.
pub const LIST_AGAIN: &str = "pleg-list-again";

/// How many events are taken from the ring at once.
const BATCH: usize = 256;

/// How many reads of the runtime may be waited for at a time.
const READS: usize = 64;

/// How long a read of the runtime may take: longer than its calls may.
const READ_DEADLINE: Duration = Duration::from_secs(300);

/// How many recordings may be made at a time: each takes memory.
const RECORDINGS: usize = 1;

/// Bytes of a recording in one message.
const RECORDING_CHUNK: usize = 64 << 10;

/// A uid is at most so long: longer ones are no pod's.
const UID_LENGTH: usize = 1_024;

/// `pleg.v1.Pleg`.
#[derive(Clone)]
pub struct Service {
    serving: Serving,
    reads: Arc<Semaphore>,
    recordings: Arc<Semaphore>,
}

impl Service {
    /// Serves what `serving` has.
    #[must_use]
    pub fn new(serving: Serving) -> Self {
        Self {
            serving,
            reads: Arc::new(Semaphore::new(READS)),
            recordings: Arc::new(Semaphore::new(RECORDINGS)),
        }
    }

    fn pleg(&self) -> &Pleg {
        self.serving.pleg()
    }

    fn mark_text(&self, mark: Mark) -> String {
        let epoch = self.serving.epoch();
        EpochMark { epoch, mark }.to_string()
    }

    /// The mark that a client handed in.
    async fn mark(&self, text: &str) -> Result<Mark, Status> {
        if text == "now" {
            return self.pleg().mark().await.map_err(stopped);
        }
        let mark: EpochMark = text.parse().map_err(|why| refused("newer_than", why))?;
        if mark.epoch == self.serving.epoch() {
            let checked = self.serving.check(mark.mark);
            checked.map_err(|why| refused("newer_than", why))?;
            Ok(mark.mark)
        } else {
            Err(Status::failed_precondition(
                "the mark is of another life of the daemon, which has restarted since; \
                 take a new one, or ask for what is newer than now",
            ))
        }
    }
}

#[tonic::async_trait]
impl pleg_server::Pleg for Service {
    async fn list_pods(
        &self,
        _: Request<ListPodsRequest>,
    ) -> Result<Response<ListPodsResponse>, Status> {
        let list = self.serving.list();
        Ok(Response::new(ListPodsResponse {
            items: list
                .items
                .iter()
                .map(|status| convert::pod(status))
                .collect(),
            position: list.position.to_string(),
        }))
    }

    async fn get_pod(
        &self,
        request: Request<GetPodRequest>,
    ) -> Result<Response<GetPodResponse>, Status> {
        let request = request.into_inner();
        let uid = uid(&request.uid)?;
        if request.newer_than.is_empty() {
            let cache = self.pleg().cache();
            let cached = cache.get(&uid);
            let observed = match &cached {
                Some(cached) => cached.observed,
                None => cache.observed(&uid),
            };
            return Ok(Response::new(GetPodResponse {
                pod: cached.map(|cached| convert::pod(&cached.status)),
                observed: self.mark_text(observed),
            }));
        }
        let _read = self.reads.try_acquire().map_err(|_| {
            Status::resource_exhausted(format!("{READS} reads are waited for already"))
        })?;
        let newer_than = self.mark(&request.newer_than).await?;
        let freshness = if request.phases_only {
            Freshness::Phases
        } else {
            Freshness::Details
        };
        let read = self.pleg().get_newer_than(uid, newer_than, freshness);
        let reading = tokio::time::timeout(READ_DEADLINE, read)
            .await
            .map_err(|_| Status::deadline_exceeded("the runtime does not answer"))?
            .map_err(stopped)?;
        Ok(Response::new(GetPodResponse {
            pod: reading.status.map(|status| convert::pod(&status)),
            observed: self.mark_text(reading.observed),
        }))
    }

    type WatchStream = BoxStream<'static, Result<Encoded, Status>>;

    async fn watch(
        &self,
        request: Request<WatchRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let request = request.into_inner();
        let start = start(&request)?;
        let client = Client {
            transport: "grpc",
            name: request.client,
        };
        // Before the watcher, so that no change between the two is lost.
        let modes = request.mode_changes.then(|| self.pleg().modes());
        let watcher = self.serving.watch(start, client).map_err(not_watched)?;
        let told = told(watcher);
        let answers = match modes {
            // Whoever is told events is told that they end; modes end with the driver, silently.
            Some(modes) => with_modes(told, modes).boxed(),
            None => told.boxed(),
        };
        Ok(Response::new(answers))
    }

    async fn take_mark(
        &self,
        _: Request<TakeMarkRequest>,
    ) -> Result<Response<TakeMarkResponse>, Status> {
        let mark = self.pleg().mark().await.map_err(stopped)?;
        Ok(Response::new(TakeMarkResponse {
            mark: self.mark_text(mark),
        }))
    }

    async fn request_relist(
        &self,
        request: Request<RequestRelistRequest>,
    ) -> Result<Response<RequestRelistResponse>, Status> {
        let request = request.into_inner();
        let pleg = self.pleg();
        if request.uid.is_empty() {
            pleg.request_full_relist().await.map_err(stopped)?;
        } else {
            let uid = uid(&request.uid)?;
            pleg.request_relist(uid).await.map_err(stopped)?;
        }
        Ok(Response::new(RequestRelistResponse {}))
    }

    async fn get_status(
        &self,
        _: Request<GetStatusRequest>,
    ) -> Result<Response<GetStatusResponse>, Status> {
        Ok(Response::new(convert::status(&self.serving.status().await)))
    }

    type GetRecordingStream = BoxStream<'static, Result<GetRecordingResponse, Status>>;

    async fn get_recording(
        &self,
        request: Request<GetRecordingRequest>,
    ) -> Result<Response<Self::GetRecordingStream>, Status> {
        let seconds = request.into_inner().last_seconds;
        let span = Duration::try_from_secs_f64(seconds)
            .map_err(|_| Status::invalid_argument("last_seconds is no duration"))?;
        let Some(last_minutes) = self.serving.last_minutes() else {
            return Err(Status::unimplemented("no flight recorder runs here"));
        };
        let permit = Arc::clone(&self.recordings).try_acquire_owned();
        let permit = permit.map_err(|_| {
            Status::resource_exhausted("somebody is fetching the recording already")
        })?;
        let recording = last_minutes
            .recording(span)
            .await
            .map_err(|error| Status::unavailable(format!("no recording: {error}")))?;
        let chunks = stream::unfold(
            (Bytes::from(recording), permit),
            |(mut rest, permit)| async move {
                if rest.is_empty() {
                    return None;
                }
                let data = rest.split_to(RECORDING_CHUNK.min(rest.len()));
                let data = data.to_vec();
                Some((Ok(GetRecordingResponse { data }), (rest, permit)))
            },
        );
        Ok(Response::new(chunks.boxed()))
    }
}

fn uid(text: &str) -> Result<PodUid, Status> {
    if text.is_empty() || text.len() > UID_LENGTH {
        return Err(Status::invalid_argument(format!(
            "uid must be a pod's uid: 1 to {UID_LENGTH} bytes"
        )));
    }
    Ok(text.into())
}

fn start(request: &WatchRequest) -> Result<WatchStart, Status> {
    let from = WatchFrom::try_from(request.from)
        .map_err(|_| Status::invalid_argument("from: there is no such beginning"))?;
    match from {
        WatchFrom::Position => {
            let position: Result<Position, _> = request.position.parse();
            position
                .map(WatchStart::After)
                .map_err(|why| refused("position", why))
        }
        _ if !request.position.is_empty() => Err(Status::invalid_argument(
            "position: given, but not to begin there; set from to WATCH_FROM_POSITION",
        )),
        WatchFrom::Snapshot => Ok(WatchStart::Snapshot),
        WatchFrom::Now => Ok(WatchStart::Now),
    }
}

fn refused(field: &str, why: PositionError) -> Status {
    Status::invalid_argument(format!("{field}: {why}"))
}

fn stopped(_: Stopped) -> Status {
    Status::unavailable("the driver has stopped")
}

fn not_watched(why: WatchRefused) -> Status {
    match why {
        WatchRefused::ListAgain(why) => list_again(why),
        WatchRefused::TooMany(_) => Status::resource_exhausted(why.to_string()),
    }
}

fn list_again(why: ListAgain) -> Status {
    let mut status = Status::new(Code::OutOfRange, why.to_string());
    let reason = MetadataValue::from_static(why.reason());
    status.metadata_mut().insert(LIST_AGAIN, reason);
    status
}

/// What a watcher is told, one answer each, with the reason for its end.
fn told(watcher: Watcher) -> impl Stream<Item = Result<Encoded, Status>> + Send {
    let state = (Some(watcher), VecDeque::new());
    stream::unfold(state, |(mut watcher, mut waiting)| async move {
        if waiting.is_empty() {
            match watcher.as_mut()?.next(BATCH).await {
                Ok(told) => waiting.extend(told),
                Err(end) => return Some((Err(ended(end)), (None, waiting))),
            }
        }
        let answer = encoded(waiting.pop_front()?);
        Some((Ok(answer), (watcher, waiting)))
    })
}

/// The same, with changes of mode in between. It ends with the events.
fn with_modes(
    told: impl Stream<Item = Result<Encoded, Status>> + Send + 'static,
    modes: impl Stream<Item = ModeChange> + Send + 'static,
) -> impl Stream<Item = Result<Encoded, Status>> + Send {
    let modes = modes.map(|change| Some(Ok(mode_answer(&change))));
    let told = told.map(Some).chain(stream::iter([None]));
    // Changes of mode are few: taken first, they hold up nothing.
    let both = stream::select_with_strategy(modes, told, |(): &mut ()| stream::PollNext::Left);
    both.take_while(|answer| std::future::ready(answer.is_some()))
        .filter_map(std::future::ready)
}

fn ended(end: WatchEnd) -> Status {
    match end {
        WatchEnd::ListAgain(why) => list_again(why),
        WatchEnd::Closed => Status::unavailable(end.to_string()),
    }
}

fn encoded(told: Told) -> Encoded {
    match told {
        Told::Initial(event) => (&answer(&event, String::new())).into(),
        Told::SnapshotEnd(position) => (&WatchResponse {
            told: Some(watch_response::Told::SnapshotEnd(SnapshotEnd {})),
            position: position.to_string(),
        })
            .into(),
        Told::Event(held) => Encoded::from_bytes(held.protobuf(encode)),
    }
}

fn encode(held: &RingEvent) -> Bytes {
    let answer = answer(&held.event, held.position.to_string());
    answer.encode_to_vec().into()
}

fn answer(event: &LifecycleEvent, position: String) -> WatchResponse {
    WatchResponse {
        told: Some(watch_response::Told::Event(convert::event(event))),
        position,
    }
}

fn mode_answer(change: &ModeChange) -> Encoded {
    let told = watch_response::Told::ModeChange(convert::mode_change(change));
    (&messages::WatchResponse {
        told: Some(told),
        position: String::new(),
    })
        .into()
}
