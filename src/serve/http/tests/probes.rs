//! Whether to restart, to send clients, to worry.

use axum::http::StatusCode;

use super::house::House;
use crate::serve::Limits;
use crate::serve::http::HttpLimits;
use crate::simulate::{Character, StreamEnd};

#[tokio::test(start_paused = true)]
async fn a_node_followed_by_events_passes_every_check() {
    let house = House::evented().await;
    for path in ["/livez", "/readyz", "/healthz"] {
        let answer = house.get(path).await;
        assert_eq!((answer.status, &*answer.text), (StatusCode::OK, "ok"));
    }
    let verbose = house.get("/readyz?verbose").await;
    assert_eq!(
        verbose.text,
        "[+]driver ok\n[+]relist ok\n[+]mode ok\nreadyz check passed\n"
    );
    assert_eq!(verbose.header("content-type"), "text/plain; charset=utf-8");
}

#[tokio::test(start_paused = true)]
async fn polling_is_ready_but_degraded_and_never_a_reason_to_restart() {
    let house = House::evented().await;
    house.runtime.become_character(Character::containerd_1_6());
    house.runtime.end_streams(&StreamEnd::Clean);
    house.wait(30).await;
    assert_eq!(house.get("/livez").await.status, StatusCode::OK);
    let ready = house.get("/readyz?verbose").await;
    assert_eq!(ready.status, StatusCode::OK);
    assert_eq!(
        ready.text,
        "[+]driver ok\n[+]relist ok\n[+]mode ok: degraded: Polling(Unsupported)\n\
         readyz check passed\n"
    );
}

#[tokio::test(start_paused = true)]
async fn a_runtime_that_is_gone_is_no_reason_to_restart_but_not_to_send_clients() {
    let house = House::evented().await;
    house.runtime.set_up(false);
    house.wait(20 * 60).await;
    assert_eq!(house.get("/livez").await.status, StatusCode::OK);
    for path in ["/readyz", "/healthz"] {
        let answer = house.get(path).await;
        assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
        let relist = answer.text.lines().nth(1).unwrap();
        assert!(
            relist.starts_with("[-]relist failed: pleg was last seen active 20m"),
            "{relist}"
        );
        assert!(answer.text.ends_with("z check failed\n"));
    }
    let without = house.get("/readyz?exclude=relist").await;
    assert_eq!(without.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn before_the_first_relist_it_lives_and_is_not_ready() {
    let house = House::with(HttpLimits::default(), Limits::default());
    house.runtime.set_up(false);
    house.wait(1).await;
    assert_eq!(house.get("/livez").await.status, StatusCode::OK);
    let ready = house.get("/readyz").await;
    assert_eq!(ready.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(
        ready
            .text
            .contains("[-]relist failed: pleg has yet to be successful")
    );
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_hangs_is_a_reason_to_restart() {
    let house = House::built(HttpLimits::default(), Limits::default(), false, |builder| {
        builder
    });
    let answer = house.get("/livez").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(
        answer.text,
        "[-]driver failed: the driver does not answer\nlivez check failed\n"
    );
    // What hangs is told, in time, by everything else too.
    let metrics = house.get("/metrics").await;
    assert!(metrics.text.contains("\npleg_driver_responsive 0\n"));
    let status = house.get("/api/v1/status").await.json();
    assert_eq!(status["driver"]["answers"], false);
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_has_stopped_is_a_reason_to_restart() {
    let house = House::evented().await;
    house.serving.pleg().shutdown().await;
    let answer = house.get("/livez?verbose").await;
    assert_eq!(answer.status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(answer.text.contains("the driver has stopped"));
}
