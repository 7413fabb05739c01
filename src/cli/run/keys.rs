//! Every setting of `pleg run`, once: its key in the file, its variable, its flag, its default.
//!
//! Flags, environment, file, `--print-config` and the documentation are made from this table, so that none
//! of them knows a setting that another does not. What a value means is [`super::settings`]'s.

use clap::{Arg, ArgMatches, Command, FromArgMatches};
use std::collections::BTreeMap;

/// A setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    RuntimeEndpoint,
    MaxMessageSize,
    FeatureGates,
    RelistPeriod,
    RelistThreshold,
    EventedRelistPeriod,
    EventedRelistThreshold,
    GrpcListen,
    GrpcSocketMode,
    GrpcSocketOwner,
    GrpcSocketGroup,
    HttpListen,
    HttpAllowRemote,
    HttpAllowedHosts,
    EventHistory,
    FlightRecorderPeriod,
    FlightRecorderSize,
    ShutdownGracePeriod,
    WatchdogTimeout,
    LogLevel,
    LogFormat,
}

/// Whose flag it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FlagOf {
    /// `pleg run` has it.
    Run,
    /// Every subcommand that follows a runtime has it.
    Every,
}

/// How a setting is written.
#[derive(Debug)]
pub(crate) struct Spelling {
    /// In the file.
    pub(crate) key: &'static str,
    /// In the environment.
    pub(crate) variable: &'static str,
    /// On the command line, without the dashes.
    pub(crate) flag: &'static str,
    /// Whose flag it is.
    pub(crate) flag_of: FlagOf,
    /// What stands for a value in the help.
    pub(crate) value: &'static str,
    /// The default, as anybody would write it. Empty: none.
    pub(crate) default: &'static str,
    /// What it is, in a line.
    pub(crate) about: &'static str,
}

impl Key {
    /// All of them, in the order in which they are printed.
    pub(crate) const ALL: [Self; 21] = [
        Self::RuntimeEndpoint,
        Self::MaxMessageSize,
        Self::FeatureGates,
        Self::RelistPeriod,
        Self::RelistThreshold,
        Self::EventedRelistPeriod,
        Self::EventedRelistThreshold,
        Self::GrpcListen,
        Self::GrpcSocketMode,
        Self::GrpcSocketOwner,
        Self::GrpcSocketGroup,
        Self::HttpListen,
        Self::HttpAllowRemote,
        Self::HttpAllowedHosts,
        Self::EventHistory,
        Self::FlightRecorderPeriod,
        Self::FlightRecorderSize,
        Self::ShutdownGracePeriod,
        Self::WatchdogTimeout,
        Self::LogLevel,
        Self::LogFormat,
    ];

    /// Whether the help shows its flag; `--print-config` and the manual show every one.
    fn is_everyday(self) -> bool {
        matches!(
            self,
            Self::FeatureGates
                | Self::RelistPeriod
                | Self::EventedRelistPeriod
                | Self::GrpcListen
                | Self::HttpListen
        )
    }

    /// Whether `off` is one of its values.
    pub(crate) fn takes_off(self) -> bool {
        matches!(
            self,
            Self::GrpcListen
                | Self::HttpListen
                | Self::FlightRecorderPeriod
                | Self::WatchdogTimeout
        )
    }

    /// The setting of this key in the file.
    pub(crate) fn named(key: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|it| it.spelling().key == key)
    }

    /// The key that somebody may have meant.
    pub(crate) fn like(key: &str) -> Option<Self> {
        let bare = |text: &str| -> String {
            let letters = text.chars().filter(char::is_ascii_alphanumeric);
            letters.map(|c| c.to_ascii_lowercase()).collect()
        };
        let wanted = bare(key);
        Self::ALL
            .into_iter()
            .map(|it| (distance(&bare(it.spelling().key), &wanted), it))
            .filter(|(distance, _)| *distance <= 3)
            .min_by_key(|(distance, _)| *distance)
            .map(|(_, it)| it)
    }

    /// How it is written.
    #[expect(clippy::too_many_lines, reason = "a table, one line a cell")]
    pub(crate) fn spelling(self) -> &'static Spelling {
        match self {
            Self::RuntimeEndpoint => &Spelling {
                key: "runtimeEndpoint",
                variable: "CONTAINER_RUNTIME_ENDPOINT",
                flag: "runtime-endpoint",
                flag_of: FlagOf::Every,
                value: "ENDPOINT",
                default: "",
                about: "The runtime's socket; by default crictl's file or the usual ones",
            },
            Self::MaxMessageSize => &Spelling {
                key: "maxMessageSize",
                variable: "PLEG_MAX_MESSAGE_SIZE",
                flag: "max-message-size",
                flag_of: FlagOf::Every,
                value: "SIZE",
                default: "16MiB",
                about: "The largest answer to accept from the runtime",
            },
            Self::FeatureGates => &Spelling {
                key: "featureGates",
                variable: "PLEG_FEATURE_GATES",
                flag: "feature-gates",
                flag_of: FlagOf::Run,
                value: "GATES",
                default: "EventedPLEG=true",
                about: "As the kubelet's: EventedPLEG=false polls",
            },
            Self::RelistPeriod => &Spelling {
                key: "relistPeriod",
                variable: "PLEG_RELIST_PERIOD",
                flag: "relist-period",
                flag_of: FlagOf::Run,
                value: "DURATION",
                default: "1s",
                about: "Between relists while polling",
            },
            Self::RelistThreshold => &Spelling {
                key: "relistThreshold",
                variable: "PLEG_RELIST_THRESHOLD",
                flag: "relist-threshold",
                flag_of: FlagOf::Run,
                value: "DURATION",
                default: "3m",
                about: "Unhealthy without a relist for so long, while polling",
            },
            Self::EventedRelistPeriod => &Spelling {
                key: "eventedRelistPeriod",
                variable: "PLEG_EVENTED_RELIST_PERIOD",
                flag: "evented-relist-period",
                flag_of: FlagOf::Run,
                value: "DURATION",
                default: "5m",
                about: "Between audits of a trusted event stream, at most",
            },
            Self::EventedRelistThreshold => &Spelling {
                key: "eventedRelistThreshold",
                variable: "PLEG_EVENTED_RELIST_THRESHOLD",
                flag: "evented-relist-threshold",
                flag_of: FlagOf::Run,
                value: "DURATION",
                default: "10m",
                about: "Unhealthy without a relist for so long, while events drive",
            },
            Self::GrpcListen => &Spelling {
                key: "grpcListen",
                variable: "PLEG_GRPC_LISTEN",
                flag: "grpc-listen",
                flag_of: FlagOf::Run,
                value: "SOCKET",
                default: "unix:///run/pleg/pleg.sock",
                about: "Where to serve pleg.v1, or off",
            },
            Self::GrpcSocketMode => &Spelling {
                key: "grpcSocketMode",
                variable: "PLEG_GRPC_SOCKET_MODE",
                flag: "grpc-socket-mode",
                flag_of: FlagOf::Run,
                value: "MODE",
                default: "0660",
                about: "The socket's permissions, octal",
            },
            Self::GrpcSocketOwner => &Spelling {
                key: "grpcSocketOwner",
                variable: "PLEG_GRPC_SOCKET_OWNER",
                flag: "grpc-socket-owner",
                flag_of: FlagOf::Run,
                value: "USER",
                default: "",
                about: "The socket's owner, a number or a name of /etc/passwd",
            },
            Self::GrpcSocketGroup => &Spelling {
                key: "grpcSocketGroup",
                variable: "PLEG_GRPC_SOCKET_GROUP",
                flag: "grpc-socket-group",
                flag_of: FlagOf::Run,
                value: "GROUP",
                default: "",
                about: "The socket's group, a number or a name of /etc/group",
            },
            Self::HttpListen => &Spelling {
                key: "httpListen",
                variable: "PLEG_HTTP_LISTEN",
                flag: "http-listen",
                flag_of: FlagOf::Run,
                value: "ADDRESS",
                default: "127.0.0.1:9641",
                about: "Where to serve HTTP, or off",
            },
            Self::HttpAllowRemote => &Spelling {
                key: "httpAllowRemote",
                variable: "PLEG_HTTP_ALLOW_REMOTE",
                flag: "http-allow-remote",
                flag_of: FlagOf::Run,
                value: "BOOL",
                default: "false",
                about: "Whether httpListen may be other than loopback",
            },
            Self::HttpAllowedHosts => &Spelling {
                key: "httpAllowedHosts",
                variable: "PLEG_HTTP_ALLOWED_HOSTS",
                flag: "http-allowed-hosts",
                flag_of: FlagOf::Run,
                value: "NAMES",
                default: "",
                about: "Host names to answer to, besides loopback's and the address itself",
            },
            Self::EventHistory => &Spelling {
                key: "eventHistory",
                variable: "PLEG_EVENT_HISTORY",
                flag: "event-history",
                flag_of: FlagOf::Run,
                value: "N",
                default: "10000",
                about: "Events kept for watchers that come back",
            },
            Self::FlightRecorderPeriod => &Spelling {
                key: "flightRecorderPeriod",
                variable: "PLEG_FLIGHT_RECORDER_PERIOD",
                flag: "flight-recorder-period",
                flag_of: FlagOf::Run,
                value: "DURATION",
                default: "10m",
                about: "How far back the flight recorder goes, or off",
            },
            Self::FlightRecorderSize => &Spelling {
                key: "flightRecorderSize",
                variable: "PLEG_FLIGHT_RECORDER_SIZE",
                flag: "flight-recorder-size",
                flag_of: FlagOf::Run,
                value: "SIZE",
                default: "8MiB",
                about: "What the flight recorder holds, at most",
            },
            Self::ShutdownGracePeriod => &Spelling {
                key: "shutdownGracePeriod",
                variable: "PLEG_SHUTDOWN_GRACE_PERIOD",
                flag: "shutdown-grace-period",
                flag_of: FlagOf::Run,
                value: "DURATION",
                default: "5s",
                about: "How long watchers have to go after SIGTERM",
            },
            Self::WatchdogTimeout => &Spelling {
                key: "watchdogTimeout",
                variable: "PLEG_WATCHDOG_TIMEOUT",
                flag: "watchdog-timeout",
                flag_of: FlagOf::Run,
                value: "DURATION",
                default: "60s",
                about: "Ends the process if its driver stands still for so long, or off",
            },
            Self::LogLevel => &Spelling {
                key: "logLevel",
                variable: "PLEG_LOG",
                flag: "log-level",
                flag_of: FlagOf::Every,
                value: "LEVEL",
                default: "info",
                about: "off, error, warn, info, debug, trace, or directives as in tracing",
            },
            Self::LogFormat => &Spelling {
                key: "logFormat",
                variable: "PLEG_LOG_FORMAT",
                flag: "log-format",
                flag_of: FlagOf::Run,
                value: "FORMAT",
                default: "text",
                about: "text or json",
            },
        }
    }
}

/// The settings that flags name, as they were typed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Flags(pub(crate) BTreeMap<Key, String>);

impl clap::Args for Flags {
    fn augment_args(command: Command) -> Command {
        let own = Key::ALL
            .into_iter()
            .filter(|key| key.spelling().flag_of == FlagOf::Run);
        command.next_help_heading("Settings").args(own.map(|key| {
            let it = key.spelling();
            let arg = Arg::new(it.key)
                .long(it.flag)
                .value_name(it.value)
                .hide(!key.is_everyday());
            if it.default.is_empty() {
                arg.help(it.about)
            } else {
                arg.help(format!("{} [default: {}]", it.about, it.default))
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl FromArgMatches for Flags {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let typed = Key::ALL.into_iter().filter_map(|key| {
            let found = matches.try_get_one::<String>(key.spelling().key);
            Some((key, found.ok().flatten()?.clone()))
        });
        Ok(Self(typed.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        self.0.extend(Self::from_arg_matches(matches)?.0);
        Ok(())
    }
}

/// The single-letter edits between two words.
fn distance(one: &str, other: &str) -> usize {
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (i, a) in one.bytes().enumerate() {
        let mut diagonal = i;
        row[0] = i + 1;
        for (j, b) in other.bytes().enumerate() {
            let replaced = diagonal + usize::from(a != b);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn no_two_settings_share_a_key_a_variable_or_a_flag() {
        let all = Key::ALL.map(Key::spelling);
        assert_eq!(
            all.map(|it| it.key).iter().collect::<BTreeSet<_>>().len(),
            21
        );
        assert_eq!(
            all.map(|it| it.variable)
                .iter()
                .collect::<BTreeSet<_>>()
                .len(),
            21
        );
        assert_eq!(
            all.map(|it| it.flag).iter().collect::<BTreeSet<_>>().len(),
            21
        );
    }

    #[test]
    fn a_flag_is_its_key_with_dashes() {
        for it in Key::ALL.map(Key::spelling) {
            let dashed: String = it.key.chars().fold(String::new(), |mut text, c| {
                if c.is_ascii_uppercase() {
                    text.push('-');
                }
                text.push(c.to_ascii_lowercase());
                text
            });
            assert_eq!(it.flag, dashed);
        }
    }

    #[test]
    fn a_misspelt_key_finds_its_neighbour_and_nonsense_finds_none() {
        assert_eq!(Key::like("relistPeriods"), Some(Key::RelistPeriod));
        assert_eq!(Key::like("http-listen"), Some(Key::HttpListen));
        assert_eq!(Key::like("grpcListn"), Some(Key::GrpcListen));
        assert_eq!(Key::like("colour"), None);
    }
}
