//! Transactions, of a controller on one session and work on any.

use crate::world::{Outcome, connect, name, quiet, same, send, take};
use fe2o3_amqp::transaction::{
    Controller, Transaction, TransactionDischarge, TransactionPosting, TransactionRetirement,
};
use fe2o3_amqp::{Receiver, Sender};

pub(crate) async fn sends_show_at_the_commit() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    let mut sender = client.sender(&queue).await?;
    let mut receiver = client.receiver(&queue).await?;
    let controller = Controller::attach(&mut client.session, name()).await?;
    let transaction = Transaction::declare(&controller, None).await?;
    transaction.post(&mut sender, "1".to_string()).await?;
    transaction.post(&mut sender, "2".to_string()).await?;
    quiet(&mut receiver).await?;
    transaction.commit().await?;
    same(take(&mut receiver, 2).await?, ["1", "2"])?;
    let transaction = Transaction::declare(&controller, None).await?;
    transaction.post(&mut sender, "never".to_string()).await?;
    transaction.rollback().await?;
    quiet(&mut receiver).await
}

pub(crate) async fn takes_come_back_after_a_rollback() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    send(&mut client.sender(&queue).await?, &["1", "2"]).await?;
    let controller = Controller::attach(&mut client.session, name()).await?;
    let mut receiver = client.receiver(&queue).await?;
    let first = receiver.recv::<String>().await?;
    let transaction = Transaction::declare(&controller, None).await?;
    transaction.accept(&mut receiver, &first).await?;
    transaction.rollback().await?;
    receiver.close().await?;
    let mut receiver = client.receiver(&queue).await?;
    let first = receiver.recv::<String>().await?;
    let count = first.message().header.as_ref().map_or(0, |header| header.delivery_count);
    same((first.body().as_str(), count), ("1", 1))?;
    let transaction = Transaction::declare(&controller, None).await?;
    transaction.accept(&mut receiver, &first).await?;
    transaction.commit().await?;
    receiver.close().await?;
    let mut receiver = client.receiver(&queue).await?;
    same(take(&mut receiver, 1).await?, ["2"])?;
    quiet(&mut receiver).await
}

pub(crate) async fn a_transaction_over_two_sessions() -> Outcome {
    let mut client = connect().await?;
    let (first, second) = (name(), name());
    let mut other = client.another_session().await?;
    let mut here = client.sender(&first).await?;
    let mut there = Sender::attach(&mut other, name(), second.as_str()).await?;
    let controller = Controller::attach(&mut client.session, name()).await?;
    let transaction = Transaction::declare(&controller, None).await?;
    transaction.post(&mut here, "here".to_string()).await?;
    transaction.post(&mut there, "there".to_string()).await?;
    let mut of_here = client.receiver(&first).await?;
    let mut of_there = Receiver::attach(&mut other, name(), second.as_str()).await?;
    quiet(&mut of_here).await?;
    transaction.commit().await?;
    same(take(&mut of_here, 1).await?, ["here"])?;
    same(take(&mut of_there, 1).await?, ["there"])
}

pub(crate) async fn two_transactions_at_a_time() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    let mut sender = client.sender(&queue).await?;
    let first = Controller::attach(&mut client.session, name()).await?;
    let second = Controller::attach(&mut client.session, name()).await?;
    let one = Transaction::declare(&first, None).await?;
    let two = Transaction::declare(&second, None).await?;
    one.post(&mut sender, "of the first".to_string()).await?;
    two.post(&mut sender, "of the second".to_string()).await?;
    two.commit().await?;
    let mut receiver = client.receiver(&queue).await?;
    same(take(&mut receiver, 1).await?, ["of the second"])?;
    quiet(&mut receiver).await?;
    one.commit().await?;
    same(take(&mut receiver, 1).await?, ["of the first"])
}

pub(crate) async fn plain_work_beside() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    let mut sender = client.sender(&queue).await?;
    let controller = Controller::attach(&mut client.session, name()).await?;
    let transaction = Transaction::declare(&controller, None).await?;
    transaction.post(&mut sender, "in it".to_string()).await?;
    send(&mut sender, &["beside it"]).await?;
    let mut receiver = client.receiver(&queue).await?;
    same(take(&mut receiver, 1).await?, ["beside it"])?;
    transaction.rollback().await?;
    quiet(&mut receiver).await
}

pub(crate) async fn a_lost_controller_undoes() -> Outcome {
    let mut client = connect().await?;
    let queue = name();
    let mut lost = connect().await?;
    let mut sender = lost.sender(&queue).await?;
    let controller = Controller::attach(&mut lost.session, name()).await?;
    let transaction = Transaction::declare(&controller, None).await?;
    transaction.post(&mut sender, "never".to_string()).await?;
    lost.connection.close().await?;
    drop(transaction);
    quiet(&mut client.receiver(&queue).await?).await
}
