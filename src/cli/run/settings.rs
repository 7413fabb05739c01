//! The daemon's settings, understood: each value has a type, and none contradicts another.

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use super::keys::Key;
use super::layers::{Layers, Refused, Written};
use super::socket::SocketAccess;
use crate::cli::config::{ByteLimit, FeatureGates, LogLevel};
use crate::cli::unreachable::LONGEST_PATH;
use crate::cri::Endpoint;

/// How lines are logged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// The flight recorder's limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FlightRecorder {
    /// How far back it goes.
    pub(crate) period: Duration,
    /// Bytes that it holds, at most.
    pub(crate) size: usize,
}

/// The daemon's settings.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunSettings {
    /// The runtime's socket, if one was named.
    pub(crate) runtime_endpoint: Option<Endpoint>,
    /// The largest answer to accept.
    pub(crate) max_message_size: usize,
    /// The gate `EventedPLEG`.
    pub(crate) evented: bool,
    /// Between relists while polling.
    pub(crate) relist_period: Duration,
    /// Unhealthy without a relist for so long, while polling.
    pub(crate) relist_threshold: Duration,
    /// Between audits of a trusted stream, at most.
    pub(crate) evented_relist_period: Duration,
    /// Unhealthy without a relist for so long, while events drive.
    pub(crate) evented_relist_threshold: Duration,
    /// Where to serve `pleg.v1`.
    pub(crate) grpc_listen: Option<PathBuf>,
    /// Who may use that socket.
    pub(crate) grpc_socket: SocketAccess,
    /// Where to serve HTTP.
    pub(crate) http_listen: Option<SocketAddr>,
    /// Whether that may be an address that other machines reach.
    pub(crate) http_allow_remote: bool,
    /// Host names to answer to, besides loopback's and the address itself.
    pub(crate) http_allowed_hosts: Vec<String>,
    /// Events kept for watchers that come back.
    pub(crate) event_history: usize,
    /// The flight recorder, if there is one.
    pub(crate) flight_recorder: Option<FlightRecorder>,
    /// How long watchers have to go.
    pub(crate) shutdown_grace_period: Duration,
    /// How long the driver may stand still.
    pub(crate) watchdog_timeout: Option<Duration>,
    /// What to log.
    pub(crate) log_level: LogLevel,
    /// How to log.
    pub(crate) log_format: LogFormat,
}

impl RunSettings {
    /// Understands every setting.
    ///
    /// # Errors
    ///
    /// The first value that means nothing, or contradicts another: who set it, what is wrong, and what
    /// is allowed.
    pub(crate) fn read(layers: &Layers) -> Result<Self, Refused> {
        let written = |key| layers.written(key);
        let config = Self {
            runtime_endpoint: set(written(Key::RuntimeEndpoint))
                .map(Written::parse)
                .transpose()?,
            max_message_size: written(Key::MaxMessageSize).parse::<ByteLimit>()?.0,
            evented: written(Key::FeatureGates)
                .parse::<FeatureGates>()?
                .evented_pleg
                .unwrap_or(true),
            relist_period: period(written(Key::RelistPeriod))?,
            relist_threshold: period(written(Key::RelistThreshold))?,
            evented_relist_period: period(written(Key::EventedRelistPeriod))?,
            evented_relist_threshold: period(written(Key::EventedRelistThreshold))?,
            grpc_listen: unless_off(written(Key::GrpcListen), socket_path)?,
            grpc_socket: SocketAccess::read(layers)?,
            http_listen: unless_off(written(Key::HttpListen), |it| {
                it.text.parse().map_err(|_| {
                    it.refused(format_args!(
                        "{:?}: must be an address and a port, like 127.0.0.1:9641 or [::1]:9641, or off",
                        it.text
                    ))
                })
            })?,
            http_allow_remote: boolean(written(Key::HttpAllowRemote))?,
            http_allowed_hosts: host_names(written(Key::HttpAllowedHosts))?,
            event_history: number(written(Key::EventHistory), 16, 1_000_000)?,
            flight_recorder: flight_recorder(layers)?,
            shutdown_grace_period: grace(written(Key::ShutdownGracePeriod))?,
            watchdog_timeout: unless_off(written(Key::WatchdogTimeout), |it| {
                let timeout = period(it)?;
                // The heartbeat's calls may take 5 s, and a busy node's driver a second.
                if timeout < Duration::from_secs(10) {
                    return Err(it.refused("must be at least 10s, or off"));
                }
                Ok(timeout)
            })?,
            log_level: written(Key::LogLevel).parse()?,
            log_format: written(Key::LogFormat).parse()?,
        };
        config.agrees_with_itself(layers)?;
        Ok(config)
    }

    /// Refuses what would make no sense together. The rules are those of the library's builder, told
    /// in the words of whoever set the value.
    fn agrees_with_itself(&self, layers: &Layers) -> Result<(), Refused> {
        let written = |key| layers.written(key);
        if self.relist_period > self.evented_relist_period {
            // Whoever was set by hand is the one to change.
            let (blamed, other) = blame(
                written(Key::EventedRelistPeriod),
                written(Key::RelistPeriod),
            );
            return Err(blamed.contradicts(
                other,
                "the event stream is there to relist less often than polling does",
            ));
        }
        let pairs = [
            (
                Key::RelistThreshold,
                self.relist_threshold,
                Key::RelistPeriod,
                self.relist_period,
            ),
            (
                Key::EventedRelistThreshold,
                self.evented_relist_threshold,
                Key::EventedRelistPeriod,
                self.evented_relist_period,
            ),
        ];
        for (threshold_key, threshold, period_key, period) in pairs {
            if threshold <= period {
                let (blamed, other) = blame(written(threshold_key), written(period_key));
                return Err(blamed.contradicts(
                    other,
                    "a threshold must be longer than its period, or every relist comes too late to \
                     be healthy",
                ));
            }
        }
        if let Some(address) = self.http_listen
            && !address.ip().is_loopback()
            && !self.http_allow_remote
        {
            return Err(written(Key::HttpListen).refused(format_args!(
                "{address} can be reached from other machines, and HTTP has neither encryption nor \
                 passwords; if that is meant, set httpAllowRemote to true as well"
            )));
        }
        if self.grpc_listen.is_none() && self.http_listen.is_none() {
            return Err(written(Key::HttpListen).refused(
                "with grpcListen off as well nobody could read anything; leave one of them on",
            ));
        }
        Ok(())
    }
}

/// Of two that contradict each other, the one that somebody set; and the other.
fn blame<'a>(one: &'a Written, other: &'a Written) -> (&'a Written, &'a Written) {
    if one.origin == super::layers::Origin::Default {
        (other, one)
    } else {
        (one, other)
    }
}

fn set(written: &Written) -> Option<&Written> {
    (!written.text.is_empty()).then_some(written)
}

fn unless_off<T>(
    written: &Written,
    read: impl FnOnce(&Written) -> Result<T, Refused>,
) -> Result<Option<T>, Refused> {
    if matches!(written.text.as_str(), "off" | "") {
        return Ok(None);
    }
    read(written).map(Some)
}

/// A time that is more than none, and less than a day.
fn period(written: &Written) -> Result<Duration, Refused> {
    let period = duration(written)?;
    if period.is_zero() || period > Duration::from_secs(24 * 3600) {
        return Err(written.refused(format_args!(
            "{:?}: must be more than 0 and at most 24h",
            written.text
        )));
    }
    Ok(period)
}

fn grace(written: &Written) -> Result<Duration, Refused> {
    let grace = duration(written)?;
    // systemd kills after 90 s, the kubelet after 30 s, unless told otherwise.
    if grace > Duration::from_secs(60) {
        return Err(written.refused(format_args!("{:?}: must be at most 60s", written.text)));
    }
    Ok(grace)
}

fn duration(written: &Written) -> Result<Duration, Refused> {
    humantime::parse_duration(&written.text).map_err(|_| {
        written.refused(format_args!(
            "{:?} is no time; write 1s, 500ms, 5m or 1h30m",
            written.text
        ))
    })
}

fn number(written: &Written, least: usize, most: usize) -> Result<usize, Refused> {
    written
        .text
        .parse()
        .ok()
        .filter(|number| (least..=most).contains(number))
        .ok_or_else(|| {
            written.refused(format_args!(
                "{:?}: must be a whole number from {least} to {most}",
                written.text
            ))
        })
}

fn boolean(written: &Written) -> Result<bool, Refused> {
    written
        .text
        .parse()
        .map_err(|_| written.refused(format_args!("{:?}: must be true or false", written.text)))
}

/// A socket is made beside its place first, under a name that is longer by `.new`.
const ITS_MAKING: usize = 4;

fn socket_path(written: &Written) -> Result<PathBuf, Refused> {
    // What makes a good endpoint of a runtime makes one of ours.
    let endpoint: Endpoint = written.parse()?;
    if endpoint.path().len() > LONGEST_PATH - ITS_MAKING {
        return Err(written.refused(format_args!(
            "a socket's path has at most {LONGEST_PATH} bytes, of which its making takes {ITS_MAKING}, and this has {}",
            endpoint.path().len()
        )));
    }
    Ok(PathBuf::from(endpoint.path()))
}

fn host_names(written: &Written) -> Result<Vec<String>, Refused> {
    let names = written.text.split(',').map(str::trim);
    names
        .filter(|name| !name.is_empty())
        .map(|name| {
            let is_name = |c: char| c.is_ascii_alphanumeric() || "-._:[]".contains(c);
            if name.chars().all(is_name) {
                Ok(name.to_ascii_lowercase())
            } else {
                Err(written.refused(format_args!(
                    "{name:?} is no host name; write names or addresses without scheme or path"
                )))
            }
        })
        .collect()
}

fn flight_recorder(layers: &Layers) -> Result<Option<FlightRecorder>, Refused> {
    let size = layers.written(Key::FlightRecorderSize);
    let bytes = size.parse::<ByteLimit>()?.0;
    unless_off(layers.written(Key::FlightRecorderPeriod), |it| {
        Ok(FlightRecorder {
            period: period(it)?,
            size: bytes,
        })
    })
}

impl FromStr for LogFormat {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "text" => Ok(Self::Text),
            "json" => Ok(Self::Json),
            _ => Err("the formats are text and json"),
        }
    }
}

impl fmt::Display for LogFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Text => "text",
            Self::Json => "json",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::file::ConfigFile;
    use super::super::keys::Flags;
    use super::*;
    use std::path::Path;

    fn read(file: &str) -> Result<RunSettings, Refused> {
        let file = ConfigFile::parse(file).unwrap();
        let layers = Layers::gather(
            &Flags::default(),
            &|_| None,
            Some((Path::new("/etc/pleg/config.yaml"), &file)),
        );
        RunSettings::read(&layers)
    }

    fn refusal(file: &str) -> String {
        match read(file) {
            Err(refused) => refused.to_string(),
            Ok(config) => panic!("{file:?} was taken: {config:?}"),
        }
    }

    #[test]
    fn the_defaults_are_the_kubelets_and_agree_with_each_other() {
        let config = read("").unwrap();
        assert!(config.evented);
        assert_eq!(config.relist_period, Duration::from_secs(1));
        assert_eq!(config.relist_threshold, Duration::from_secs(180));
        assert_eq!(config.evented_relist_period, Duration::from_secs(300));
        assert_eq!(config.evented_relist_threshold, Duration::from_secs(600));
        assert_eq!(config.grpc_listen, Some("/run/pleg/pleg.sock".into()));
        assert_eq!(config.http_listen, Some(([127, 0, 0, 1], 9641).into()));
        assert_eq!(config.watchdog_timeout, Some(Duration::from_secs(60)));
        assert_eq!(config.log_format, LogFormat::Text);
    }

    #[test]
    fn listeners_watchdog_and_recorder_can_be_off() {
        let off = "httpListen: \"off\"\nwatchdogTimeout: \"off\"\nflightRecorderPeriod: \"off\"\n";
        let config = read(off).unwrap();
        assert_eq!(config.http_listen, None);
        assert_eq!(config.watchdog_timeout, None);
        assert_eq!(config.flight_recorder, None);
    }

    #[test]
    fn a_bad_value_names_file_line_key_and_what_is_allowed() {
        for (file, words) in [
            ("relistPeriod: 1 minute ago\n", "is no time; write 1s"),
            ("relistPeriod: 0s\n", "more than 0 and at most 24h"),
            ("relistPeriod: 25h\n", "more than 0 and at most 24h"),
            ("maxMessageSize: 16MB\n", "16MiB"),
            ("maxMessageSize: 1KiB\n", "from 64KiB to 1GiB"),
            (
                "featureGates: {Evented: true}\n",
                "the known gates are: EventedPLEG",
            ),
            ("grpcListen: run/pleg.sock\n", "unix://"),
            ("grpcListen: tcp://127.0.0.1:1\n", "unix://"),
            ("httpListen: localhost\n", "like 127.0.0.1:9641"),
            ("httpListen: 0.0.0.0:9641\n", "set httpAllowRemote to true"),
            ("httpAllowRemote: maybe\n", "true or false"),
            (
                "httpAllowedHosts: [\"http://x/\"]\n",
                "without scheme or path",
            ),
            ("eventHistory: 3\n", "from 16 to 1000000"),
            ("eventHistory: -3\n", "from 16 to 1000000"),
            ("flightRecorderSize: lots\n", "16MiB"),
            ("shutdownGracePeriod: 5m\n", "at most 60s"),
            ("watchdogTimeout: 1s\n", "at least 10s"),
            ("logLevel: loud\n", "off, error, warn"),
            ("logFormat: xml\n", "text and json"),
            ("grpcSocketMode: \"0999\"\n", "0660"),
            ("grpcSocketMode: \"4755\"\n", "0660"),
            ("grpcSocketGroup: no such group\n", "/etc/group"),
            ("runtimeEndpoint: tcp://127.0.0.1:1\n", "unix://"),
        ] {
            let text = refusal(&format!("# first line\n{file}"));
            let key = file.split(':').next().unwrap();
            assert!(text.starts_with("/etc/pleg/config.yaml:2: "), "{text}");
            assert!(text.contains(&format!("{key}: ")), "{key}: {text}");
            assert!(text.contains(words), "{text}");
        }
    }

    #[test]
    fn periods_and_thresholds_that_contradict_each_other_are_refused_with_the_reason() {
        let text = refusal("relistPeriod: 6m\n");
        assert!(text.contains(":1: relistPeriod: "), "{text}");
        assert!(text.contains("relist less often"), "{text}");
        let text = refusal("eventedRelistPeriod: 500ms\n");
        assert!(text.contains(":1: eventedRelistPeriod: "), "{text}");
        let text = refusal("relistThreshold: 1s\n");
        assert!(text.contains("too late to be healthy"), "{text}");
        let text = refusal("eventedRelistPeriod: 10m\n");
        assert!(
            text.contains("contradicts eventedRelistThreshold 10m (default)"),
            "{text}"
        );
    }

    #[test]
    fn a_daemon_that_nobody_could_read_is_refused() {
        let text = refusal("grpcListen: \"off\"\nhttpListen: \"off\"\n");
        assert!(text.contains("nobody could read"), "{text}");
    }

    #[test]
    fn an_address_for_other_machines_is_taken_once_it_is_meant() {
        let config = read("httpListen: 0.0.0.0:9641\nhttpAllowRemote: true\n").unwrap();
        assert_eq!(config.http_listen, Some(([0, 0, 0, 0], 9641).into()));
    }
}
