//! Messages, credit and links.

use crate::world::{Failure, Outcome, PATIENCE, connect, name, quiet, same, send, take};
use fe2o3_amqp::link::receiver::CreditMode;
use fe2o3_amqp::types::definitions::ReceiverSettleMode;
use fe2o3_amqp::types::messaging::{
    ApplicationProperties, Header, Message, MessageAnnotations, Modified, Properties,
};
use fe2o3_amqp::types::primitives::Value;
use fe2o3_amqp::{Delivery, Receiver, Sender};
use tokio::time::timeout;

async fn next(receiver: &mut Receiver) -> Result<Delivery<String>, Failure> {
    Ok(timeout(PATIENCE, receiver.recv::<String>())
        .await
        .map_err(|_| "waited in vain for a message")??)
}

fn count(delivery: &Delivery<String>) -> u32 {
    delivery.message().header.as_ref().map_or(0, |header| header.delivery_count)
}

pub(crate) async fn a_message_arrives_as_it_was_sent() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    let mut sender = client.sender(&queue).await?;
    let message = Message::builder()
        .header(Header { durable: true, priority: 7.into(), ..Header::default() })
        .message_annotations(MessageAnnotations::builder().insert("x-opt-own", 5i32).build())
        .properties(
            Properties::builder().subject("s").message_id(7u64).group_id("g".to_string()).build(),
        )
        .application_properties(
            ApplicationProperties::builder()
                .insert("int", -1i32)
                .insert("text", "t")
                .insert("flag", true)
                .build(),
        )
        .value("body".to_string())
        .build();
    sender.send(message).await?.accepted_or("not accepted")?;
    let mut receiver = client.receiver(&queue).await?;
    let got = next(&mut receiver).await?;
    same(got.body(), &"body".to_string())?;
    let found = got.message();
    let header = found.header.as_ref().ok_or("no header")?;
    same((header.durable, header.priority.0, header.delivery_count), (true, 7, 0))?;
    let properties = found.properties.as_ref().ok_or("no properties")?;
    same(properties.subject.as_deref(), Some("s"))?;
    same(properties.message_id.clone(), Some(7u64.into()))?;
    same(properties.group_id.as_deref(), Some("g"))?;
    let own = &found.application_properties.as_ref().ok_or("no application properties")?.0;
    same(own.get("int").map(|it| Value::from(it.clone())), Some(Value::Int(-1)))?;
    same(own.get("flag").map(|it| Value::from(it.clone())), Some(Value::Bool(true)))?;
    receiver.accept(&got).await?;
    Ok(())
}

pub(crate) async fn outcomes() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    send(&mut client.sender(&queue).await?, &["x", "y"]).await?;
    let mut receiver = Receiver::builder()
        .name(name())
        .source(queue.as_str())
        .credit_mode(CreditMode::Auto(1))
        .attach(&mut client.session)
        .await?;
    let first = next(&mut receiver).await?;
    receiver.release(&first).await?;
    let again = next(&mut receiver).await?;
    same((again.body().as_str(), count(&again)), ("x", 0))?;
    let failed = Modified {
        delivery_failed: Some(true),
        undeliverable_here: None,
        message_annotations: None,
    };
    receiver.modify(&again, failed).await?;
    let again = next(&mut receiver).await?;
    same((again.body().as_str(), count(&again)), ("x", 1))?;
    receiver.reject(&again, None).await?;
    same(take(&mut receiver, 1).await?, ["y"])?;
    quiet(&mut receiver).await
}

pub(crate) async fn credit_and_draining() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    send(&mut client.sender(&queue).await?, &["1", "2", "3"]).await?;
    let mut receiver = Receiver::builder()
        .name(name())
        .source(queue.as_str())
        .credit_mode(CreditMode::Manual)
        .attach(&mut client.session)
        .await?;
    quiet(&mut receiver).await?;
    receiver.set_credit(2).await?;
    same(take(&mut receiver, 2).await?, ["1", "2"])?;
    quiet(&mut receiver).await?;
    receiver.set_credit(10).await?;
    same(take(&mut receiver, 1).await?, ["3"])?;
    receiver.drain().await?;
    send(&mut client.sender(&queue).await?, &["4"]).await?;
    quiet(&mut receiver).await?;
    receiver.set_credit(1).await?;
    same(take(&mut receiver, 1).await?, ["4"])
}

pub(crate) async fn settlement_in_two_steps() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    send(&mut client.sender(&queue).await?, &["x"]).await?;
    let mut receiver = Receiver::builder()
        .name(name())
        .source(queue.as_str())
        .receiver_settle_mode(ReceiverSettleMode::Second)
        .attach(&mut client.session)
        .await?;
    same(take(&mut receiver, 1).await?, ["x"])?;
    receiver.close().await?;
    quiet(&mut client.receiver(&queue).await?).await
}

pub(crate) async fn a_large_message() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    let text = "large ".repeat(300_000);
    send(&mut client.sender(&queue).await?, &[&text]).await?;
    let got = take(&mut client.receiver(&queue).await?, 1).await?;
    if got[0] == text { Ok(()) } else { Err("the body has changed".into()) }
}

pub(crate) async fn a_sender_is_resumed() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    let mut sender = Sender::attach(&mut client.session, "resumed", queue.as_str()).await?;
    send(&mut sender, &["1"]).await?;
    let detached = sender.detach().await.map_err(|(_, error)| error)?;
    let mut sender = detached.resume().await?;
    send(&mut sender, &["2"]).await?;
    same(take(&mut client.receiver(&queue).await?, 2).await?, ["1", "2"])
}

pub(crate) async fn a_receiver_is_resumed() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    let mut receiver = Receiver::attach(&mut client.session, "resumed", queue.as_str()).await?;
    let mut sender = client.sender(&queue).await?;
    send(&mut sender, &["1"]).await?;
    same(take(&mut receiver, 1).await?, ["1"])?;
    let detached = receiver.detach().await.map_err(|(_, error)| error)?;
    send(&mut sender, &["2"]).await?;
    let resumed = detached.resume().await?;
    let mut receiver = resumed.into_receiver();
    same(take(&mut receiver, 1).await?, ["2"])
}

pub(crate) async fn an_unknown_exchange_is_refused() -> Outcome {
    let mut client = connect().await?;
    let unknown = format!("/exchanges/{}/key", name());
    if client.sender(&unknown).await.is_ok() {
        return Err("it was taken".into());
    }
    Ok(())
}
