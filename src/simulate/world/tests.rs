use std::time::Duration;

use super::*;
use crate::simulate::{Character, Stamps};

const T0: UnixNanos = UnixNanos(1_767_225_600_000_000_000);

fn at(seconds: i64) -> UnixNanos {
    UnixNanos(T0.0 + seconds * 1_000_000_000)
}

fn world(character: &Character) -> World {
    World::new(1, character.habits.clone())
}

fn web() -> Arc<Pod> {
    Arc::new(Pod::new("uid-web", "default", "web-0"))
}

/// A ready sandbox with one running container, at T0.
fn running(character: &Character) -> (World, SandboxId, ContainerId) {
    let mut world = world(character);
    let (sandbox, _) = world.run_sandbox(T0, web());
    let (app, _) = world.create_container(T0, &sandbox, "app").unwrap();
    world.start_container(T0, &app).unwrap();
    (world, sandbox, app)
}

/// What was told, as `subject KIND sandbox-state [container-states]`.
fn story(told: &Told) -> Vec<String> {
    told.iter()
        .map(|message| {
            let subject = match &message.sandbox {
                Some(sandbox) if sandbox.id.as_str() == &*message.id => "sandbox",
                Some(_) => "container",
                None => "?",
            };
            let sandbox = message.sandbox.as_ref().map_or("absent", |sandbox| {
                if sandbox.ready { "ready" } else { "notready" }
            });
            let containers: Vec<String> = message
                .containers
                .iter()
                .map(|container| format!("{}={}", container.name, container.state))
                .collect();
            let containers = containers.join(",");
            format!("{subject} {:?} {sandbox} [{containers}]", message.kind)
        })
        .collect()
}

#[test]
fn containerd_tells_of_a_new_sandbox_twice_and_cri_o_once() {
    let (_, told) = world(&Character::containerd_2()).run_sandbox(T0, web());
    assert_eq!(
        story(&told),
        ["sandbox Created ready []", "sandbox Started ready []"]
    );
    assert!(
        told.iter()
            .all(|message| message.sandbox.as_ref().unwrap().ips.len() == 1)
    );
    let (_, told) = world(&Character::cri_o()).run_sandbox(T0, web());
    assert_eq!(story(&told), ["sandbox Started ready []"]);
}

#[test]
fn a_container_is_told_when_created_started_ended_and_removed() {
    for character in [Character::containerd_1_7(), Character::cri_o()] {
        let mut world = world(&character);
        let (sandbox, _) = world.run_sandbox(T0, web());
        let (app, told) = world.create_container(T0, &sandbox, "app").unwrap();
        assert_eq!(story(&told), ["container Created ready [app=Created]"]);
        let told = world.start_container(at(1), &app).unwrap();
        assert_eq!(story(&told), ["container Started ready [app=Running]"]);
        let told = world.exit_container(at(2), &app, 7).unwrap();
        assert_eq!(story(&told), ["container Stopped ready [app=Exited]"]);
        assert_eq!(told[0].containers[0].exit.code, 7);
        assert_eq!(&*told[0].containers[0].exit.reason, "Error");
        let told = world.remove_container(at(3), &app).unwrap();
        assert_eq!(story(&told), ["container Deleted ready []"]);
        assert_eq!(&*told[0].id, app.as_str());
        assert!(world.container(app.as_str()).is_none());
    }
}

#[test]
fn a_message_is_stamped_later_than_what_it_tells() {
    let (mut world, _, app) = running(&Character::containerd_2());
    let told = world.exit_container(at(5), &app, 0).unwrap();
    let ended = told[0].containers[0].finished_at.unwrap();
    assert_eq!(told[0].stamp, at(5).0);
    assert_eq!(ended, UnixNanos(at(5).0 - 1_000_000));
    let container = &told[0].containers[0];
    assert!(container.created_at <= container.started_at.unwrap());
    assert!(container.started_at.unwrap() <= ended);
}

#[test]
fn a_failed_start_is_never_told() {
    let mut containerd = world(&Character::containerd_1_7());
    let (sandbox, _) = containerd.run_sandbox(T0, web());
    let (app, _) = containerd.create_container(T0, &sandbox, "app").unwrap();
    assert_eq!(containerd.fail_start(at(1), &app).unwrap(), Told::new());
    let failed = containerd.container(app.as_str()).unwrap();
    assert_eq!(failed.state, ReportedState::Exited);
    assert_eq!(failed.exit, ExitStatus::start_error());
    assert_eq!(failed.exit.code, 128);
    assert_eq!(failed.started_at, None);
    assert!(failed.finished_at.is_some());

    let mut cri_o = world(&Character::cri_o());
    let (sandbox, _) = cri_o.run_sandbox(T0, web());
    let (app, _) = cri_o.create_container(T0, &sandbox, "app").unwrap();
    assert_eq!(cri_o.fail_start(at(1), &app).unwrap(), Told::new());
    assert!(cri_o.container(app.as_str()).is_none());
}

#[test]
fn stopping_a_sandbox_tells_its_containers_first_and_its_address_goes_last_and_untold() {
    for character in [Character::containerd_2(), Character::cri_o()] {
        let (mut world, sandbox, app) = running(&character);
        let told = world.stop_sandbox(at(1), &sandbox).unwrap();
        assert_eq!(
            story(&told),
            [
                "container Stopped ready [app=Exited]",
                "sandbox Stopped notready [app=Exited]"
            ]
        );
        assert_eq!(told[0].id.as_ref(), app.as_str());
        assert_eq!(told[0].containers[0].exit, ExitStatus::killed());
        assert_eq!(told[1].sandbox.as_ref().unwrap().ips.len(), 1);
        assert!(world.sandbox(sandbox.as_str()).unwrap().ips.is_empty());
        assert_eq!(world.stop_sandbox(at(2), &sandbox).unwrap(), Told::new());
    }
}

#[test]
fn removing_a_running_sandbox_is_told_by_containerd_without_a_status_before_2() {
    let (mut world, sandbox, app) = running(&Character::containerd_1_7());
    let told = world.remove_sandbox(at(1), &sandbox).unwrap();
    assert_eq!(
        story(&told),
        [
            "container Stopped ready [app=Exited]",
            "sandbox Stopped notready [app=Exited]",
            "container Deleted notready []",
            "? Deleted absent []"
        ]
    );
    assert_eq!(told[2].id.as_ref(), app.as_str());
    assert_eq!(told[3].id.as_ref(), sandbox.as_str());
    assert_eq!(world.sandboxes().count() + world.containers().count(), 0);
}

#[test]
fn containerd_2_tells_of_a_removed_sandbox_with_its_last_status() {
    let (mut world, sandbox, _) = running(&Character::containerd_2());
    world.stop_sandbox(at(1), &sandbox).unwrap();
    let told = world.remove_sandbox(at(2), &sandbox).unwrap();
    assert_eq!(
        story(&told),
        [
            "container Deleted notready []",
            "sandbox Deleted notready []"
        ]
    );
}

#[test]
fn cri_o_tells_nothing_of_a_removed_sandbox() {
    let (mut world, sandbox, _) = running(&Character::cri_o());
    assert_eq!(world.remove_sandbox(at(1), &sandbox).unwrap(), Told::new());
    assert_eq!(world.sandboxes().count() + world.containers().count(), 0);
}

#[test]
fn removing_a_running_container_stops_it_first() {
    let (mut world, _, app) = running(&Character::containerd_2());
    let told = world.remove_container(at(1), &app).unwrap();
    assert_eq!(
        story(&told),
        [
            "container Stopped ready [app=Exited]",
            "container Deleted ready []"
        ]
    );
    assert_eq!(told[0].containers[0].exit.code, 137);
}

#[test]
fn removing_a_container_that_never_ran_stops_it_on_cri_o_only() {
    for (character, kinds) in [
        (Character::containerd_2(), vec![EventKind::Deleted]),
        (
            Character::cri_o(),
            vec![EventKind::Stopped, EventKind::Deleted],
        ),
    ] {
        let mut world = world(&character);
        let (sandbox, _) = world.run_sandbox(T0, web());
        let (app, _) = world.create_container(T0, &sandbox, "app").unwrap();
        let told = world.remove_container(at(1), &app).unwrap();
        let heard: Vec<_> = told.iter().map(|message| message.kind).collect();
        assert_eq!(heard, kinds);
    }
}

#[test]
fn an_event_speaks_of_the_sandbox_on_containerd_and_of_the_whole_pod_on_cri_o() {
    for (character, listed) in [(Character::containerd_2(), 1), (Character::cri_o(), 2)] {
        let (mut world, old, _) = running(&character);
        world.lose_sandbox(at(1), &old).unwrap();
        let (new, _) = world.run_sandbox(at(2), web());
        assert_eq!(world.sandbox(new.as_str()).unwrap().attempt, 1);
        let (_, told) = world.create_container(at(3), &new, "app").unwrap();
        assert_eq!(told[0].containers.len(), listed);
        let (other, told) = world.run_sandbox(at(4), Arc::new(Pod::new("uid-2", "default", "db")));
        assert!(told.iter().all(|message| message.containers.is_empty()));
        assert_eq!(world.sandbox(other.as_str()).unwrap().attempt, 0);
    }
}

#[test]
fn cri_o_finds_no_containers_of_a_pod_without_the_kubelets_labels() {
    for (character, listed) in [(Character::containerd_2(), 1), (Character::cri_o(), 0)] {
        let mut world = world(&character);
        let pod = Pod::new("made-by-hand", "default", "probe").by_crictl();
        let (sandbox, _) = world.run_sandbox(T0, Arc::new(pod));
        let (_, told) = world.create_container(T0, &sandbox, "app").unwrap();
        assert_eq!(told[0].containers.len(), listed);
    }
}

#[test]
fn a_lost_sandbox_leaves_its_containers_running() {
    let (mut world, sandbox, app) = running(&Character::containerd_2());
    let told = world.lose_sandbox(at(1), &sandbox).unwrap();
    assert_eq!(story(&told), ["sandbox Stopped notready [app=Running]"]);
    world.exit_container(at(2), &app, 137).unwrap();
    let told = world.stop_sandbox(at(3), &sandbox).unwrap();
    assert_eq!(told, Told::new(), "no second STOPPED of the sandbox");
}

#[test]
fn what_no_runtime_tells_is_changed_in_silence() {
    let (mut world, sandbox, app) = running(&Character::containerd_2());
    world.set_ips(&sandbox, vec!["fd00::7".into()]).unwrap();
    world.set_unknown(&app).unwrap();
    assert_eq!(
        world.container(app.as_str()).unwrap().state,
        ReportedState::Unknown
    );
    let told = world.exit_container(at(1), &app, 137).unwrap();
    assert_eq!(&*told[0].sandbox.as_ref().unwrap().ips[0], "fd00::7");
    world.amend_reason(&app, "OOMKilled").unwrap();
    let amended = &world.container(app.as_str()).unwrap().exit;
    assert_eq!(*amended, ExitStatus::oom_killed());
}

#[test]
fn a_restarted_container_is_the_next_attempt_of_its_name() {
    let (mut world, sandbox, app) = running(&Character::containerd_2());
    world.exit_container(at(1), &app, 1).unwrap();
    let (again, _) = world.create_container(at(2), &sandbox, "app").unwrap();
    let (sidecar, _) = world.create_container(at(2), &sandbox, "proxy").unwrap();
    assert_eq!(world.container(again.as_str()).unwrap().attempt, 1);
    assert_eq!(world.container(sidecar.as_str()).unwrap().attempt, 0);
}

#[test]
fn a_pod_on_the_host_network_has_no_address() {
    let mut world = world(&Character::containerd_2());
    let pod = Pod::new("uid", "kube-system", "etcd").on_host_network();
    let (sandbox, _) = world.run_sandbox(T0, Arc::new(pod));
    assert!(world.sandbox(sandbox.as_str()).unwrap().ips.is_empty());
}

#[test]
fn an_operation_that_cannot_be_is_refused_and_changes_nothing() {
    let (mut world, sandbox, app) = running(&Character::containerd_2());
    let before = world.clone();
    let nobody = ContainerId::from("nobody");
    let nowhere = SandboxId::from("nowhere");
    assert_eq!(
        world.exit_container(T0, &nobody, 0),
        Err(OperationError::NoContainer(nobody.clone()))
    );
    assert_eq!(
        world.stop_sandbox(T0, &nowhere),
        Err(OperationError::NoSandbox(nowhere.clone()))
    );
    assert!(world.create_container(T0, &nowhere, "app").is_err());
    let again = world.start_container(T0, &app).unwrap_err();
    assert!(
        again
            .to_string()
            .ends_with("is Running, so it cannot start")
    );
    assert!(world.amend_reason(&app, "OOMKilled").is_err());
    assert_eq!(world, before);

    world.stop_sandbox(T0, &sandbox).unwrap();
    let (late, _) = world.create_container(T0, &sandbox, "late").unwrap();
    assert_eq!(
        world.start_container(T0, &late),
        Err(OperationError::SandboxNotReady(sandbox))
    );
}

#[test]
fn stamps_are_as_wrong_as_the_character_says() {
    let mut character = Character::cri_o();
    character.habits.stamps = Stamps::Ahead(Duration::from_mins(1));
    let (_, told) = world(&character).run_sandbox(T0, web());
    assert_eq!(told[0].stamp, at(60).0);
}

#[test]
fn the_same_seed_gives_the_same_world() {
    let (first, ..) = running(&Character::containerd_2());
    let (second, ..) = running(&Character::containerd_2());
    assert_eq!(first, second);
    let mut other = World::new(2, Character::containerd_2().habits);
    let (sandbox, _) = other.run_sandbox(T0, web());
    assert!(first.sandbox(sandbox.as_str()).is_none());
}
