import com.rabbitmq.jms.admin.RMQConnectionFactory;
import com.rabbitmq.jms.admin.RMQDestination;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;
import java.util.Map;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.Destination;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.QueueSession;
import javax.jms.Session;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import javax.jms.Topic;
import javax.jms.TopicSession;

/** RabbitMQ's JMS client, which speaks AMQP 0-9-1. */
final class RabbitCases {
    private RabbitCases() {}

    static void register(Suite<World> suite) {
        suite.add("rabbitmq_jms.queues", RabbitCases::queues);
        suite.add("rabbitmq_jms.transactions", RabbitCases::transactions);
        suite.add("rabbitmq_jms.acknowledgements", RabbitCases::acknowledgements);
        suite.add("rabbitmq_jms.topics", RabbitCases::topics);
        suite.add("rabbitmq_jms.selectors_on_topics", RabbitCases::selectors);
        suite.add("rabbitmq_jms.durable_subscriptions", RabbitCases::durable);
        suite.add("rabbitmq_jms.requests_are_answered", RabbitCases::requests);
        suite.add("rabbitmq_jms.browsers", RabbitCases::browsers);
        suite.add("rabbitmq_jms.meets_qpid_jms", Suite.OURS, RabbitCases::meetsQpid);
    }

    private static Connection connect(World world) throws JMSException {
        RMQConnectionFactory factory = new RMQConnectionFactory();
        factory.setHost("127.0.0.1");
        factory.setPort(Suite.amqpPort());
        // Else whoever answers would declare the temporary queue that is another connection's.
        factory.setDeclareReplyToDestination(false);
        Connection connection = factory.createConnection();
        world.closing(connection::close);
        connection.start();
        return connection;
    }

    private static Session session(World world, int mode) throws JMSException {
        return connect(world).createSession(mode == Session.SESSION_TRANSACTED, mode);
    }

    private static void send(Session session, Destination to, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(to);
        for (String text : texts) {
            producer.send(session.createTextMessage(text));
        }
        producer.close();
    }

    private static void queues(World world) throws Exception {
        Session session = session(world, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(Suite.name("rmq"));
        MessageConsumer consumer = session.createConsumer(queue);
        TextMessage text = session.createTextMessage("täxt");
        text.setIntProperty("number", 7);
        text.setStringProperty("word", "w");
        text.setJMSCorrelationID("c");
        text.setJMSType("t");
        MessageProducer producer = session.createProducer(queue);
        producer.send(text);
        MapMessage map = session.createMapMessage();
        map.setLong("l", 1L << 40);
        producer.send(map);
        producer.send(session.createObjectMessage("object"));
        TextMessage got = (TextMessage) World.take(consumer);
        Suite.same("täxt", got.getText(), "text");
        Suite.same(7, got.getIntProperty("number"), "number");
        Suite.same("w", got.getStringProperty("word"), "word");
        Suite.same("c", got.getJMSCorrelationID(), "correlation id");
        Suite.same("t", got.getJMSType(), "type");
        Suite.same(text.getJMSMessageID(), got.getJMSMessageID(), "message id");
        Suite.same(1L << 40, ((MapMessage) World.take(consumer)).getLong("l"), "map");
        World.take(consumer);
        World.quiet(consumer);
    }

    private static void transactions(World world) throws Exception {
        Session session = session(world, Session.SESSION_TRANSACTED);
        Queue queue = session.createQueue(Suite.name("rmq"));
        MessageConsumer consumer = session.createConsumer(queue);
        send(session, queue, "no");
        session.rollback();
        send(session, queue, "1", "2");
        session.commit();
        Suite.same(List.of("1", "2"), World.texts(consumer, 2), "before the rollback");
        session.rollback();
        Message first = World.take(consumer);
        Suite.same("1", World.text(first), "after it");
        Suite.check(first.getJMSRedelivered(), "it is marked");
        Suite.same("2", World.text(World.take(consumer)), "the other");
        session.commit();
        World.quiet(consumer);
    }

    private static void acknowledgements(World world) throws Exception {
        Session session = session(world, Session.CLIENT_ACKNOWLEDGE);
        Queue queue = session.createQueue(Suite.name("rmq"));
        MessageConsumer consumer = session.createConsumer(queue);
        send(session, queue, "1", "2", "3");
        World.take(consumer);
        World.take(consumer).acknowledge();
        World.take(consumer);
        session.close();
        consumer = session(world, Session.AUTO_ACKNOWLEDGE).createConsumer(queue);
        Message third = World.take(consumer);
        Suite.same("3", World.text(third), "returned");
        Suite.check(third.getJMSRedelivered(), "it is marked");
        World.quiet(consumer);
    }

    private static void topics(World world) throws Exception {
        Session session = session(world, Session.AUTO_ACKNOWLEDGE);
        Topic topic = session.createTopic(Suite.name("topic"));
        MessageConsumer first = session.createConsumer(topic);
        MessageConsumer second = session(world, Session.AUTO_ACKNOWLEDGE).createConsumer(topic);
        send(session, topic, "1", "2");
        Suite.same(List.of("1", "2"), World.texts(first, 2), "first");
        Suite.same(List.of("1", "2"), World.texts(second, 2), "second");
    }

    private static void selectors(World world) throws Exception {
        Session session = session(world, Session.AUTO_ACKNOWLEDGE);
        Topic topic = session.createTopic(Suite.name("topic"));
        Map<String, String> chosen = Map.of(
                "color = 'red'", "02",
                "color <> 'red' AND number > 2", "3",
                "number BETWEEN 1 AND 2", "12",
                "color LIKE 'b%' OR number = 0", "013",
                "color IN ('blue', 'green')", "13",
                "flag", "02",
                "missing IS NULL AND NOT flag", "13",
                "JMSPriority = 7", "3");
        List<MessageConsumer> consumers = new ArrayList<>();
        List<String> selectors = new ArrayList<>(chosen.keySet());
        for (String selector : selectors) {
            consumers.add(session.createConsumer(topic, selector));
        }
        MessageProducer producer = session.createProducer(topic);
        for (int number = 0; number < 4; number++) {
            Message message = session.createTextMessage(String.valueOf(number));
            message.setIntProperty("number", number);
            message.setStringProperty("color", number % 2 == 0 ? "red" : "blue");
            message.setBooleanProperty("flag", number % 2 == 0);
            producer.send(message, DeliveryMode.PERSISTENT, number == 3 ? 7 : 4, 0);
        }
        for (int index = 0; index < selectors.size(); index++) {
            String expected = chosen.get(selectors.get(index));
            List<String> got = World.texts(consumers.get(index), expected.length());
            Suite.same(expected, String.join("", got), selectors.get(index));
        }
        for (MessageConsumer consumer : consumers) {
            Suite.check(consumer.receiveNoWait() == null, "nothing else");
        }
    }

    private static void durable(World world) throws Exception {
        Connection connection = connect(world);
        TopicSession session = (TopicSession) connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
        Topic topic = session.createTopic(Suite.name("topic"));
        String name = Suite.name("inbox");
        MessageConsumer consumer = session.createDurableSubscriber(topic, name, "JMSType = 'a'", false);
        consumer.close();
        for (String type : List.of("a", "b")) {
            Message message = session.createTextMessage(type);
            message.setJMSType(type);
            session.createProducer(topic).send(message);
        }
        consumer = session.createDurableSubscriber(topic, name, "JMSType = 'a'", false);
        Suite.same("a", World.text(World.take(consumer)), "what came meanwhile");
        World.quiet(consumer);
        consumer.close();
        session.unsubscribe(name);
    }

    private static void requests(World world) throws Exception {
        Session server = session(world, Session.AUTO_ACKNOWLEDGE);
        Queue queue = server.createQueue(Suite.name("rmq"));
        server.createConsumer(queue).setMessageListener(request -> {
            try {
                Message answer = server.createTextMessage("to " + World.text(request));
                server.createProducer(null).send(request.getJMSReplyTo(), answer);
            } catch (JMSException error) {
                throw new IllegalStateException(error);
            }
        });
        Session client = session(world, Session.AUTO_ACKNOWLEDGE);
        TemporaryQueue answers = client.createTemporaryQueue();
        MessageConsumer consumer = client.createConsumer(answers);
        Message request = client.createTextMessage("x");
        request.setJMSReplyTo(answers);
        client.createProducer(queue).send(request);
        Suite.same("to x", World.text(World.take(consumer)), "answer");
    }

    private static void browsers(World world) throws Exception {
        QueueSession session = (QueueSession) session(world, Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue(Suite.name("rmq"));
        session.createConsumer(queue).close();
        for (int number = 0; number < 5; number++) {
            Message message = session.createTextMessage(String.valueOf(number));
            message.setIntProperty("number", number);
            session.createProducer(queue).send(message);
        }
        QueueBrowser browser = session.createBrowser(queue, "number > 2");
        List<String> browsed = new ArrayList<>();
        // This client sends without waiting for the broker, and browses on another channel.
        for (int time = 0; time < 50 && browsed.size() < 2; time++) {
            Thread.sleep(20);
            browsed.clear();
            for (Enumeration<?> all = browser.getEnumeration(); all.hasMoreElements(); ) {
                browsed.add(World.text((Message) all.nextElement()));
            }
        }
        browser.close();
        Suite.same(List.of("3", "4"), browsed, "browsed");
        List<String> taken = World.texts(session.createConsumer(queue), 5);
        taken.sort(null);
        Suite.same(List.of("0", "1", "2", "3", "4"), taken, "taken, in any order");
    }

    /** Both clients on one queue: its messages are AMQP's there, not this client's own form. */
    private static void meetsQpid(World world) throws Exception {
        String name = World.declare(Map.of());
        Session rabbit = session(world, Session.AUTO_ACKNOWLEDGE);
        RMQDestination queue = new RMQDestination(name, "", name, name);
        Session qpid = world.connect().createSession(false, Session.AUTO_ACKNOWLEDGE);
        TextMessage sent = rabbit.createTextMessage("from RabbitMQ's");
        sent.setStringProperty("word", "w");
        rabbit.createProducer(queue).send(sent);
        MessageConsumer consumer = qpid.createConsumer(qpid.createQueue(name));
        Message got = World.take(consumer);
        Suite.same("w", got.getStringProperty("word"), "property");
        byte[] body = got.getBody(byte[].class);
        Suite.same("from RabbitMQ's", new String(body, StandardCharsets.UTF_8), "body");
        consumer.close();
        TextMessage back = qpid.createTextMessage("from Qpid's");
        back.setStringProperty("word", "v");
        qpid.createProducer(qpid.createQueue(name)).send(back);
        got = World.take(rabbit.createConsumer(queue));
        Suite.same("v", got.getStringProperty("word"), "property");
    }
}
