//! What the crate promises of its types, asked from outside: what can cross threads, what is an error.
//! All of it is checked when this file is compiled.

use std::error::Error;
use std::fmt::Debug;

use pleg::{BuildError, Builder, Driver, Pleg, Stats, Stopped};

fn crosses_threads<T: Debug + Send + Sync + 'static>() {}
fn moves_to_a_thread<T: Send + 'static>(_: T) {}
fn is_an_error<T: Error + Send + Sync + 'static>() {}

#[test]
fn the_handle_its_driver_and_all_that_they_give_cross_threads() {
    crosses_threads::<Pleg>();
    crosses_threads::<Builder>();
    crosses_threads::<Driver>();
    crosses_threads::<Stats>();
    crosses_threads::<pleg::cache::Cache>();
    crosses_threads::<pleg::cache::Cached>();
    crosses_threads::<pleg::cache::Listing>();
    crosses_threads::<pleg::clock::Clock>();
    crosses_threads::<pleg::cri::CriClient>();
    crosses_threads::<pleg::cri::Endpoint>();
    crosses_threads::<pleg::engine::Engine>();
    crosses_threads::<pleg::engine::Health>();
    crosses_threads::<pleg::engine::ModeChange>();
    crosses_threads::<pleg::engine::Reading>();
    crosses_threads::<pleg::feed::FeedSnapshot>();
    crosses_threads::<pleg::feed::Subscription>();
    crosses_threads::<pleg::lifecycle::LifecycleEvent>();
    crosses_threads::<pleg::lifecycle::PodStatus>();
    crosses_threads::<pleg::verify::Auditor>();
    crosses_threads::<pleg::verify::Report>();
}

/// Never called: it only has to compile.
fn every_wait_may_move(pleg: Pleg, driver: Driver, uid: pleg::lifecycle::PodUid) {
    let waits = async move {
        let mark = pleg.mark().await?;
        let freshness = pleg::engine::Freshness::Details;
        pleg.get_newer_than(uid.clone(), mark, freshness).await?;
        pleg.relisted_since(mark).await?;
        pleg.request_relist(uid.clone()).await?;
        pleg.request_full_relist().await?;
        pleg.request_reinspect(uid).await?;
        pleg.health().await?;
        pleg.stats().await?;
        pleg.shutdown().await;
        Ok::<(), Stopped>(())
    };
    moves_to_a_thread(waits);
    moves_to_a_thread(driver.run());
}

#[test]
fn whatever_waits_can_be_spawned() {
    let _: fn(Pleg, Driver, pleg::lifecycle::PodUid) = every_wait_may_move;
}

#[test]
fn each_operation_has_an_error_of_its_own_that_travels() {
    is_an_error::<BuildError>();
    is_an_error::<Stopped>();
    is_an_error::<pleg::feed::WatchError>();
    is_an_error::<pleg::cri::CallError>();
    is_an_error::<pleg::cri::DecodeError>();
    is_an_error::<pleg::cri::EndpointError>();
    is_an_error::<pleg::cri::StartError>();
}

#[cfg(feature = "simulate")]
#[test]
fn a_simulated_runtime_crosses_threads() {
    crosses_threads::<pleg::simulate::SimulatedRuntime>();
    crosses_threads::<pleg::simulate::Builder>();
    crosses_threads::<pleg::simulate::ChurnTask>();
    crosses_threads::<pleg::simulate::UnixServer>();
    is_an_error::<pleg::simulate::OperationError>();
}

#[cfg(feature = "scenarios")]
#[test]
fn scenarios_and_recordings_cross_threads() {
    crosses_threads::<pleg::scenario::Scenario>();
    crosses_threads::<pleg::scenario::Played>();
    crosses_threads::<pleg::scenario::recording::Replayed>();
    is_an_error::<pleg::scenario::LoadError>();
    is_an_error::<pleg::scenario::recording::ReadError>();
}

#[cfg(feature = "daemon")]
#[test]
fn a_daemon_and_its_client_cross_threads() {
    let spawns = |daemon| moves_to_a_thread(pleg::serve::run(daemon, std::future::pending()));
    let _: &dyn Fn(pleg::serve::Daemon) = &spawns;
    crosses_threads::<pleg::serve::DaemonConfig>();
    crosses_threads::<pleg::serve::grpc::DaemonClient>();
    crosses_threads::<pleg::serve::grpc::Watching>();
    crosses_threads::<pleg::serve::status::Status>();
    is_an_error::<pleg::serve::DaemonError>();
    is_an_error::<pleg::serve::grpc::ClientError>();
}
