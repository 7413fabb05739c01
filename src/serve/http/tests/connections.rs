//! What one client may cost: slow ones, large ones, many of them, and ones that take nothing.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio::task::JoinSet;
use tokio::time::Instant;

use super::house::House;
use crate::serve::Limits;
use crate::serve::http::connections::Taking;
use crate::serve::http::{HttpLimits, HttpServer};

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
async fn connections_beyond_the_limit_are_closed_at_once_and_counted() {
    let limits = HttpLimits {
        connections: 2,
        ..HttpLimits::default()
    };
    let house = House::with(limits, Limits::default());
    house.settled().await;
    let mut door = Door::of(&house.server);
    let (first, _second, mut third) = (door.knock(), door.knock(), door.knock());
    assert_eq!(all(&mut third).await, "");
    let tally = house.server.shared.counting.read();
    assert_eq!((tally.open, tally.accepted, tally.refused), (2, 2, 1));
    drop(first);
    door.open.join_next().await.unwrap().unwrap();
    let mut fourth = door.knock();
    say(
        &mut fourth,
        "GET /livez HTTP/1.0\r\nhost: localhost\r\n\r\n",
    )
    .await;
    assert!(all(&mut fourth).await.contains("200 OK"));
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
