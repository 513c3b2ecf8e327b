//! The plain way with lapin.

use crate::world::{Outcome, World, name, next, same};
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicGetOptions, BasicNackOptions, BasicPublishOptions,
    BasicQosOptions, BasicRejectOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{BasicProperties, Channel, Confirmation};
use std::error::Error;

async fn publish(
    channel: &Channel,
    queue: &str,
    body: &[u8],
) -> Result<Confirmation, Box<dyn Error>> {
    let properties = BasicProperties::default().with_delivery_mode(2);
    let options = BasicPublishOptions { mandatory: true, ..BasicPublishOptions::default() };
    Ok(channel.basic_publish("".into(), queue.into(), options, body, properties).await?.await?)
}

async fn get(
    channel: &Channel,
    queue: &str,
) -> Result<Option<(u64, bool, Vec<u8>)>, Box<dyn Error>> {
    let got = channel.basic_get(queue.into(), BasicGetOptions::default()).await?;
    Ok(got.map(|got| (got.delivery.delivery_tag, got.delivery.redelivered, got.delivery.data)))
}

pub async fn what_is_published_is_got(world: &mut World) -> Outcome {
    let channel = world.confirming().await?;
    let queue = world.queue(&channel, false).await?;
    same(Confirmation::Ack(None), publish(&channel, &queue, b"hello").await?, "confirm")?;
    same(Some((1, false, b"hello".to_vec())), get(&channel, &queue).await?, "message")?;
    channel.basic_ack(1, BasicAckOptions::default()).await?;
    same(None, get(&channel, &queue).await?, "message")
}

pub async fn persistent_messages_are_confirmed(world: &mut World) -> Outcome {
    let channel = world.confirming().await?;
    let queue = world.queue(&channel, true).await?;
    let mut confirms = Vec::new();
    for _ in 0..500 {
        let properties = BasicProperties::default().with_delivery_mode(2);
        let options = BasicPublishOptions::default();
        let queue = queue.as_str().into();
        confirms.push(channel.basic_publish("".into(), queue, options, b"x", properties).await?);
    }
    for confirm in confirms {
        same(Confirmation::Ack(None), confirm.await?, "confirm")?;
    }
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let found =
        channel.queue_declare(queue.as_str().into(), options, FieldTable::default()).await?;
    same(500, found.message_count(), "messages")
}

pub async fn messages_are_consumed_in_order_and_acked(world: &mut World) -> Outcome {
    let channel = world.confirming().await?;
    let queue = world.queue(&channel, false).await?;
    let options = BasicConsumeOptions::default();
    let name = queue.as_str().into();
    let mut consumer =
        channel.basic_consume(name, "".into(), options, FieldTable::default()).await?;
    for number in 0..100u8 {
        publish(&channel, &queue, &[number]).await?;
    }
    for number in 0..100u8 {
        let delivery = next(&mut consumer).await?;
        same(vec![number], delivery.data.clone(), "body")?;
        delivery.ack(BasicAckOptions::default()).await?;
    }
    Ok(())
}

pub async fn nack_requeues_and_reject_discards(world: &mut World) -> Outcome {
    let channel = world.confirming().await?;
    let queue = world.queue(&channel, false).await?;
    publish(&channel, &queue, b"a").await?;
    publish(&channel, &queue, b"b").await?;
    get(&channel, &queue).await?;
    get(&channel, &queue).await?;
    channel.basic_reject(2, BasicRejectOptions { requeue: false }).await?;
    channel.basic_nack(1, BasicNackOptions { multiple: false, requeue: true }).await?;
    same(Some((3, true, b"a".to_vec())), get(&channel, &queue).await?, "message")?;
    same(None, get(&channel, &queue).await?, "message")
}

pub async fn prefetch_bounds_what_is_unsettled(world: &mut World) -> Outcome {
    let channel = world.confirming().await?;
    let queue = world.queue(&channel, false).await?;
    for number in 0..5u8 {
        publish(&channel, &queue, &[number]).await?;
    }
    channel.basic_qos(2, BasicQosOptions::default()).await?;
    let options = BasicConsumeOptions::default();
    let name = queue.as_str().into();
    let mut consumer =
        channel.basic_consume(name, "".into(), options, FieldTable::default()).await?;
    next(&mut consumer).await?;
    let second = next(&mut consumer).await?;
    let options = QueueDeclareOptions { passive: true, ..QueueDeclareOptions::default() };
    let found =
        channel.queue_declare(queue.as_str().into(), options, FieldTable::default()).await?;
    same(3, found.message_count(), "messages left")?;
    second.ack(BasicAckOptions { multiple: true }).await?;
    same(vec![2], next(&mut consumer).await?.data, "body")
}

pub async fn an_unroutable_mandatory_message_is_returned(world: &mut World) -> Outcome {
    let channel = world.confirming().await?;
    match publish(&channel, &name(), b"nobody").await? {
        Confirmation::Ack(Some(returned)) => {
            same(312, returned.reply_code, "code")?;
            same(b"nobody".to_vec(), returned.delivery.data.clone(), "body")
        }
        other => Err(format!("not returned: {other:?}").into()),
    }
}

pub async fn a_transaction_commits(world: &mut World) -> Outcome {
    let channel = world.channel().await?;
    let queue = world.queue(&channel, true).await?;
    channel.tx_select().await?;
    publish(&channel, &queue, b"x").await?;
    channel.tx_commit().await?;
    same(Some((1, false, b"x".to_vec())), get(&channel, &queue).await?, "message")
}

pub async fn a_body_of_a_megabyte_passes(world: &mut World) -> Outcome {
    let channel = world.confirming().await?;
    let queue = world.queue(&channel, false).await?;
    let body: Vec<u8> = (0..1 << 20).map(|index: u32| (index % 251) as u8).collect();
    publish(&channel, &queue, &body).await?;
    let (_, _, got) = get(&channel, &queue).await?.ok_or("nothing was got")?;
    same(true, body == got, "the same body")
}
