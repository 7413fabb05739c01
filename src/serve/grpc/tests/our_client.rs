//! Our own client: what it says when it is not let in, what it does after a restart.

use super::*;
use crate::serve::grpc::convert;

#[tokio::test(start_paused = true)]
async fn our_client_says_once_why_it_is_not_let_in_and_goes_on_trying() {
    let runtime = busy_node();
    let door = Door::default();
    let limits = Limits {
        watchers: 1,
        ..Limits::default()
    };
    let life = Life::begin(&runtime, &door, 1, limits).driven().await;
    let present = door.stub().watch(WatchRequest::default()).await.unwrap();
    let mut watching = door.client().watch(Begin::Snapshot, "test");
    let Watched::Lost(why) = watching.next().await.unwrap() else {
        panic!("let in");
    };
    assert!(why.contains("as many as are allowed"), "{why}");
    let silent = tokio::time::timeout(seconds(60), watching.next()).await;
    assert!(silent.is_err(), "{silent:?}");
    let tries = life.serving.watchers().totals().refused;
    assert!((15..40).contains(&tries), "{tries} in a minute");
    drop(present);
    let first = watching.next().await.unwrap();
    assert!(matches!(first, Watched::Event(_)), "{first:?}");
}

#[tokio::test(start_paused = true)]
async fn our_client_says_that_a_daemon_takes_connections_and_does_not_answer() {
    let door = Door::default();
    let (dialled, _nobody_serves) = mpsc::unbounded();
    *door.0.lock().unwrap() = Some(dialled);
    let mut watching = door.client().watch(Begin::Snapshot, "test");
    let Watched::Lost(why) = watching.next().await.unwrap() else {
        panic!("answered");
    };
    assert!(why.contains("no answer within 10 s"), "{why}");
    let status = door.client().status().await.unwrap_err().to_string();
    assert!(status.contains("no answer within 10 s"), "{status}");
}

#[tokio::test(start_paused = true)]
async fn our_client_does_not_hammer_a_daemon_that_ends_each_watch_at_once() {
    let runtime = busy_node();
    let door = Door::default();
    let life = Life::of(&runtime, &door, 1).await;
    let position = life.serving.list().position.to_string();
    life.feeding.abort();
    let mut watching = door.client().watch(Begin::After(position), "test");
    let mut told = Vec::new();
    let minute = tokio::time::sleep(seconds(60));
    tokio::pin!(minute);
    while life.serving.watchers().totals().begun < 100 {
        tokio::select! {
            biased;
            () = &mut minute => break,
            watched = watching.next() => told.push(watched.unwrap()),
        }
    }
    let tries = life.serving.watchers().totals().begun;
    assert!((15..40).contains(&tries), "{tries} in a minute");
    assert!(matches!(told.as_slice(), [Watched::Lost(_)]), "{told:?}");
}

#[tokio::test(start_paused = true)]
async fn our_client_lists_again_after_a_restart_and_believes_the_truth() {
    let runtime = busy_node();
    let door = Door::default();
    let mut churn = Some(runtime.spawn_churn());
    let mut life = Life::of(&runtime, &door, 1).await;
    let mut watching = door.client().watch(Begin::Snapshot, "test");
    let mut belief = Belief::default();
    let mut listed_again = 0;
    let mut mode_changes = 0;
    for epoch in 2..6 {
        let deadline = tokio::time::sleep(seconds(7));
        tokio::pin!(deadline);
        loop {
            tokio::select! {
                biased;
                () = &mut deadline => break,
                watched = watching.next() => match watched.unwrap() {
                    Watched::Event(event) => belief.take(&convert::event(&event)),
                    Watched::ListAgain(_) => {
                        listed_again += 1;
                        belief = Belief::default();
                    }
                    Watched::ModeChanged(_) => mode_changes += 1,
                    Watched::SnapshotEnd | Watched::Lost(_) => {}
                },
            }
        }
        if epoch == 5 {
            churn = None;
            continue;
        }
        life.end().await;
        life = Life::of(&runtime, &door, epoch).await;
    }
    assert!(churn.is_none());
    assert_eq!(listed_again, 3);
    assert!(mode_changes > 0);
    loop {
        let next = tokio::time::timeout(seconds(30), watching.next()).await;
        match next {
            Ok(Ok(Watched::Event(event))) => {
                belief.take(&convert::event(&event));
            }
            Ok(Ok(Watched::ModeChanged(_))) => {}
            Ok(other) => panic!("{other:?}"),
            Err(_) => break,
        }
    }
    assert_eq!(belief, Belief::truth(&runtime));
}
