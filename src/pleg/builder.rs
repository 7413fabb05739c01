//! The builder: the kubelet's settings under the kubelet's names, checked before anything runs.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use thiserror::Error;
use tokio::sync::{broadcast, mpsc, watch};
use tonic::transport::Channel;

use super::driver::{Driver, Inlets, Outlets};
use super::handle::Pleg;
use crate::backoff::reconnect_delays;
use crate::cache::cache;
use crate::clock::Clock;
use crate::cri::{CallLimits, Endpoint, ReaderLimits, ReaderPlace, StreamSource, Tap, Tapped};
use crate::engine::{Engine, Mode, Settings};
use crate::feed::{DEFAULT_CAPACITY, feed};

/// How many changes of mode a reader of [`Pleg::modes`] may fall behind.
const MODE_CHANGES: usize = 64;

/// Why nothing was built.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum BuildError {
    /// No runtime was named.
    #[error("no runtime: give the builder an endpoint, a channel or a connector")]
    NoRuntime,
    /// A period, threshold or size is zero.
    #[error("{setting} must be more than zero")]
    Zero {
        /// The builder's method.
        setting: &'static str,
    },
    /// While events drive, relists would be more frequent than while polling.
    #[error(
        "relist_period {fast:?} is longer than evented_relist_period {slow:?}: \
         the event stream is there to relist less often"
    )]
    FastSlowerThanSlow {
        /// `relist_period`.
        fast: Duration,
        /// `evented_relist_period`.
        slow: Duration,
    },
    /// Every relist would come too late to be healthy.
    #[error("{threshold_setting} {threshold:?} must be longer than {period_setting} {period:?}")]
    ThresholdWithinPeriod {
        /// The builder's method for the threshold.
        threshold_setting: &'static str,
        /// The threshold.
        threshold: Duration,
        /// The builder's method for the period.
        period_setting: &'static str,
        /// The period.
        period: Duration,
    },
}

/// Sets up a [`Pleg`] and its [`Driver`]. Durations and sizes default to the kubelet's.
#[derive(Clone, Debug)]
#[must_use]
pub struct Builder {
    source: Option<StreamSource>,
    place: Option<ReaderPlace>,
    settings: Settings,
    channel_capacity: usize,
    max_message_size: usize,
    stream_inbox_bytes: usize,
    seed: Option<u64>,
    clock: Option<Clock>,
    tap: Option<Tap>,
}

impl Default for Builder {
    fn default() -> Self {
        Self {
            source: None,
            place: None,
            settings: Settings {
                reconnect_delays: reconnect_delays(),
                ..Settings::default()
            },
            channel_capacity: DEFAULT_CAPACITY,
            max_message_size: CallLimits::default().message_size,
            stream_inbox_bytes: ReaderLimits::default().inbox_size,
            seed: None,
            clock: None,
            tap: None,
        }
    }
}

impl Builder {
    /// Follows the runtime at a socket. Nothing is dialled before the driver runs.
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.source = Some(StreamSource::Endpoint(endpoint));
        self
    }

    /// Follows the runtime behind a ready channel, which must have no timeout of its own. Its
    /// connection runs where the channel was made, so a stall there reaches the event stream;
    /// [`Builder::endpoint`] and [`Builder::connector`] do not have that weakness.
    pub fn channel(mut self, channel: Channel) -> Self {
        self.source = Some(StreamSource::Channel(channel));
        self
    }

    /// Follows the runtime behind the channels that `connect` makes: one for the calls, and one for
    /// each event stream, in the tokio runtime that reads it.
    pub fn connector(mut self, connect: impl Fn() -> Channel + Send + Sync + 'static) -> Self {
        self.source = Some(StreamSource::Connector(Arc::new(connect)));
        self
    }

    /// Whether the event stream's connection and reader have a thread of their own (the default, but
    /// for a ready channel), so that no stall of the embedder's executor reaches them: a client that
    /// stops reading freezes pod creation on containerd 2.x. Without it they run where the driver
    /// does, as tests in virtual time need.
    pub fn stream_thread(mut self, own: bool) -> Self {
        self.place = Some(if own {
            ReaderPlace::OwnThread
        } else {
            ReaderPlace::CurrentRuntime
        });
        self
    }

    /// The `EventedPLEG` gate: whether the event stream is used at all; it is by default.
    pub fn evented_pleg(mut self, on: bool) -> Self {
        self.settings.evented = on;
        self
    }

    /// The time between relists while polling; 1 s by default (`genericPlegRelistPeriod`).
    pub fn relist_period(mut self, period: Duration) -> Self {
        self.settings.fast_period = period;
        self
    }

    /// Without a successful relist for so long, polling is unhealthy; 3 minutes by default
    /// (`genericPlegRelistThreshold`).
    pub fn relist_threshold(mut self, threshold: Duration) -> Self {
        self.settings.fast_threshold = threshold;
        self
    }

    /// The time between relists that a trusted event stream earns; 300 s by default
    /// (`eventedPlegRelistPeriod`).
    pub fn evented_relist_period(mut self, period: Duration) -> Self {
        self.settings.slow_period = period;
        self
    }

    /// Without a successful relist for so long, it is unhealthy while events drive; 10 minutes by
    /// default (`eventedPlegRelistThreshold`).
    pub fn evented_relist_threshold(mut self, threshold: Duration) -> Self {
        self.settings.slow_threshold = threshold;
        self
    }

    /// How many events a subscriber may fall behind before its queue folds, and how many past ones can
    /// be resumed from; 1000 by default (`plegChannelCapacity`).
    pub fn channel_capacity(mut self, events: usize) -> Self {
        self.channel_capacity = events;
        self
    }

    /// The largest message taken from the runtime, in bytes; 16 MiB by default.
    pub fn max_message_size(mut self, bytes: usize) -> Self {
        self.max_message_size = bytes;
        self
    }

    /// How much of the event stream may wait to be taken, in bytes; 16 MiB by default. What comes
    /// beyond is dropped, counted and made good by a relist.
    pub fn stream_inbox_bytes(mut self, bytes: usize) -> Self {
        self.stream_inbox_bytes = bytes;
        self
    }

    /// What the jitter of reconnects is drawn from; by default the time of building.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// The clocks, which count from the clock's making; the system's by default. Tests and replays
    /// bring their own.
    pub fn clock(mut self, clock: Clock) -> Self {
        self.clock = Some(clock);
        self
    }

    /// Shows `tap` everything that goes into the engine and comes out of it, in order: for traces,
    /// recordings and debugging. It runs on the driver's task and must not wait.
    pub fn tap(mut self, tap: impl Fn(Tapped<'_>) + Send + Sync + 'static) -> Self {
        self.tap = Some(Tap::new(tap));
        self
    }

    /// Builds the handle and the driver. Nothing happens until the driver runs.
    ///
    /// # Errors
    ///
    /// If no runtime was named or the settings contradict each other.
    pub fn build(mut self) -> Result<(Pleg, Driver), BuildError> {
        self.check()?;
        let clock = self.clock.take().unwrap_or_else(Clock::system);
        self.settings.seed = self
            .seed
            .unwrap_or_else(|| clock.now().wall.0.unsigned_abs());
        let engine = Engine::new(self.settings.clone());
        let tap = self.tap.take();
        let (pleg, inlets, outlets) = self.join(clock.clone(), engine.mode())?;
        Ok((pleg, Driver::new(engine, tap, clock, inlets, outlets)))
    }

    /// Makes everything around the engine.
    pub(super) fn join(
        self,
        clock: Clock,
        mode: Mode,
    ) -> Result<(Pleg, Inlets, Outlets), BuildError> {
        let source = self.source.ok_or(BuildError::NoRuntime)?;
        let place = self.place.unwrap_or(match source {
            StreamSource::Channel(_) => ReaderPlace::CurrentRuntime,
            _ => ReaderPlace::OwnThread,
        });
        let (commands, received) = mpsc::unbounded_channel();
        let (cache_writer, cache) = cache();
        let (feed_writer, feed) = feed(self.channel_capacity, cache.clone());
        let (mode, mode_seen) = watch::channel(mode);
        let (mode_changes, _) = broadcast::channel(MODE_CHANGES);
        let (relisted, relisted_seen) = watch::channel(None);
        let pleg = Pleg {
            commands,
            cache,
            feed: feed.clone(),
            clock,
            readers: Arc::new(AtomicU64::new(1)),
            mode: mode_seen,
            mode_changes: mode_changes.downgrade(),
            relisted: relisted_seen,
        };
        let inlets = Inlets {
            source,
            place,
            calls: CallLimits {
                message_size: self.max_message_size,
                ..CallLimits::default()
            },
            reader: ReaderLimits {
                message_size: self.max_message_size,
                inbox_size: self.stream_inbox_bytes,
            },
            commands: received,
        };
        let outlets = Outlets {
            cache: cache_writer,
            feed: feed_writer,
            feed_stats: feed,
            mode,
            mode_changes,
            relisted,
        };
        Ok((pleg, inlets, outlets))
    }

    fn check(&self) -> Result<(), BuildError> {
        let Settings {
            fast_period: fast,
            fast_threshold,
            slow_period: slow,
            slow_threshold,
            ..
        } = self.settings;
        let is_zero = [
            ("relist_period", fast.is_zero()),
            ("evented_relist_period", slow.is_zero()),
            ("channel_capacity", self.channel_capacity == 0),
            ("max_message_size", self.max_message_size == 0),
            ("stream_inbox_bytes", self.stream_inbox_bytes == 0),
        ];
        if let Some((setting, _)) = is_zero.into_iter().find(|(_, zero)| *zero) {
            return Err(BuildError::Zero { setting });
        }
        if fast > slow {
            return Err(BuildError::FastSlowerThanSlow { fast, slow });
        }
        let pairs = [
            ("relist_threshold", fast_threshold, "relist_period", fast),
            (
                "evented_relist_threshold",
                slow_threshold,
                "evented_relist_period",
                slow,
            ),
        ];
        for (threshold_setting, threshold, period_setting, period) in pairs {
            if threshold <= period {
                return Err(BuildError::ThresholdWithinPeriod {
                    threshold_setting,
                    threshold,
                    period_setting,
                    period,
                });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(builder: Builder) -> String {
        builder.build().expect_err("must be refused").to_string()
    }

    #[test]
    fn contradictory_periods_are_refused_with_the_names_of_the_settings() {
        let second = Duration::from_secs(1);
        assert_eq!(
            refusal(Pleg::builder().relist_period(Duration::ZERO)),
            "relist_period must be more than zero"
        );
        assert!(
            refusal(Pleg::builder().evented_relist_period(second / 2))
                .starts_with("relist_period 1s is longer than evented_relist_period 500ms")
        );
        assert_eq!(
            refusal(Pleg::builder().relist_threshold(second)),
            "relist_threshold 1s must be longer than relist_period 1s"
        );
        assert_eq!(
            refusal(Pleg::builder().evented_relist_threshold(second)),
            "evented_relist_threshold 1s must be longer than evented_relist_period 300s"
        );
        assert_eq!(
            refusal(Pleg::builder().channel_capacity(0)),
            "channel_capacity must be more than zero"
        );
    }

    #[test]
    fn without_a_runtime_there_is_nothing_to_build() {
        assert_eq!(
            Pleg::builder().build().expect_err("no runtime"),
            BuildError::NoRuntime
        );
    }
}
