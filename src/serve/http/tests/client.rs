//! A client: requests to the router, and a reader of server-sent events.

use axum::body::{Body, BodyDataStream};
use axum::http::{HeaderMap, Method, Request, StatusCode};
use futures::StreamExt;
use serde_json::Value;
use tower::ServiceExt;

use super::house::House;

/// An answer that has ended.
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) headers: HeaderMap,
    pub(super) text: String,
}

impl Answer {
    pub(super) fn json(&self) -> Value {
        serde_json::from_str(&self.text).expect("JSON")
    }

    pub(super) fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().expect("text"))
    }

    pub(super) fn reason(&self) -> (u16, String) {
        let reason = self.json()["reason"].as_str().map(ToOwned::to_owned);
        (self.status.as_u16(), reason.expect("a reason"))
    }
}

impl House {
    pub(super) async fn get(&self, path: &str) -> Answer {
        self.ask(Method::GET, path, &[("host", "localhost")]).await
    }

    pub(super) async fn ask(&self, method: Method, path: &str, headers: &[(&str, &str)]) -> Answer {
        let (status, headers, body) = self.begin(method, path, headers).await;
        let bytes = axum::body::to_bytes(body, usize::MAX).await.expect("whole");
        Answer {
            status,
            headers,
            text: String::from_utf8(bytes.to_vec()).expect("UTF-8"),
        }
    }

    pub(super) async fn begin(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
    ) -> (StatusCode, HeaderMap, Body) {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::empty()).expect("a request");
        let answer = self.server.router().oneshot(request).await;
        let (parts, body) = answer.expect("infallible").into_parts();
        (parts.status, parts.headers, body)
    }

    /// Follows, with this id if one is given.
    pub(super) async fn follow(&self, last_event_id: Option<&str>) -> Follower {
        let mut headers = vec![("host", "localhost"), ("user-agent", "a test")];
        headers.extend(last_event_id.map(|id| ("last-event-id", id)));
        let (status, headers, body) = self.begin(Method::GET, "/api/v1/events", &headers).await;
        assert_eq!(status, StatusCode::OK);
        assert_eq!(headers["content-type"], "text/event-stream");
        Follower {
            body: body.into_data_stream(),
            unread: String::new(),
            id: String::new(),
        }
    }
}

/// One server-sent event.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Frame {
    pub(super) event: String,
    pub(super) id: Option<String>,
    pub(super) data: Value,
    pub(super) comment: bool,
    pub(super) retry: Option<String>,
}

/// A client that follows, as a browser does.
pub(super) struct Follower {
    body: BodyDataStream,
    unread: String,
    /// The last id that it was given.
    pub(super) id: String,
}

impl Follower {
    /// The next frame, whatever it is; `None` once the stream has ended.
    pub(super) async fn frame(&mut self) -> Option<Frame> {
        while !self.unread.contains("\n\n") {
            let bytes = self.body.next().await?.expect("no body fails");
            self.unread += std::str::from_utf8(&bytes).expect("UTF-8");
        }
        let (text, rest) = self.unread.split_once("\n\n")?;
        let mut frame = Frame::default();
        for line in text.lines() {
            let (field, value) = line.split_once(':').unwrap_or((line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match field {
                "event" => value.clone_into(&mut frame.event),
                "id" => frame.id = Some(value.to_owned()),
                "data" => frame.data = serde_json::from_str(value).expect("JSON"),
                "retry" => frame.retry = Some(value.to_owned()),
                "" => frame.comment = true,
                other => panic!("no field: {other}"),
            }
        }
        let read = self.unread.len() - rest.len();
        self.unread.drain(..read);
        if let Some(id) = &frame.id {
            self.id.clone_from(id);
        }
        Some(frame)
    }

    /// The next event that has data.
    pub(super) async fn event(&mut self) -> Option<Frame> {
        loop {
            let frame = self.frame().await?;
            if !frame.event.is_empty() {
                return Some(frame);
            }
        }
    }

    /// The next lifecycle event, as its type and the name of what it is about.
    pub(super) async fn told(&mut self) -> String {
        loop {
            let frame = self.event().await.expect("it goes on");
            if frame.event == "lifecycle" {
                return told(&frame.data);
            }
        }
    }

    /// Everything up to the end of a snapshot, by the events' names.
    pub(super) async fn snapshot(&mut self) -> Vec<Frame> {
        let mut frames = Vec::new();
        loop {
            let frame = self.event().await.expect("it goes on");
            let ends = frame.event == "snapshot-end";
            frames.push(frame);
            if ends {
                return frames;
            }
        }
    }
}

/// A lifecycle event in short: `Started web/app`.
pub(super) fn told(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let subject = event
        .get("container")
        .map_or("sandbox".to_owned(), |it| text(&it["name"]));
    let kind = text(&event["type"]).replace("Container", "");
    format!("{kind} {}/{subject}", text(&event["pod"]["name"]))
}
