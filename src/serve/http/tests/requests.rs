//! What is asked once and answered once: hosts, methods, headers, pods, metrics.

use axum::http::{Method, StatusCode};

use super::house::House;
use crate::simulate::{Fault, Rpc};

const HERE: (&str, &str) = ("host", "127.0.0.1:9641");

#[tokio::test(start_paused = true)]
async fn another_name_is_answered_nothing_whatever_it_asks_for() {
    let house = House::evented().await;
    for path in ["/", "/metrics", "/livez", "/api/v1/pods", "/none"] {
        let answer = house
            .ask(Method::GET, path, &[("host", "evil.example")])
            .await;
        assert_eq!(answer.reason(), (421, "UnknownHost".to_owned()), "{path}");
        let answer = house.ask(Method::GET, path, &[]).await;
        assert_eq!(answer.reason(), (400, "BadRequest".to_owned()), "{path}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_uid_that_is_no_text_is_refused_as_everything_is() {
    let house = House::evented().await;
    let answer = house.get("/api/v1/pods/%ff%fe").await;
    assert_eq!(answer.reason(), (400, "BadRequest".to_owned()));
}

/// What is newer than that would be read for again and again until the request's time is over.
#[tokio::test(start_paused = true)]
async fn a_mark_that_lies_in_the_future_was_never_handed_out_and_causes_no_read() {
    let house = House::evented().await;
    let before = house.runtime.rpc_counts().total();
    let epoch = house.serving.epoch();
    let path = format!("/api/v1/pods/none?newerThan={epoch}-{}.0", u64::MAX);
    assert_eq!(
        house.get(&path).await.reason(),
        (400, "BadRequest".to_owned())
    );
    assert_eq!(house.runtime.rpc_counts().total(), before);
}

#[tokio::test(start_paused = true)]
async fn nothing_can_be_written() {
    let house = House::evented().await;
    for path in ["/", "/metrics", "/api/v1/pods", "/api/v1/events", "/none"] {
        for method in [Method::POST, Method::PUT, Method::DELETE, Method::OPTIONS] {
            let answer = house.ask(method, path, &[HERE]).await;
            assert_eq!(answer.reason(), (405, "ReadOnly".to_owned()), "{path}");
            assert_eq!(answer.header("allow"), "GET, HEAD");
        }
    }
    for body in [("content-length", "1"), ("transfer-encoding", "chunked")] {
        let answer = house.ask(Method::GET, "/api/v1/pods", &[HERE, body]).await;
        assert_eq!(answer.reason(), (413, "Body".to_owned()));
        assert_eq!(answer.header("connection"), "close");
    }
    let head = house.ask(Method::HEAD, "/api/v1/pods", &[HERE]).await;
    assert_eq!((head.status, &*head.text), (StatusCode::OK, ""));
}

#[tokio::test(start_paused = true)]
async fn another_sites_page_may_link_here_but_not_load_from_here() {
    let house = House::evented().await;
    for site in ["cross-site", "same-site"] {
        let load = [HERE, ("sec-fetch-site", site), ("sec-fetch-mode", "cors")];
        let answer = house.ask(Method::GET, "/api/v1/events", &load).await;
        assert_eq!(answer.reason(), (403, "OtherSite".to_owned()));
        let link = [
            HERE,
            ("sec-fetch-site", site),
            ("sec-fetch-mode", "navigate"),
        ];
        let answer = house.ask(Method::GET, "/", &link).await;
        assert_eq!(answer.status, StatusCode::OK);
    }
    let own = [
        HERE,
        ("sec-fetch-site", "same-origin"),
        ("sec-fetch-mode", "cors"),
    ];
    let answer = house.ask(Method::GET, "/api/v1/status", &own).await;
    assert_eq!(answer.status, StatusCode::OK);
}

#[tokio::test(start_paused = true)]
async fn every_answer_is_kept_by_nobody_and_the_page_runs_only_its_own_script() {
    let house = House::evented().await;
    for path in ["/", "/metrics", "/livez", "/api/v1/pods", "/none"] {
        let answer = house.get(path).await;
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("cache-control"), "no-store", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'"), "{path}: {policy}");
        assert!(
            !policy.contains("unsafe") && !policy.contains("http"),
            "{policy}"
        );
    }
    let (first, second) = (house.get("/").await, house.get("/").await);
    let policy = first.header("content-security-policy");
    assert_ne!(policy, second.header("content-security-policy"));
    let nonce = policy.split("script-src 'nonce-").nth(1).unwrap();
    let nonce = nonce.split('\'').next().unwrap();
    assert_eq!(nonce.len(), 32);
    assert_eq!(first.text.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    assert!(!first.text.contains("NONCE"));
    assert_eq!(first.header("content-type"), "text/html; charset=utf-8");
}

#[tokio::test(start_paused = true)]
async fn the_page_names_no_address_but_its_own() {
    let page = include_str!("../../page/index.html");
    // The name of a namespace is an address that nobody asks.
    let page = page.replace("http://www.w3.org/2000/svg", "");
    for outside in ["http:", "https:", "@import", "url(", "src=\"", "innerHTML"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_list_that_is_known_is_not_sent_again() {
    let house = House::evented().await;
    let list = house.get("/api/v1/pods").await;
    assert_eq!(list.json()["items"].as_array().unwrap().len(), 3);
    let tag = list.header("etag").to_owned();
    let position = list.json()["position"].clone();
    assert_eq!(tag, format!("\"{}\"", position.as_str().unwrap()));
    let known = [HERE, ("if-none-match", &*tag)];
    let again = house.ask(Method::GET, "/api/v1/pods", &known).await;
    assert_eq!((again.status, &*again.text), (StatusCode::NOT_MODIFIED, ""));
    house.runtime.run_pod("shop", "web", &["app"]);
    house.wait(2).await;
    let changed = house.ask(Method::GET, "/api/v1/pods", &known).await;
    assert_eq!(changed.json()["items"].as_array().unwrap().len(), 4);
}

#[tokio::test(start_paused = true)]
async fn one_pod_is_as_new_as_asked_for() {
    let house = House::evented().await;
    house.runtime.set_muted(true);
    let pod = house.runtime.run_pod("shop", "web", &["app"]);
    let path = format!("/api/v1/pods/{}", pod.uid);
    // The stream told nothing, so the cache does not know it yet; a read does.
    let cached = house.get(&path).await;
    assert_eq!(cached.reason(), (404, "NotFound".to_owned()));
    assert!(cached.json()["observed"].is_string());
    let read = house.get(&format!("{path}?newerThan=now")).await;
    assert_eq!(read.json()["pod"]["name"], "web");
    assert_eq!(read.json()["pod"]["containers"][0]["state"], "Running");
    let observed = read.json()["observed"].as_str().unwrap().to_owned();

    // A mark that an answer carried is good for the next question.
    house.runtime.exit_container(&pod.containers[0], 7).unwrap();
    let since = house.get(&format!("{path}?newerThan={observed}")).await;
    assert_eq!(since.json()["pod"]["containers"][0]["state"], "Running");
    let now = house
        .get(&format!("{path}?newerThan=now&timeoutSeconds=5"))
        .await;
    assert_eq!(now.json()["pod"]["containers"][0]["exitCode"], 7);
    let none = house
        .get("/api/v1/pods/nobody?newerThan=now&freshness=phases")
        .await;
    assert_eq!(none.reason(), (404, "NotFound".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn a_moment_or_a_foreign_mark_is_no_mark_and_a_hanging_runtime_no_answer() {
    let house = House::evented().await;
    let ask = async |query: &str| house.get(&format!("/api/v1/pods/x?{query}")).await;
    let moment = ask("newerThan=2026-11-30T12:00:00Z").await;
    assert_eq!(moment.reason(), (400, "BadRequest".to_owned()));
    assert!(
        moment.json()["message"]
            .as_str()
            .unwrap()
            .contains("wall clock")
    );
    let foreign = ask("newerThan=feed000000000002-1.1").await;
    assert_eq!(foreign.reason(), (410, "OtherEpoch".to_owned()));
    for query in [
        "newerThan=",
        "newerThan=soon",
        "newerThan=now&timeoutSeconds=0",
        "newerThan=now&timeoutSeconds=61",
        "newerThan=now&timeoutSeconds=-1",
        "newerThan=now&freshness=some",
        "newer=now",
    ] {
        let answer = ask(query).await;
        assert_eq!(answer.reason(), (400, "BadRequest".to_owned()), "{query}");
    }
    house.runtime.inject(Fault::hang(None::<Rpc>));
    let late = ask("newerThan=now&timeoutSeconds=3").await;
    assert_eq!(late.reason(), (504, "Timeout".to_owned()));
}

#[tokio::test(start_paused = true)]
async fn the_status_says_in_words_what_an_operator_wants_to_know() {
    let house = House::evented().await;
    let status = house.get("/api/v1/status").await.json();
    assert_eq!(status["mode"]["name"], "Evented");
    assert_eq!(status["health"]["verdict"], "healthy");
    assert!(
        status["words"]
            .as_str()
            .unwrap()
            .starts_with("Events, audited every")
    );
}

#[tokio::test(start_paused = true)]
async fn prometheus_gets_the_format_that_it_likes_better() {
    let house = House::evented().await;
    let plain = house.get("/metrics").await;
    assert_eq!(
        plain.header("content-type"),
        "text/plain; version=0.0.4; charset=utf-8"
    );
    assert!(!plain.text.contains("# EOF"));
    let accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.3";
    let open = house
        .ask(Method::GET, "/metrics", &[HERE, ("accept", accept)])
        .await;
    assert_eq!(
        open.header("content-type"),
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    );
    assert!(open.text.ends_with("# EOF\n"));
    assert!(
        open.text
            .contains("# UNIT pleg_relist_duration_seconds seconds\n")
    );
}

#[tokio::test(start_paused = true)]
async fn requests_are_counted_by_route_whatever_paths_clients_make_up() {
    let house = House::evented().await;
    for n in 0..50 {
        house.get(&format!("/made/up/{n}")).await;
        house.get(&format!("/api/v1/pods/{n}")).await;
    }
    let metrics = house.get("/metrics").await.text;
    for line in [
        "pleg_http_requests_total{route=\"other\",code=\"404\"} 50\n",
        "pleg_http_requests_total{route=\"/api/v1/pods/{uid}\",code=\"404\"} 50\n",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}
