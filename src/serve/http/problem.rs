//! What a client is told instead of what it asked for: one shape for all refusals, in JSON.

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::serve::{EpochMark, PositionError, WatchRefused};

/// A refusal: the status code, a word for programs and a sentence for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Problem {
    #[serde(skip)]
    status: StatusCode,
    reason: &'static str,
    message: String,
    /// For a pod that is absent: the mark of the read that says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    observed: Option<String>,
}

impl Problem {
    pub(super) fn new(
        status: StatusCode,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status,
            reason,
            message: message.into(),
            observed: None,
        }
    }

    pub(super) fn not_found(message: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "NotFound", message)
    }

    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "BadRequest", message)
    }

    pub(super) fn internal(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "Internal", message)
    }

    pub(super) fn stopping() -> Self {
        let message = "the driver has stopped; the daemon is going down";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "Stopping", message)
    }

    /// Says which read the absence rests on.
    pub(super) fn observed(mut self, mark: EpochMark) -> Self {
        self.observed = Some(mark.to_string());
        self
    }
}

impl From<PositionError> for Problem {
    fn from(error: PositionError) -> Self {
        Self::bad_request(error.to_string())
    }
}

impl From<WatchRefused> for Problem {
    fn from(refused: WatchRefused) -> Self {
        let message = refused.to_string();
        match refused {
            WatchRefused::ListAgain(why) => Self::new(StatusCode::GONE, why.reason(), message),
            WatchRefused::TooMany(_) => {
                Self::new(StatusCode::SERVICE_UNAVAILABLE, "TooManyWatchers", message)
            }
        }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = self.status;
        let mut response = (status, Json(self)).into_response();
        let header = match status {
            StatusCode::SERVICE_UNAVAILABLE => Some((header::RETRY_AFTER, "5")),
            StatusCode::METHOD_NOT_ALLOWED => Some((header::ALLOW, "GET, HEAD")),
            // What was not read cannot be told from the next request.
            StatusCode::PAYLOAD_TOO_LARGE => Some((header::CONNECTION, "close")),
            _ => None,
        };
        if let Some((name, value)) = header {
            response
                .headers_mut()
                .insert(name, HeaderValue::from_static(value));
        }
        response
    }
}
