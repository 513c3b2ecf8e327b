"""MQTT beside AMQP 0-9-1."""

import pika
from cases import PATIENCE_S, case
from harness import properties


@case(ours=True)
def messages_of_amqp_reach_mqtt(world):
    channel, client, topic = world.channel(), world.connect(), world.name()
    client.subscribe(f"{topic}/+", 1)
    sent = pika.BasicProperties(
        content_type="text/plain",
        correlation_id="c",
        reply_to="answers",
        delivery_mode=2,
        headers={"colour": "red"},
    )
    channel.basic_publish("amq.topic", f"{topic}.x", b"hello", sent)
    got = client.message()
    assert (got.topic, got.payload, got.qos) == (f"{topic}/x", b"hello", 1)
    assert (got.properties.ContentType, got.properties.CorrelationData) == ("text/plain", b"c")
    assert got.properties.ResponseTopic == "$QUEUE/answers"
    assert ("colour", "red") in got.properties.UserProperty


@case(ours=True)
def messages_of_mqtt_reach_amqp(world):
    channel, client, topic = world.channel(), world.connect(), world.name()
    queue = channel.queue_declare("", exclusive=True).method.queue
    channel.queue_bind(queue, "amq.topic", f"{topic}.#")
    red = ("colour", "red")
    sent = properties("PUBLISH", ContentType="text/plain", CorrelationData=b"c", UserProperty=red)
    client.publish(f"{topic}/a/b", "hello", 1, properties=sent)
    for method, got, body in channel.consume(queue, auto_ack=True, inactivity_timeout=PATIENCE_S):
        assert (method.routing_key, body) == (f"{topic}.a.b", b"hello")
        assert (got.content_type, got.correlation_id, got.delivery_mode) == ("text/plain", "c", 2)
        assert got.headers == {"colour": "red"}
        break
    channel.cancel()
