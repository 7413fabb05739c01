//! What every request must pass and every answer carries.

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::host::HostRefused;
use super::problem::Problem;
use super::{HostPolicy, Shared};

/// Lets a request through or answers it itself; counts either.
pub(super) async fn guard(State(shared): State<Shared>, request: Request, next: Next) -> Response {
    let route = route(request.uri().path());
    let mut response = match refusal(&shared.hosts, &request) {
        Some(problem) => problem.into_response(),
        None => next.run(request).await,
    };
    protect(response.headers_mut());
    let code = response.status().as_u16();
    shared.counting.answered(route, code);
    response
}

fn refusal(hosts: &HostPolicy, request: &Request) -> Option<Problem> {
    let headers = request.headers();
    if let Err(refused) = hosts.check(request.uri(), headers) {
        let (status, reason) = match refused {
            HostRefused::Missing => (StatusCode::BAD_REQUEST, "BadRequest"),
            HostRefused::Unknown => (StatusCode::MISDIRECTED_REQUEST, "UnknownHost"),
        };
        return Some(Problem::new(status, reason, refused.to_string()));
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Some(Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "ReadOnly",
            "everything here is read only: GET and HEAD",
        ));
    }
    if has_body(headers) {
        return Some(Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "Body",
            "no request here has a body",
        ));
    }
    if comes_from_another_site(headers) {
        return Some(Problem::new(
            StatusCode::FORBIDDEN,
            "OtherSite",
            "another site's page may link here, but not load from here",
        ));
    }
    None
}

fn has_body(headers: &HeaderMap) -> bool {
    headers.contains_key(header::TRANSFER_ENCODING)
        || headers
            .get_all(header::CONTENT_LENGTH)
            .iter()
            .any(|length| length != "0")
}

/// Browsers say whose page asks. Another's could not read the answer, but take a watcher's place.
fn comes_from_another_site(headers: &HeaderMap) -> bool {
    let says = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let site = says("sec-fetch-site");
    let is_ours = site.is_none_or(|site| matches!(site, "same-origin" | "none"));
    !is_ours && says("sec-fetch-mode") != Some("navigate")
}

/// What no answer goes out without. A handler may have set a policy of its own.
fn protect(headers: &mut HeaderMap) {
    const ALWAYS: [(HeaderName, &str); 6] = [
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (header::X_FRAME_OPTIONS, "DENY"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::CACHE_CONTROL, "no-store"),
        (
            HeaderName::from_static("cross-origin-resource-policy"),
            "same-origin",
        ),
        (
            HeaderName::from_static("cross-origin-opener-policy"),
            "same-origin",
        ),
    ];
    for (name, value) in ALWAYS {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
        .entry(header::CONTENT_SECURITY_POLICY)
        .or_insert(HeaderValue::from_static(
            "default-src 'none'; frame-ancestors 'none'",
        ));
}

/// The route that a path belongs to, for counting: a client cannot make up new ones.
fn route(path: &str) -> &'static str {
    const ROUTES: [&str; 8] = [
        "/",
        "/livez",
        "/readyz",
        "/healthz",
        "/metrics",
        "/api/v1/status",
        "/api/v1/pods",
        "/api/v1/events",
    ];
    match ROUTES.into_iter().find(|route| *route == path) {
        Some(route) => route,
        None if path.starts_with("/api/v1/pods/") => "/api/v1/pods/{uid}",
        None => "other",
    }
}
