//! `/livez`, `/readyz`, `/healthz`, in the form of Kubernetes' own.
//!
//! Each answers one question of an operator's. *Live*: would a restart help? It would if the driver
//! hangs; it would not if the runtime does, so a runtime that does not answer, a relist that is late
//! and polling are no reason. *Ready*: are answers good? They are once the node was relisted, and as
//! long as that succeeds often enough in the kubelet's sense. Polling is ready: it costs more, and is
//! told (`mode`), but nothing that is served is wrong. *Healthy* is the kubelet's "PLEG is healthy",
//! which is the same as ready, under the name that people look for.

use std::fmt::Write;
use std::time::Duration;

use axum::extract::{Query, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::Shared;
use crate::engine::{Health, Mode};

/// How long a check waits for the driver. It answers between two inputs, each of which it handles in
/// microseconds to milliseconds.
const DRIVER_DEADLINE: Duration = Duration::from_secs(2);

/// `verbose`, and `exclude=NAME` any number of times; whatever else is passed over, as Kubernetes does.
type Parameters = Query<Vec<(String, String)>>;

pub(super) async fn livez(state: State<Shared>, parameters: Parameters) -> Response {
    let health = ask(&state.0).await;
    answer("livez", &[driver(&health)], &parameters.0)
}

pub(super) async fn readyz(state: State<Shared>, parameters: Parameters) -> Response {
    ready("readyz", state, parameters).await
}

pub(super) async fn healthz(state: State<Shared>, parameters: Parameters) -> Response {
    ready("healthz", state, parameters).await
}

async fn ready(path: &str, state: State<Shared>, parameters: Parameters) -> Response {
    let health = ask(&state.0).await;
    let mode = mode(state.0.serving.pleg().mode());
    let checks = [driver(&health), relist(&health), mode];
    answer(path, &checks, &parameters.0)
}

/// One check: its name, whether it passed, and more of it.
struct Check {
    name: &'static str,
    passed: bool,
    words: String,
}

/// The health, or why there is none.
async fn ask(shared: &Shared) -> Result<Health, &'static str> {
    let pleg = shared.serving.pleg();
    match tokio::time::timeout(DRIVER_DEADLINE, pleg.health()).await {
        Ok(Ok(health)) => Ok(health),
        Ok(Err(_)) => Err("the driver has stopped"),
        Err(_) => Err("the driver does not answer"),
    }
}

fn driver(health: &Result<Health, &'static str>) -> Check {
    Check {
        name: "driver",
        passed: health.is_ok(),
        words: health
            .as_ref()
            .err()
            .copied()
            .unwrap_or_default()
            .to_owned(),
    }
}

fn relist(health: &Result<Health, &'static str>) -> Check {
    let (passed, words) = match health {
        Ok(health) if health.is_healthy() => (true, String::new()),
        Ok(health) => (false, health.to_string()),
        Err(_) => (false, "unknown: the driver does not answer".to_owned()),
    };
    Check {
        name: "relist",
        passed,
        words,
    }
}

fn mode(mode: Mode) -> Check {
    let words = match mode {
        Mode::Evented { .. } => String::new(),
        Mode::Connecting | Mode::Polling { .. } => format!("degraded: {mode}"),
    };
    Check {
        name: "mode",
        passed: true,
        words,
    }
}

fn answer(path: &str, checks: &[Check], parameters: &[(String, String)]) -> Response {
    let is_excluded = |check: &Check| {
        let mut excluded = parameters.iter().filter(|(key, _)| key == "exclude");
        excluded.any(|(_, name)| name == check.name)
    };
    let considered = || checks.iter().filter(|check| !is_excluded(check));
    let passed = considered().all(|check| check.passed);
    let verbose = parameters.iter().any(|(key, _)| key == "verbose");
    let plain = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    if passed && !verbose {
        return (plain, "ok").into_response();
    }
    let mut text = String::new();
    for check in considered() {
        let (sign, verdict) = if check.passed {
            ('+', "ok")
        } else {
            ('-', "failed")
        };
        let colon = if check.words.is_empty() { "" } else { ": " };
        // Writing to a string does not fail.
        let _ = writeln!(
            text,
            "[{sign}]{} {verdict}{colon}{}",
            check.name, check.words
        );
    }
    let (status, verdict) = if passed {
        (StatusCode::OK, "passed")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "failed")
    };
    let _ = writeln!(text, "{path} check {verdict}");
    (status, plain, text).into_response()
}
