//! What one client may cost: slow ones, large ones, many of them, and ones that take nothing.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::house::House;
use crate::serve::Limits;
use crate::serve::http::connections::Taking;
use crate::serve::http::{HttpLimits, HttpServer};
use crate::simulate::{Fault, Rpc};

/// A server's side of connections that exist in memory alone.
struct Door {
    taking: Taking,
    open: JoinSet<()>,
}

impl Door {
    fn of(server: &HttpServer) -> Self {
        let taking = Taking::new(
            server.router(),
            server.limits,
            server.shared.counting.clone(),
            server.shared.stops.clone(),
        );
        Self {
            taking,
            open: JoinSet::new(),
        }
    }

    fn knock(&mut self) -> DuplexStream {
        let (ours, theirs) = duplex(1 << 10);
        self.taking.take(theirs, &mut self.open);
        ours
    }
}

/// Reads until the other side closes.
async fn all(connection: &mut DuplexStream) -> String {
    let mut bytes = Vec::new();
    // A connection that breaks off is one that was closed.
    let _ = connection.read_to_end(&mut bytes).await;
    String::from_utf8_lossy(&bytes).into_owned()
}

async fn say(connection: &mut DuplexStream, text: &str) {
    connection
        .write_all(text.as_bytes())
        .await
        .expect("it listens");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_slow_to_ask_loses_its_place() {
    let house = House::evented().await;
    let mut door = Door::of(&house.server);
    for slowly in ["", "GET /livez HTTP/1.1\r\nhost: localhost\r\nx: "] {
        let mut client = door.knock();
        say(&mut client, slowly).await;
        let began = Instant::now();
        let drip = async {
            for _ in 0..1_000 {
                tokio::time::sleep(Duration::from_secs(1)).await;
                if client.write_all(b"x").await.is_err() {
                    break;
                }
            }
        };
        drip.await;
        let lasted = Instant::now().duration_since(began);
        assert!(
            lasted <= Duration::from_secs(40),
            "{slowly:?} lasted {lasted:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_connection_may_be_used_again_but_not_be_idle_for_ever() {
    let house = House::evented().await;
    let mut door = Door::of(&house.server);
    let mut client = door.knock();
    let mut answer = [0; 4_096];
    for _ in 0..3 {
        say(
            &mut client,
            "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n",
        )
        .await;
        let read = client.read(&mut answer).await.unwrap();
        let text = String::from_utf8_lossy(&answer[..read]).into_owned();
        assert!(
            text.starts_with("HTTP/1.1 200") && text.ends_with("ok"),
            "{text}"
        );
        house.wait(30).await;
    }
    let began = Instant::now();
    assert_eq!(all(&mut client).await, "");
    assert!(Instant::now().duration_since(began) <= Duration::from_secs(6));
}

#[tokio::test(start_paused = true)]
async fn a_head_that_is_too_large_is_refused() {
    let house = House::evented().await;
    let mut door = Door::of(&house.server);
    let long = format!("x: {}\r\n", "y".repeat(9 << 10));
    let many = (0..65).fold(String::new(), |head, n| format!("{head}x-{n}: y\r\n"));
    for headers in [long, many] {
        let mut client = door.knock();
        let head = format!("GET /livez HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        // It may close before it has read all of this.
        let _ = client.write_all(head.as_bytes()).await;
        let answer = all(&mut client).await;
        assert!(answer.starts_with("HTTP/1.1 431"), "{answer}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_body_is_not_waited_for() {
    let house = House::evented().await;
    let mut door = Door::of(&house.server);
    let mut client = door.knock();
    let head = "GET /api/v1/pods HTTP/1.1\r\nhost: localhost\r\ncontent-length: 1000000\r\n\r\n";
    say(&mut client, head).await;
    let began = Instant::now();
    assert!(all(&mut client).await.starts_with("HTTP/1.1 413"));
    assert!(Instant::now().duration_since(began) < Duration::from_secs(1));
}

#[tokio::test(start_paused = true)]
async fn busy_connections_at_the_limit_keep_their_places_and_one_more_is_closed_and_counted() {
    let house = House::with(two_connections(), Limits::default());
    house.settled().await;
    let mut door = Door::of(&house.server);
    let (mut first, mut second) = (door.knock(), door.knock());
    for watcher in [&mut first, &mut second] {
        say(
            watcher,
            "GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n",
        )
        .await;
    }
    house.wait(1).await;
    let mut third = door.knock();
    assert_eq!(all(&mut third).await, "");
    let tally = house.server.shared.counting.read();
    assert_eq!((tally.open, tally.accepted, tally.refused), (2, 2, 1));
    drop(first);
    door.open.join_next().await.unwrap().unwrap();
    let mut fourth = door.knock();
    say(&mut fourth, PROBE).await;
    assert!(all(&mut fourth).await.contains("200 OK"));
}

#[tokio::test(start_paused = true)]
async fn a_probe_finds_a_place_however_many_are_connected_and_ask_nothing() {
    let house = House::with(two_connections(), Limits::default());
    house.settled().await;
    let mut door = Door::of(&house.server);
    let mut used = door.knock();
    let mut slow = door.knock();
    say(&mut slow, "GET /livez HTTP/1.1\r\nhost: loc").await;
    house.wait(1).await;
    say(&mut used, "GET /livez HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    let mut answer = [0; 4_096];
    assert!(used.read(&mut answer).await.unwrap() > 0);
    house.wait(1).await;

    // The one that has waited longest for a whole head goes first.
    let mut probe = door.knock();
    say(&mut probe, PROBE).await;
    assert!(all(&mut probe).await.contains("200 OK"));
    assert_eq!(all(&mut slow).await, "");
    let (mut one, mut two) = (door.knock(), door.knock());
    house.wait(1).await;
    assert_eq!(all(&mut used).await, "");
    for probe in [&mut one, &mut two] {
        say(probe, PROBE).await;
        assert!(all(probe).await.contains("200 OK"));
    }
    let tally = house.server.shared.counting.read();
    assert_eq!((tally.open, tally.refused), (0, 2));
}

#[tokio::test(start_paused = true)]
async fn a_probe_finds_a_place_while_reads_wait_for_a_runtime_that_hangs() {
    let house = House::evented().await;
    house.runtime.inject(Fault::hang(Rpc::ListPodSandbox));
    let mut door = Door::of(&house.server);
    let ask =
        "GET /api/v1/pods/none?newerThan=now&timeoutSeconds=60 HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut readers = Vec::new();
    for _ in 0..200 {
        let mut reader = door.knock();
        say(&mut reader, ask).await;
        readers.push(reader);
        tokio::task::yield_now().await;
    }
    house.wait(5).await;
    let mut probe = door.knock();
    say(&mut probe, PROBE).await;
    assert!(all(&mut probe).await.contains("200 OK"));
    let mut refused = 0;
    for mut reader in readers {
        refused += usize::from(all(&mut reader).await.contains("TooManyReads"));
    }
    assert!(refused > 0);
}

const PROBE: &str = "GET /livez HTTP/1.0\r\nhost: localhost\r\n\r\n";

fn two_connections() -> HttpLimits {
    HttpLimits {
        connections: 2,
        ..HttpLimits::default()
    }
}

#[tokio::test(start_paused = true)]
async fn a_watcher_that_takes_nothing_is_cut_off_and_the_others_never_notice() {
    let house = House::evented().await;
    let mut door = Door::of(&house.server);
    let ask = "GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let mut stalled = door.knock();
    say(&mut stalled, ask).await;
    let mut other = house.follow(None).await;
    other.snapshot().await;
    for n in 0..200 {
        house.runtime.run_pod("shop", &format!("web-{n}"), &[]);
        assert_eq!(other.told().await, format!("Started web-{n}/sandbox"));
    }
    house.wait(31).await;
    door.open
        .join_next()
        .await
        .expect("it ended")
        .expect("without a panic");
    assert_eq!(house.serving.watchers().len(), 1);
    assert_eq!(house.server.shared.counting.read().open, 0);
}

#[tokio::test(start_paused = true)]
async fn when_the_daemon_stops_watchers_are_sent_away_and_idle_connections_closed() {
    let house = House::evented().await;
    let mut door = Door::of(&house.server);
    let mut watcher = door.knock();
    say(
        &mut watcher,
        "GET /api/v1/events HTTP/1.1\r\nhost: localhost\r\n\r\n",
    )
    .await;
    let mut idle = door.knock();
    house.wait(1).await;
    house.server.stopping.send_replace(true);
    let began = Instant::now();
    let (told, nothing) = tokio::join!(all(&mut watcher), all(&mut idle));
    assert!(told.contains("event: snapshot-begin") && told.ends_with("\r\n0\r\n\r\n"));
    assert_eq!(nothing, "");
    assert!(Instant::now().duration_since(began) < Duration::from_secs(1));
}
