//! `/`: the page, one file without anything from elsewhere.
//!
//! Its policy lets it run its own script and style, known by a nonce that no other answer has, and
//! ask this server; nothing else. The page writes what runtimes say as text alone.

use std::hash::{BuildHasher, Hasher, RandomState};

use axum::http::header;
use axum::response::{Html, IntoResponse, Response};

const PAGE: &str = include_str!("../page/index.html");

/// The page.
pub(super) async fn page() -> Response {
    let nonce = nonce();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src data:; base-uri 'none'; form-action 'none'; \
         frame-ancestors 'none'"
    );
    let page = PAGE.replace("NONCE", &nonce);
    ([(header::CONTENT_SECURITY_POLICY, policy)], Html(page)).into_response()
}

/// 128 bits that nobody can tell beforehand: the standard library seeds its hashers with the system's
/// randomness.
fn nonce() -> String {
    let word = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", word(), word())
}
