import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.GetResponse;
import com.rabbitmq.client.ShutdownSignalException;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;

/** What one case uses. Everything it opens is closed, and every queue it names is deleted. */
final class World implements AutoCloseable {
    private final List<Connection> connections = new ArrayList<>();
    private final List<String> queues = new ArrayList<>();

    static ConnectionFactory factory() throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        String url = System.getenv("AMQP_URL");
        factory.setUri(url == null ? "amqp://guest:guest@127.0.0.1:5672/%2f" : url);
        factory.setAutomaticRecoveryEnabled(false);
        return factory;
    }

    Connection connect() throws Exception {
        return connect(factory());
    }

    Connection connect(ConnectionFactory factory) throws Exception {
        Connection connection = factory.newConnection();
        connections.add(connection);
        return connection;
    }

    Channel channel() throws Exception {
        return connect().createChannel();
    }

    Channel confirming() throws Exception {
        Channel channel = channel();
        channel.confirmSelect();
        return channel;
    }

    static String name() {
        return Suite.name("j");
    }

    String queue(Channel channel) throws IOException {
        return queue(channel, false, Map.of());
    }

    String queue(Channel channel, boolean durable, Map<String, Object> arguments) throws IOException {
        String name = name();
        channel.queueDeclare(name, durable, false, false, arguments);
        queues.add(name);
        return name;
    }

    /** Consumes without end into a queue of deliveries. */
    static BlockingQueue<Delivery> consume(Channel channel, String queue, boolean autoAck)
            throws IOException {
        BlockingQueue<Delivery> got = new LinkedBlockingQueue<>();
        channel.basicConsume(queue, autoAck, (tag, delivery) -> got.add(delivery), tag -> {});
        return got;
    }

    /** Gets until there is something. */
    static GetResponse get(Channel channel, String queue, boolean autoAck) throws Exception {
        long end = System.nanoTime() + TimeUnit.MILLISECONDS.toNanos(Suite.PATIENCE_MS);
        while (System.nanoTime() < end) {
            GetResponse response = channel.basicGet(queue, autoAck);
            if (response != null) {
                return response;
            }
        }
        throw new AssertionError("nothing in " + queue);
    }

    static void send(Channel channel, String queue, String body, AMQP.BasicProperties properties)
            throws IOException {
        channel.basicPublish("", queue, properties, body.getBytes(StandardCharsets.UTF_8));
    }

    static String text(byte[] body) {
        return new String(body, StandardCharsets.UTF_8);
    }

    /** Asserts that the action is refused with that reply code. */
    static void refused(int code, Callable<?> action) throws Exception {
        try {
            action.call();
        } catch (IOException | ShutdownSignalException error) {
            Throwable cause = error instanceof ShutdownSignalException ? error : error.getCause();
            Suite.check(cause instanceof ShutdownSignalException, "not a refusal: " + error);
            Object reason = ((ShutdownSignalException) cause).getReason();
            int found = reason instanceof AMQP.Channel.Close
                    ? ((AMQP.Channel.Close) reason).getReplyCode()
                    : ((AMQP.Connection.Close) reason).getReplyCode();
            Suite.same(code, found, "reply code");
            return;
        }
        throw new AssertionError("was not refused with " + code);
    }

    @Override
    public void close() throws Exception {
        for (Connection connection : connections) {
            connection.abort((int) Suite.PATIENCE_MS);
        }
        try (Connection connection = factory().newConnection()) {
            Channel channel = connection.createChannel();
            for (String queue : queues) {
                channel.queueDelete(queue);
            }
        }
    }
}
