"""Direct reply-to: an answer without a reply queue."""

import pika
from cases import case
from harness import Inbox, publish, refused
from pika.exceptions import ChannelClosedByBroker, UnroutableError

DIRECT = "amq.rabbitmq.reply-to"


@case()
def an_answer_comes_back(world):
    asker, answerer = world.channel(), world.channel()
    requests = world.queue(answerer)
    server = Inbox(answerer, requests, auto_ack=True)
    answers = Inbox(asker, DIRECT, auto_ack=True)
    publish(asker, requests, b"question", reply_to=DIRECT, correlation_id="1")
    [(_, properties, _)] = server.wait(1)
    assert properties.reply_to.startswith(DIRECT + "."), f"{properties.reply_to}"
    answer = pika.BasicProperties(correlation_id=properties.correlation_id)
    answerer.basic_publish("", properties.reply_to, b"answer", answer)
    [(method, properties, body)] = answers.wait(1)
    assert body == b"answer" and properties.correlation_id == "1"
    assert method.exchange == ""


@case()
def many_answers_keep_their_order(world):
    asker, answerer = world.channel(), world.channel()
    requests = world.queue(answerer)
    server = Inbox(answerer, requests, auto_ack=True)
    answers = Inbox(asker, DIRECT, auto_ack=True)
    publish(asker, requests, *[b"%d" % number for number in range(100)], reply_to=DIRECT)
    for _, properties, body in server.wait(100):
        publish(answerer, properties.reply_to, body)
    answers.wait(100)
    assert answers.bodies() == [b"%d" % number for number in range(100)]


@case()
def the_consumer_must_be_auto_ack(world):
    channel = world.channel()
    refused(406, ChannelClosedByBroker, lambda: Inbox(channel, DIRECT))


@case()
def without_a_consumer_a_request_is_refused(world):
    channel = world.channel(confirms=True)
    queue = world.queue(channel)
    refused(406, ChannelClosedByBroker, lambda: publish(channel, queue, b"x", reply_to=DIRECT))


@case()
def an_answer_to_someone_gone_is_unroutable(world):
    asker, answerer = world.channel(), world.channel(confirms=True)
    requests = world.queue(answerer)
    server = Inbox(answerer, requests, auto_ack=True)
    Inbox(asker, DIRECT, auto_ack=True)
    publish(asker, requests, b"question", reply_to=DIRECT)
    [(_, properties, _)] = server.wait(1)
    asker.connection.close()
    try:
        for _ in range(100):
            answerer.basic_publish("", properties.reply_to, b"answer", mandatory=True)
    except UnroutableError:
        return
    raise AssertionError("an answer to nobody was routed")
