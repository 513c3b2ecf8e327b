//! What async-nats does with the broker.

use crate::world::*;
use async_nats::{Event, HeaderMap, client::RequestErrorKind};
use futures_util::StreamExt;
use std::path::PathBuf;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::time::timeout;

pub async fn messages_arrive_in_their_order() -> Outcome {
    let (publisher, client) = (connect().await?, connect().await?);
    let subject = subject();
    let mut subscriber = client.subscribe(subject.clone()).await?;
    settle(&client).await;
    let expected: Vec<String> = (0..10_000).map(|number| number.to_string()).collect();
    for body in &expected {
        publisher.publish(subject.clone(), body.clone().into()).await?;
    }
    equal(texts(&mut subscriber, expected.len()).await?, expected)?;
    Ok(true)
}

pub async fn wildcards_stand_for_tokens() -> Outcome {
    let client = connect().await?;
    let prefix = subject();
    let mut one = client.subscribe(format!("{prefix}.*.end")).await?;
    let mut many = client.subscribe(format!("{prefix}.>")).await?;
    for ending in [".a.end", ".a.b.end", ".a", ""] {
        client.publish(format!("{prefix}{ending}"), ending.into()).await?;
    }
    equal(texts(&mut one, 1).await?, vec![".a.end".to_string()])?;
    let expected = [".a.end", ".a.b.end", ".a"].map(str::to_string).to_vec();
    equal(texts(&mut many, 3).await?, expected)?;
    silent(&mut one).await?;
    silent(&mut many).await?;
    Ok(true)
}

pub async fn one_of_a_group_gets_each_message() -> Outcome {
    let subject = subject();
    let mut members = Vec::new();
    for _ in 0..3 {
        let client = connect().await?;
        members.push(client.queue_subscribe(subject.clone(), "workers".to_string()).await?);
        settle(&client).await;
    }
    let publisher = connect().await?;
    let mut all = publisher.subscribe(subject.clone()).await?;
    for _ in 0..300 {
        publisher.publish(subject.clone(), "x".into()).await?;
    }
    texts(&mut all, 300).await?;
    let mut counts = Vec::new();
    for member in &mut members {
        let mut count = 0;
        while tokio::time::timeout(SILENCE, member.next()).await.is_ok() {
            count += 1;
        }
        counts.push(count);
    }
    equal(counts.iter().sum::<usize>(), 300)?;
    if counts.contains(&0) { Err(format!("unfair: {counts:?}").into()) } else { Ok(true) }
}

pub async fn headers_pass_as_they_are() -> Outcome {
    let client = connect().await?;
    let subject = subject();
    let mut subscriber = client.subscribe(subject.clone()).await?;
    let mut headers = HeaderMap::new();
    headers.append("Several", "a");
    headers.append("Several", "b");
    headers.insert("One", "ä");
    client.publish_with_headers(subject, headers.clone(), "hi".into()).await?;
    let message = next(&mut subscriber).await?;
    equal(message.headers, Some(headers))?;
    Ok(true)
}

pub async fn payloads_of_all_sizes() -> Outcome {
    let client = connect().await?;
    let subject = subject();
    let mut subscriber = client.subscribe(subject.clone()).await?;
    for size in [0, 1, 65_535, 65_536, 400_000, client.server_info().max_payload] {
        let body = vec![size as u8; size];
        client.publish(subject.clone(), body.clone().into()).await?;
        let message = next(&mut subscriber).await?;
        if message.payload != body {
            return Err(format!("{size} bytes came back as {}", message.payload.len()).into());
        }
    }
    Ok(true)
}

pub async fn a_subscription_ends_after_so_many_messages() -> Outcome {
    let client = connect().await?;
    let subject = subject();
    let mut subscriber = client.subscribe(subject.clone()).await?;
    subscriber.unsubscribe_after(2).await?;
    for body in ["1", "2", "3"] {
        client.publish(subject.clone(), body.into()).await?;
    }
    let mut got = Vec::new();
    while let Ok(Some(message)) = tokio::time::timeout(PATIENCE, subscriber.next()).await {
        got.push(message.payload);
    }
    equal(got, vec!["1".into(), "2".into()])?;
    Ok(true)
}

pub async fn requests_are_answered() -> Outcome {
    let (service, client) = (connect().await?, connect().await?);
    let subject = subject();
    let mut asked = service.subscribe(subject.clone()).await?;
    settle(&service).await;
    let answering = tokio::spawn(async move {
        while let Some(message) = asked.next().await {
            let Some(reply) = message.reply else { continue };
            let body = [&message.payload[..], b"!"].concat();
            if service.publish(reply, body.into()).await.is_err() {
                break;
            }
        }
    });
    for number in 0..300 {
        let answer = client.request(subject.clone(), number.to_string().into()).await?;
        equal(answer.payload, format!("{number}!").into())?;
    }
    answering.abort();
    Ok(true)
}

pub async fn nobody_there_is_told_at_once() -> Outcome {
    let client = connect().await?;
    match client.request(subject(), "?".into()).await {
        Err(error) if error.kind() == RequestErrorKind::NoResponders => Ok(true),
        other => Err(format!("nobody is there: {other:?}").into()),
    }
}

/// What a server without streams says of them.
pub async fn streams_are_declined() -> Outcome {
    let client = connect().await?;
    match client.request("$JS.API.INFO", "".into()).await {
        Err(error) if error.kind() == RequestErrorKind::NoResponders => Ok(true),
        other => Err(format!("there are streams: {other:?}").into()),
    }
}

pub async fn the_server_says_what_it_is() -> Outcome {
    let client = connect().await?;
    let info = client.server_info();
    equal((info.proto, info.headers, info.max_payload), (1, true, 1 << 20))?;
    Ok(true)
}

pub async fn draining_handles_what_has_arrived() -> Outcome {
    let (publisher, client) = (connect().await?, connect().await?);
    let subject = subject();
    let mut subscriber = client.subscribe(subject.clone()).await?;
    settle(&client).await;
    for _ in 0..500 {
        publisher.publish(subject.clone(), "x".into()).await?;
    }
    settle(&publisher).await;
    client.drain().await?;
    let mut seen = 0;
    while let Ok(Some(_)) = tokio::time::timeout(PATIENCE, subscriber.next()).await {
        seen += 1;
    }
    equal(seen, 500)?;
    Ok(true)
}

pub async fn a_client_that_lost_its_connection_comes_back() -> Outcome {
    let relay = Relay::open().await?;
    let (told, mut connected) = mpsc::unbounded_channel();
    let tell = move |event| {
        let told = told.clone();
        async move {
            if matches!(event, Event::Connected) {
                // The case may have ended.
                let _ = told.send(());
            }
        }
    };
    let soon = |_| Duration::from_millis(20);
    let options = options().event_callback(tell).reconnect_delay_callback(soon);
    let client = options.connect(relay.url()).await?;
    let publisher = connect().await?;
    let subject = subject();
    let mut subscriber = client.subscribe(subject.clone()).await?;
    for number in 0..4 {
        timeout(PATIENCE, connected.recv()).await.map_err(|_| "does not come back")?;
        settle(&client).await;
        publisher.publish(subject.clone(), number.to_string().into()).await?;
        equal(texts(&mut subscriber, 1).await?, vec![number.to_string()])?;
        relay.cut();
    }
    Ok(true)
}

pub async fn a_wrong_password_is_refused() -> Outcome {
    let wrong = options().user_and_password("guest".into(), "wrong".into());
    let Err(error) = wrong.connect(url()).await else { return Err("was let in".into()) };
    if !error.to_string().to_lowercase().contains("authorization") {
        return Err(format!("told {error}").into());
    }
    options().user_and_password("guest".into(), "guest".into()).connect(url()).await?;
    Ok(true)
}

pub async fn an_nkey_signs_the_nonce() -> Outcome {
    if std::env::var("BROKER_TEST_PROGRAM").is_err() {
        return Ok(false);
    }
    // The key of the seed, made for this test.
    let seed = "SUAAOCAJBIFQYDIOB4IBCEQTCQKRMFYYDENBWHA5DYPSAIJCEMSCKJR2OM";
    let key = "UAANAWQ5D2RFCOLNKV5PXVCYRM6G3GO35OLS73IQUMSWF2RG3TOPUNZ4";
    administer(&["user", "add", key, "--no-password"])?;
    administer(&["permission", "set", key])?;
    // A broker with the default user alone takes whatever is offered.
    administer(&["user", "add", "another", "--no-password"])?;
    let client = options().nkey(seed.into()).connect(url()).await?;
    client.flush().await?;
    administer(&["user", "delete", key])?;
    if options().nkey(seed.into()).connect(url()).await.is_ok() {
        return Err("a deleted user was let in".into());
    }
    administer(&["user", "delete", "another"])?;
    Ok(true)
}

pub async fn rights_are_checked() -> Outcome {
    if std::env::var("BROKER_TEST_PROGRAM").is_err() {
        return Ok(false);
    }
    let root = subject();
    // The key of the seed, made for this test.
    let seed = "SUAAOCAJBIFQYDIOB4IBCEQTCQKRMFYYDENBWHA5DYPSAIJCEMSCKJR2OM";
    let key = "UAANAWQ5D2RFCOLNKV5PXVCYRM6G3GO35OLS73IQUMSWF2RG3TOPUNZ4";
    administer(&["user", "add", key, "--no-password"])?;
    administer(&["permission", "set", key])?;
    let open = format!("{root}.open.>");
    let publish = format!("{open},$SYS.REQ.USER.INFO");
    let subscribe = format!("{open},_INBOX.>");
    administer(&["permission", "subjects", key, "--publish", &publish, "--subscribe", &subscribe])?;
    let (told, mut denied) = mpsc::unbounded_channel();
    let tell = move |event: Event| {
        let told = told.clone();
        async move {
            // The case may have ended.
            let _ = told.send(event.to_string());
        }
    };
    let client = options().nkey(seed.into()).event_callback(tell).connect(url()).await?;
    let mut subscriber = client.subscribe(format!("{root}.open.a")).await?;
    client.publish(format!("{root}.secret"), "x".into()).await?;
    let refusal = loop {
        let event = timeout(PATIENCE, denied.recv()).await.map_err(|_| "was not told")?;
        let event = event.ok_or("the client has ended")?;
        if event.to_lowercase().contains("permissions violation") {
            break event;
        }
    };
    equal(refusal.contains(&format!("{root}.secret")), true)?;
    client.publish(format!("{root}.open.a"), "y".into()).await?;
    equal(texts(&mut subscriber, 1).await?, vec!["y".to_string()])?;
    // The server answers wherever the client listens.
    let answer = client.request("$SYS.REQ.USER.INFO", "".into()).await?;
    let answer = std::str::from_utf8(&answer.payload)?;
    let publish = format!(r#""publish":{{"allow":["{open}","$SYS.REQ.USER.INFO"]}}"#);
    let subscribe = format!(r#""subscribe":{{"allow":["{open}","_INBOX.>"]}}"#);
    let permissions = format!(r#""permissions":{{{publish},{subscribe}}}"#);
    equal((answer.contains(key), answer.contains(&permissions)), (true, true))?;
    administer(&["user", "delete", key])?;
    Ok(true)
}

fn authority() -> Option<PathBuf> {
    let folder = std::env::var("BROKER_TEST_CERTIFICATES").ok()?;
    Some(PathBuf::from(folder).join("authority.pem"))
}

async fn round_trip(client: &async_nats::Client) -> Outcome {
    let subject = subject();
    let mut subscriber = client.subscribe(subject.clone()).await?;
    let body = "more than one record ".repeat(10_000);
    client.publish(subject, body.clone().into()).await?;
    equal(next(&mut subscriber).await?.payload, body.into())?;
    Ok(true)
}

pub async fn tls_begins_after_info() -> Outcome {
    let Some(authority) = authority() else { return Ok(false) };
    let secure = options().add_root_certificates(authority).require_tls(true);
    let address = url().replace("nats://", "tls://").replace("127.0.0.1", "localhost");
    round_trip(&secure.connect(address).await?).await
}

pub async fn tls_begins_before_info() -> Outcome {
    let port = std::env::var("BROKER_TEST_NATS_TLS_PORT");
    let (Some(authority), Ok(port)) = (authority(), port) else { return Ok(false) };
    let secure = options().add_root_certificates(authority).require_tls(true).tls_first();
    round_trip(&secure.connect(format!("tls://localhost:{port}")).await?).await
}

pub async fn a_broker_of_another_authority_is_not_trusted() -> Outcome {
    let Ok(port) = std::env::var("BROKER_TEST_NATS_TLS_PORT") else { return Ok(false) };
    let secure = options().require_tls(true).tls_first();
    match secure.connect(format!("tls://localhost:{port}")).await {
        Err(_) => Ok(true),
        Ok(_) => Err("was trusted".into()),
    }
}
