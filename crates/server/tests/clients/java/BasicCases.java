import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.MessageProperties;
import java.util.Map;
import java.util.concurrent.BlockingQueue;

/** The plain way: connect, declare, publish with confirms, get, consume, settle, close. */
final class BasicCases {
    private BasicCases() {}

    static void register(Suite<World> suite) {
        suite.add("what is published is got", BasicCases::publishAndGet);
        suite.add("persistent messages are confirmed", BasicCases::confirms);
        suite.add("messages are consumed in order and acked", BasicCases::consume);
        suite.add("nack requeues, reject discards", BasicCases::nack);
        suite.add("what is not acked returns when the channel closes", BasicCases::requeueOnClose);
        suite.add("prefetch bounds what is unsettled", BasicCases::prefetch);
        suite.add("capabilities are announced", BasicCases::capabilities);
        suite.add("a channel can be closed and opened a thousand times", BasicCases::channels);
    }

    private static void publishAndGet(World world) throws Exception {
        Channel channel = world.channel();
        String queue = world.queue(channel);
        World.send(channel, queue, "hello", MessageProperties.TEXT_PLAIN);
        GetResponse response = World.get(channel, queue, false);
        Suite.same("hello", World.text(response.getBody()), "body");
        Suite.same("text/plain", response.getProps().getContentType(), "content type");
        Suite.same(0, response.getMessageCount(), "messages left");
        channel.basicAck(response.getEnvelope().getDeliveryTag(), false);
        Suite.check(channel.basicGet(queue, true) == null, "the queue is not empty");
    }

    private static void confirms(World world) throws Exception {
        Channel channel = world.confirming();
        String queue = world.queue(channel, true, Map.of());
        for (int number = 0; number < 500; number++) {
            World.send(channel, queue, "" + number, MessageProperties.PERSISTENT_TEXT_PLAIN);
        }
        channel.waitForConfirmsOrDie(Suite.PATIENCE_MS);
        Suite.same(500, channel.queueDeclarePassive(queue).getMessageCount(), "messages");
    }

    private static void consume(World world) throws Exception {
        Channel channel = world.confirming();
        String queue = world.queue(channel);
        BlockingQueue<Delivery> got = World.consume(channel, queue, false);
        for (int number = 0; number < 100; number++) {
            World.send(channel, queue, "" + number, null);
        }
        for (int number = 0; number < 100; number++) {
            Delivery delivery = Suite.take(got, "message " + number);
            Suite.same("" + number, World.text(delivery.getBody()), "body");
            channel.basicAck(delivery.getEnvelope().getDeliveryTag(), false);
        }
        channel.close();
        Suite.same(0, world.channel().queueDeclarePassive(queue).getMessageCount(), "messages");
    }

    private static void nack(World world) throws Exception {
        Channel channel = world.channel();
        String queue = world.queue(channel);
        World.send(channel, queue, "a", null);
        World.send(channel, queue, "b", null);
        long first = World.get(channel, queue, false).getEnvelope().getDeliveryTag();
        long second = World.get(channel, queue, false).getEnvelope().getDeliveryTag();
        channel.basicReject(second, false);
        channel.basicNack(first, false, true);
        GetResponse again = World.get(channel, queue, true);
        Suite.same("a", World.text(again.getBody()), "body");
        Suite.check(again.getEnvelope().isRedeliver(), "not marked as redelivered");
        Suite.check(channel.basicGet(queue, true) == null, "the queue is not empty");
    }

    private static void requeueOnClose(World world) throws Exception {
        Connection connection = world.connect();
        Channel channel = connection.createChannel();
        String queue = world.queue(channel);
        World.send(channel, queue, "a", null);
        World.get(channel, queue, false);
        channel.close();
        GetResponse again = World.get(connection.createChannel(), queue, true);
        Suite.check(again.getEnvelope().isRedeliver(), "not marked as redelivered");
    }

    private static void prefetch(World world) throws Exception {
        Channel channel = world.confirming();
        String queue = world.queue(channel);
        for (int number = 0; number < 10; number++) {
            World.send(channel, queue, "" + number, null);
        }
        channel.waitForConfirmsOrDie(Suite.PATIENCE_MS);
        channel.basicQos(3);
        BlockingQueue<Delivery> got = World.consume(channel, queue, false);
        for (int number = 0; number < 3; number++) {
            Suite.take(got, "message " + number);
        }
        Suite.same(7, channel.queueDeclarePassive(queue).getMessageCount(), "messages left");
        channel.basicAck(3, true);
        Suite.same("3", World.text(Suite.take(got, "message 3").getBody()), "body");
    }

    private static void capabilities(World world) throws Exception {
        Map<String, Object> properties = world.connect().getServerProperties();
        Map<?, ?> capabilities = (Map<?, ?>) properties.get("capabilities");
        for (String name : new String[] {"publisher_confirms", "basic.nack", "connection.blocked"}) {
            Suite.same(true, capabilities.get(name), name);
        }
    }

    private static void channels(World world) throws Exception {
        Connection connection = world.connect();
        for (int round = 0; round < 1000; round++) {
            connection.createChannel().close();
        }
    }
}
