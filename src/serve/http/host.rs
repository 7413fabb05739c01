//! Who may be asked for, and where to listen: against DNS rebinding, and against listening to everybody
//! by accident.
//!
//! A page that somebody visits can have their browser ask any address for anything, and by rebinding
//! its own name to 127.0.0.1 even read the answer. Its name then stands in `Host`; so only names that
//! we know are answered. An address cannot be rebound, but one that is not of this machine's loopback
//! means that we listen to others, which must have been asked for.

use std::collections::BTreeSet;
use std::net::{IpAddr, SocketAddr};

use http::uri::Authority;
use http::{HeaderMap, Uri, header};
use thiserror::Error;

/// Which hosts are answered.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HostPolicy {
    names: BTreeSet<String>,
    remote: bool,
}

/// Why a request's host is not answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HostRefused {
    /// There is none, or several, or it is none.
    #[error("the request names no host, or several; send one Host header")]
    Missing,
    /// It is somebody else's.
    #[error(
        "this host is not served here; ask for localhost, or have the daemon's configuration name it"
    )]
    Unknown,
}

impl HostPolicy {
    /// Answers loopback addresses, `localhost` and `names`; with `remote` any other address too.
    #[must_use]
    pub fn new(names: impl IntoIterator<Item = String>, remote: bool) -> Self {
        let names = names
            .into_iter()
            .map(|name| bare(&name.to_ascii_lowercase()).to_owned())
            .collect();
        Self { names, remote }
    }

    /// Checks a request.
    ///
    /// # Errors
    ///
    /// Why it is not answered.
    pub(super) fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), HostRefused> {
        let mut named = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (named.next(), named.next()) else {
            return Err(HostRefused::Missing);
        };
        let host = host.to_str().map_err(|_| HostRefused::Missing)?;
        let host: Authority = host.parse().map_err(|_| HostRefused::Missing)?;
        // A request line may name a host too, and it would go first.
        if uri.authority().is_some_and(|asked| !self.answers(asked)) || !self.answers(&host) {
            return Err(HostRefused::Unknown);
        }
        Ok(())
    }

    fn answers(&self, authority: &Authority) -> bool {
        if authority.as_str().contains('@') {
            return false;
        }
        let host = authority.host().to_ascii_lowercase();
        let literal = host
            .strip_prefix('[')
            .and_then(|host| host.strip_suffix(']'))
            .unwrap_or(&host);
        match literal.parse::<IpAddr>() {
            Ok(address) => {
                let address = address.to_canonical();
                address.is_loopback() || (self.remote && !address.is_unspecified())
            }
            Err(_) => bare(&host) == "localhost" || self.names.contains(bare(&host)),
        }
    }
}

/// A name without the dot that may end it.
fn bare(name: &str) -> &str {
    name.strip_suffix('.').unwrap_or(name)
}

/// The address is not one of this machine's loopback, and nobody said that this is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error(
    "{address} is no loopback address: whoever reaches it can read the names and states of all pods, \
     without a password; listen on 127.0.0.1, or say that this is meant with --http-allow-remote"
)]
pub struct RemoteRefused {
    /// The address.
    pub address: SocketAddr,
}

/// Checks an address before it is listened on.
///
/// # Errors
///
/// If others would reach it and `allow_remote` is not set.
pub fn may_listen(address: SocketAddr, allow_remote: bool) -> Result<(), RemoteRefused> {
    if allow_remote || address.ip().to_canonical().is_loopback() {
        Ok(())
    } else {
        Err(RemoteRefused { address })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(policy: &HostPolicy, host: &str) -> bool {
        let mut headers = HeaderMap::new();
        headers.append(header::HOST, host.parse().unwrap());
        policy.check(&Uri::from_static("/"), &headers).is_ok()
    }

    #[test]
    fn this_machine_is_answered_however_it_is_written() {
        let policy = HostPolicy::default();
        for host in [
            "localhost",
            "LOCALHOST:9641",
            "localhost.",
            "127.0.0.1:9641",
            "127.8.9.10",
            "[::1]:9641",
            "[::ffff:127.0.0.1]",
        ] {
            assert!(answers(&policy, host), "{host}");
        }
    }

    #[test]
    fn a_name_that_somebody_else_could_point_here_is_not_answered() {
        let policy = HostPolicy::default();
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "127.0.0.1@evil.example",
            "evil.example@127.0.0.1",
            "0x7f.1",
            "2130706433",
            "0.0.0.0:9641",
            "[::]:9641",
            "10.0.0.7:9641",
            "node-7:9641",
        ] {
            assert!(!answers(&policy, host), "{host}");
        }
    }

    #[test]
    fn what_was_configured_is_answered_and_nothing_beside_it() {
        let policy = HostPolicy::new(["Node-7.example.".to_owned()], false);
        assert!(answers(&policy, "node-7.example:9641"));
        assert!(answers(&policy, "NODE-7.example."));
        assert!(!answers(&policy, "node-8.example"));
        assert!(!answers(&policy, "10.0.0.7"));
        // A probe of the kubelet's asks for the pod's address.
        let remote = HostPolicy::new([], true);
        assert!(answers(&remote, "10.0.0.7:9641"));
        assert!(answers(&remote, "[fd00::7]:9641"));
        assert!(!answers(&remote, "0.0.0.0:9641"));
        assert!(!answers(&remote, "evil.example"));
    }

    #[test]
    fn one_host_is_named_and_the_request_line_is_held_to_it_too() {
        let policy = HostPolicy::default();
        let none = HeaderMap::new();
        let path = Uri::from_static("/metrics");
        assert_eq!(policy.check(&path, &none), Err(HostRefused::Missing));
        let mut twice = HeaderMap::new();
        twice.append(header::HOST, "localhost".parse().unwrap());
        twice.append(header::HOST, "evil.example".parse().unwrap());
        assert_eq!(policy.check(&path, &twice), Err(HostRefused::Missing));
        let mut local = HeaderMap::new();
        local.append(header::HOST, "localhost".parse().unwrap());
        let elsewhere = Uri::from_static("http://evil.example/metrics");
        assert_eq!(policy.check(&elsewhere, &local), Err(HostRefused::Unknown));
        let here = Uri::from_static("http://127.0.0.1:9641/metrics");
        assert_eq!(policy.check(&here, &local), Ok(()));
    }

    #[test]
    fn others_are_listened_to_only_if_that_was_said() {
        for (address, is_loopback) in [
            ("127.0.0.1:9641", true),
            ("[::1]:9641", true),
            ("0.0.0.0:9641", false),
            ("[::]:9641", false),
            ("192.0.2.1:9641", false),
        ] {
            let address = address.parse().unwrap();
            assert_eq!(may_listen(address, false).is_ok(), is_loopback, "{address}");
            assert_eq!(may_listen(address, true), Ok(()));
        }
    }
}
