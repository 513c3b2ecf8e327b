//! What is refused, as lapin shows it.

use crate::world::{Outcome, World, name, same, url};
use lapin::options::{BasicGetOptions, QueueDeclareOptions};
use lapin::types::FieldTable;
use lapin::{Connection, ConnectionProperties, Error, ErrorKind};

fn code(error: &Error) -> u16 {
    match error.kind() {
        ErrorKind::ProtocolError(refusal) => refusal.get_id(),
        _ => 0,
    }
}

pub async fn a_missing_queue_is_404_and_ends_only_its_channel(world: &mut World) -> Outcome {
    let channel = world.channel().await?;
    let got = channel.basic_get(name().as_str().into(), BasicGetOptions::default()).await;
    same(404, got.err().as_ref().map_or(0, code), "reply code")?;
    let next = world.sibling().await?;
    next.close(200, "done".into()).await?;
    Ok(())
}

pub async fn another_declaration_of_the_same_name_is_406(world: &mut World) -> Outcome {
    let channel = world.channel().await?;
    let queue = world.queue(&channel, false).await?;
    let options = QueueDeclareOptions { durable: true, ..QueueDeclareOptions::default() };
    let declared =
        channel.queue_declare(queue.as_str().into(), options, FieldTable::default()).await;
    same(406, declared.err().as_ref().map_or(0, code), "reply code")
}

pub async fn a_wrong_password_is_refused(_: &mut World) -> Outcome {
    let url = url().replacen("guest:guest", "guest:wrong", 1);
    match Connection::connect(&url, ConnectionProperties::default()).await {
        Ok(_) => Err("was let in".into()),
        Err(error) => same(403, code(&error), "reply code"),
    }
}
