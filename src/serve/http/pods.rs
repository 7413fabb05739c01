//! `/api/v1/pods` and `/api/v1/pods/{uid}`.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};

use super::Shared;
use super::problem::Problem;
use crate::engine::{Freshness, Reading};
use crate::lifecycle::{Mark, PodStatus, PodUid};
use crate::serve::{EpochMark, PodList};

/// How long a pod is waited for, if the client does not say.
const DEFAULT_TIMEOUT: u64 = 10;

/// How long it is waited for at most.
const LONGEST_TIMEOUT: u64 = 60;

/// Every pod, and the position to follow after. Its `ETag` is that position: whoever sends it back is
/// told that nothing has changed, if nothing has.
pub(super) async fn list(State(shared): State<Shared>, headers: HeaderMap) -> Response {
    let tag = |list: &PodList| format!("\"{}\"", list.position);
    let list = shared.serving.list();
    let tag = tag(&list);
    let known = headers.get_all(header::IF_NONE_MATCH);
    let is_known = known.iter().any(|known| known.as_bytes() == tag.as_bytes());
    let tagged = [(header::ETAG, tag)];
    if is_known {
        (StatusCode::NOT_MODIFIED, tagged).into_response()
    } else {
        (tagged, Json(list)).into_response()
    }
}

/// What a client may ask of one pod.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Wanted {
    /// `now`, or a mark that an answer carried as `observed`.
    newer_than: Option<String>,
    /// How fresh: everything by default, or membership and phases alone.
    freshness: Option<Freshness>,
    timeout_seconds: Option<u64>,
}

/// One pod.
#[derive(Debug, Serialize)]
struct Pod {
    pod: Arc<PodStatus>,
    /// The mark at which the read began that vouches for it.
    observed: String,
}

/// One pod: as it stands in the cache, or from a read that is newer than what was said.
pub(super) async fn one(
    State(shared): State<Shared>,
    uid: Result<Path<String>, axum::extract::rejection::PathRejection>,
    wanted: Result<Query<Wanted>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let Path(uid) = uid.map_err(|rejection| Problem::bad_request(rejection.body_text()))?;
    let Query(wanted) = wanted.map_err(|rejection| {
        Problem::bad_request(format!(
            "{}; a pod is asked for with newerThan=now|MARK, freshness=details|phases, \
             timeoutSeconds=1..{LONGEST_TIMEOUT}",
            rejection.body_text()
        ))
    })?;
    let uid = PodUid::from(uid.as_str());
    let reading = match &wanted.newer_than {
        None => cached(&shared, &uid),
        Some(newer_than) => read(&shared, &uid, newer_than, &wanted).await?,
    };
    let observed = EpochMark {
        epoch: shared.serving.epoch(),
        mark: reading.observed,
    };
    match reading.status {
        Some(pod) => {
            let observed = observed.to_string();
            Ok(Json(Pod { pod, observed }).into_response())
        }
        None => Err(
            Problem::not_found("the runtime has nothing of a pod with this uid").observed(observed),
        ),
    }
}

fn cached(shared: &Shared, uid: &PodUid) -> Reading {
    let cache = shared.serving.pleg().cache();
    match cache.get(uid) {
        Some(cached) => Reading {
            status: Some(cached.status),
            observed: cached.observed,
        },
        None => Reading {
            status: None,
            observed: cache.observed(uid),
        },
    }
}

async fn read(
    shared: &Shared,
    uid: &PodUid,
    newer_than: &str,
    wanted: &Wanted,
) -> Result<Reading, Problem> {
    let seconds = wanted.timeout_seconds.unwrap_or(DEFAULT_TIMEOUT);
    if !(1..=LONGEST_TIMEOUT).contains(&seconds) {
        return Err(Problem::bad_request(format!(
            "timeoutSeconds is 1 to {LONGEST_TIMEOUT}, not {seconds}"
        )));
    }
    let since = mark(shared, newer_than)?;
    let _read = shared.reads.try_acquire().map_err(|_| {
        Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "TooManyReads",
            "as many reads of the runtime are waited for over HTTP as may be; see /api/v1/status",
        )
    })?;
    let pleg = shared.serving.pleg();
    let freshness = wanted.freshness.unwrap_or(Freshness::Details);
    let reading = async {
        let since = match since {
            Some(mark) => mark,
            None => pleg.mark().await?,
        };
        pleg.get_newer_than(uid.clone(), since, freshness).await
    };
    match tokio::time::timeout(Duration::from_secs(seconds), reading).await {
        Ok(reading) => reading.map_err(|_| Problem::stopping()),
        Err(_) => Err(Problem::new(
            StatusCode::GATEWAY_TIMEOUT,
            "Timeout",
            format!("the runtime gave no newer answer within {seconds} s; see /api/v1/status"),
        )),
    }
}

/// The mark that is meant; none for now.
fn mark(shared: &Shared, newer_than: &str) -> Result<Option<Mark>, Problem> {
    if newer_than == "now" {
        return Ok(None);
    }
    let mark: EpochMark = newer_than.parse()?;
    if mark.epoch == shared.serving.epoch() {
        shared.serving.check(mark.mark)?;
        return Ok(Some(mark.mark));
    }
    Err(Problem::new(
        StatusCode::GONE,
        "OtherEpoch",
        "the mark is of another life of the daemon; ask with newerThan=now",
    ))
}
