import com.rabbitmq.client.Channel;
import jakarta.jms.Connection;
import jakarta.jms.Destination;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Callable;
import org.apache.qpid.jms.JmsConnectionFactory;

/** What one case uses. Everything it opens is closed. */
final class World implements AutoCloseable {
    private final List<AutoCloseable> opened = new ArrayList<>();

    /** A factory for a port; options such as `jms.prefetchPolicy.all=0`. */
    static JmsConnectionFactory factory(int port, String... options) {
        List<String> all = new ArrayList<>(List.of("jms.username=guest", "jms.password=guest",
                "jms.requestTimeout=10000", "jms.sendTimeout=10000", "jms.closeTimeout=10000"));
        all.addAll(List.of(options));
        return new JmsConnectionFactory("amqp://127.0.0.1:" + port + "?" + String.join("&", all));
    }

    /** A started connection; it is closed with the case. */
    Connection connect(String... options) throws JMSException {
        return connectTo(Suite.amqpPort(), options);
    }

    Connection connectTo(int port, String... options) throws JMSException {
        Connection connection = factory(port, options).createConnection();
        opened.add(connection);
        connection.start();
        return connection;
    }

    /** A session on a connection of its own. */
    Session session(int mode, String... options) throws JMSException {
        return connect(options).createSession(mode);
    }

    Session session(String... options) throws JMSException {
        return session(Session.AUTO_ACKNOWLEDGE, options);
    }

    Session transacted(String... options) throws JMSException {
        return session(Session.SESSION_TRANSACTED, options);
    }

    /** Something to close with the case. */
    <T extends AutoCloseable> T closing(T closeable) {
        opened.add(closeable);
        return closeable;
    }

    OwnBroker broker(String... settings) throws Exception {
        return closing(new OwnBroker(settings));
    }

    /** A queue that comes into being when it is used. */
    static Queue queue(Session session) throws JMSException {
        return session.createQueue(Suite.name("jms"));
    }

    /** Declares a durable queue over AMQP 0-9-1. */
    static String declare(Map<String, Object> arguments) throws Exception {
        String name = Suite.name("declared");
        try (var connection = plainFactory(Suite.amqpPort()).newConnection()) {
            Channel channel = connection.createChannel();
            channel.queueDeclare(name, true, false, false, arguments);
        }
        return name;
    }

    /** A factory of AMQP 0-9-1 connections. */
    static com.rabbitmq.client.ConnectionFactory plainFactory(int port) {
        var factory = new com.rabbitmq.client.ConnectionFactory();
        factory.setHost("127.0.0.1");
        factory.setPort(port);
        return factory;
    }

    static void send(Session session, Destination to, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(to);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    static Message take(MessageConsumer from) throws JMSException {
        Message message = from.receive(Suite.PATIENCE_MS);
        Suite.check(message != null, "waited in vain for a message");
        return message;
    }

    static String text(Message message) throws JMSException {
        return message == null ? null : ((TextMessage) message).getText();
    }

    /** The texts of the next messages. */
    static List<String> texts(MessageConsumer from, int count) throws JMSException {
        List<String> texts = new ArrayList<>();
        for (int index = 0; index < count; index++) {
            texts.add(text(take(from)));
        }
        return texts;
    }

    static void quiet(MessageConsumer consumer) throws JMSException {
        Message message = consumer.receive(Suite.SILENCE_MS);
        Suite.check(message == null, "came, and should not: " + message);
    }

    static int count(Message message) throws JMSException {
        return message.getIntProperty("JMSXDeliveryCount");
    }

    /** The numbers from `first` on, as texts. */
    static String[] numbers(int first, int count) {
        String[] numbers = new String[count];
        for (int index = 0; index < count; index++) {
            numbers[index] = String.valueOf(first + index);
        }
        return numbers;
    }

    /** Asserts that the action is refused in that way. */
    static void refused(Class<? extends Exception> how, Callable<?> action) throws Exception {
        try {
            action.call();
        } catch (Exception error) {
            if (how.isInstance(error)) {
                return;
            }
            throw new AssertionError("refused with " + error + " instead of " + how, error);
        }
        throw new AssertionError("was not refused with " + how.getSimpleName());
    }

    @Override
    public void close() throws Exception {
        for (int index = opened.size() - 1; index >= 0; index--) {
            try {
                opened.get(index).close();
            } catch (JMSException gone) {
                // It had failed before, as the case wanted.
            }
        }
    }
}
