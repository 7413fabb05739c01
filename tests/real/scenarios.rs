//! What can happen to pods on a node where the runtime itself is well. Each scenario tells one pod's
//! life to its end on any runtime, beside others on the same one.

use std::time::Duration;

use tokio::time::sleep;

use crate::driver::Driver;
use crate::story::{Program, Story};
use crate::truth::Truth;

/// Longer than any observer needs to see a phase, be it one that polls once a second.
pub(crate) const LASTING: Duration = Duration::from_secs(3);

const NO_GRACE: Duration = Duration::ZERO;
const GRACE: Duration = Duration::from_secs(10);

pub(crate) async fn a_sandbox_runs_stops_and_is_removed(story: &mut Story) {
    let sandbox = story.run_sandbox().await;
    sleep(LASTING).await;
    story.stop_sandbox(&sandbox).await;
    story.remove_sandbox(&sandbox).await;
}

pub(crate) async fn a_container_exits_with_zero(story: &mut Story) {
    exits_with(story, 0).await;
}

pub(crate) async fn a_container_exits_with_seven(story: &mut Story) {
    exits_with(story, 7).await;
}

/// Exits at once, is left dead for a while as the kubelet would leave it, and removed by itself.
async fn exits_with(story: &mut Story, code: i32) {
    let sandbox = story.run_sandbox().await;
    let app = story.run(&sandbox, "app", Program::Exits(code), code).await;
    sleep(LASTING).await;
    story.remove(&app).await;
    story.stop_sandbox(&sandbox).await;
    story.remove_sandbox(&sandbox).await;
}

pub(crate) async fn a_container_is_terminated(story: &mut Story) {
    let sandbox = story.run_sandbox().await;
    let app = story.create(&sandbox, "app", Program::Forever).await;
    story.start(&app).await;
    sleep(LASTING).await;
    story.stop(&app, GRACE, 143).await;
    story.stop_sandbox(&sandbox).await;
    story.remove_sandbox(&sandbox).await;
}

pub(crate) async fn a_container_is_killed(story: &mut Story) {
    let sandbox = story.run_sandbox().await;
    let app = story.create(&sandbox, "app", Program::Forever).await;
    story.start(&app).await;
    sleep(LASTING).await;
    story.stop(&app, NO_GRACE, 137).await;
    sleep(LASTING).await;
    story.stop_sandbox(&sandbox).await;
    story.remove_sandbox(&sandbox).await;
}

/// No runtime sends an event for it.
pub(crate) async fn a_start_fails(story: &mut Story) {
    let sandbox = story.run_sandbox().await;
    let app = story.create(&sandbox, "app", Program::Missing).await;
    story.start_fails(&app).await;
    sleep(2 * LASTING).await;
    story.remove(&app).await;
    story.stop_sandbox(&sandbox).await;
    story.remove_sandbox(&sandbox).await;
}

pub(crate) async fn a_container_lives_under_ten_milliseconds(story: &mut Story) {
    let sandbox = story.run_sandbox().await;
    let app = story.run(&sandbox, "app", Program::True, 0).await;
    sleep(LASTING).await;
    story.remove(&app).await;
    story.stop_sandbox(&sandbox).await;
    story.remove_sandbox(&sandbox).await;
}

/// One ends well, one ends badly and is restarted, one runs until the pod is stopped; all are removed
/// with the sandbox.
pub(crate) async fn three_containers_share_a_pod(story: &mut Story) {
    let sandbox = story.run_sandbox().await;
    let server = story.create(&sandbox, "server", Program::Forever).await;
    story.start(&server).await;
    story.run(&sandbox, "init", Program::Exits(0), 0).await;
    story.run(&sandbox, "worker", Program::Exits(7), 7).await;
    story.run(&sandbox, "worker", Program::Exits(3), 3).await;
    sleep(LASTING).await;
    story.stop_sandbox(&sandbox).await;
    sleep(LASTING).await;
    story.remove_sandbox(&sandbox).await;
}

/// The pod's first sandbox ends, a second is run under the same pod uid, and the first one is removed
/// while the second runs: nothing of that may be taken for the second's.
pub(crate) async fn a_sandbox_is_re_created_under_the_same_pod(story: &mut Story) {
    let first = story.run_sandbox().await;
    let app = story.create(&first, "app", Program::Forever).await;
    story.start(&app).await;
    sleep(LASTING).await;
    story.stop_sandbox(&first).await;
    let second = story.run_sandbox().await;
    let app = story.create(&second, "app", Program::Forever).await;
    story.start(&app).await;
    sleep(LASTING).await;
    story.remove_sandbox(&first).await;
    sleep(LASTING).await;
    story.stop(&app, GRACE, 143).await;
    story.stop_sandbox(&second).await;
    story.remove_sandbox(&second).await;
}

/// All of the above side by side, each with its own pod.
pub(crate) async fn all_at_once(driver: &Driver) -> Vec<Truth> {
    macro_rules! stories {
        ($($scenario:ident),+ $(,)?) => {{
            $(let mut $scenario = Story::new(driver, &stringify!($scenario).replace('_', "-"));)+
            tokio::join!($(Box::pin(self::$scenario(&mut $scenario))),+);
            vec![$($scenario.truth().clone()),+]
        }};
    }
    stories![
        a_sandbox_runs_stops_and_is_removed,
        a_container_exits_with_zero,
        a_container_exits_with_seven,
        a_container_is_terminated,
        a_container_is_killed,
        a_start_fails,
        a_container_lives_under_ten_milliseconds,
        three_containers_share_a_pod,
        a_sandbox_is_re_created_under_the_same_pod,
    ]
}
