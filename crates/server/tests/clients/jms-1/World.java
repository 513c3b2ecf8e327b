import com.rabbitmq.client.Channel;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.jms.Connection;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.TextMessage;
import org.apache.qpid.jms.JmsConnectionFactory;

/** What one case uses. Everything it opens is closed. */
final class World implements AutoCloseable {
    private final List<AutoCloseable> opened = new ArrayList<>();

    /** Connections of Qpid JMS. */
    static JmsConnectionFactory factory(int port) {
        return new JmsConnectionFactory("amqp://127.0.0.1:" + port + "?jms.username=guest&jms.password=guest"
                + "&jms.requestTimeout=10000&jms.sendTimeout=10000&jms.closeTimeout=10000");
    }

    /** A started connection of Qpid JMS; it is closed with the case. */
    Connection connect() throws JMSException {
        Connection connection = factory(Suite.amqpPort()).createConnection();
        closing(connection::close);
        connection.start();
        return connection;
    }

    /** Something to close with the case. */
    <T extends AutoCloseable> T closing(T closeable) {
        opened.add(closeable);
        return closeable;
    }

    /** Declares a durable queue over AMQP 0-9-1. */
    static String declare(Map<String, Object> arguments) throws Exception {
        String name = Suite.name("declared");
        var factory = new com.rabbitmq.client.ConnectionFactory();
        factory.setHost("127.0.0.1");
        factory.setPort(Suite.amqpPort());
        try (var connection = factory.newConnection()) {
            Channel channel = connection.createChannel();
            channel.queueDeclare(name, true, false, false, arguments);
        }
        return name;
    }

    static Message take(MessageConsumer from) throws JMSException {
        Message message = from.receive(Suite.PATIENCE_MS);
        Suite.check(message != null, "waited in vain for a message");
        return message;
    }

    static String text(Message message) throws JMSException {
        return ((TextMessage) message).getText();
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

    @Override
    public void close() throws Exception {
        for (int index = opened.size() - 1; index >= 0; index--) {
            opened.get(index).close();
        }
    }
}
