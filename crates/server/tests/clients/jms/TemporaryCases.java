import jakarta.jms.Connection;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.TemporaryQueue;
import jakarta.jms.TemporaryTopic;
import java.util.HashSet;
import java.util.List;
import java.util.Set;

/** Temporary destinations. */
final class TemporaryCases {
    private TemporaryCases() {}

    static void register(Suite<World> suite) {
        suite.add("temporary.requests_are_answered", TemporaryCases::requests);
        suite.add("temporary.only_the_owner_consumes", TemporaryCases::owner);
        suite.add("temporary.gone_when_deleted", TemporaryCases::deleted);
        suite.add("temporary.gone_with_the_connection", TemporaryCases::connection);
        suite.add("temporary.topics_fan_out", TemporaryCases::topics);
        suite.add("temporary.names_are_never_used_again", TemporaryCases::names);
    }

    private static void requests(World world) throws Exception {
        Session server = world.session();
        Queue queue = World.queue(server);
        server.createConsumer(queue).setMessageListener(request -> {
            try {
                Message answer = server.createTextMessage("to " + World.text(request));
                answer.setJMSCorrelationID(request.getJMSMessageID());
                server.createProducer(request.getJMSReplyTo()).send(answer);
            } catch (JMSException error) {
                throw new IllegalStateException(error);
            }
        });
        Session client = world.session();
        TemporaryQueue answers = client.createTemporaryQueue();
        MessageConsumer consumer = client.createConsumer(answers);
        MessageProducer producer = client.createProducer(queue);
        for (String number : World.numbers(0, 20)) {
            Message request = client.createTextMessage(number);
            request.setJMSReplyTo(answers);
            producer.send(request);
            Message answer = World.take(consumer);
            Suite.same("to " + number, World.text(answer), "answer");
            Suite.same(request.getJMSMessageID(), answer.getJMSCorrelationID(), "correlation");
        }
    }

    private static void owner(World world) throws Exception {
        Session session = world.session();
        TemporaryQueue own = session.createTemporaryQueue();
        Session other = world.session();
        Queue sameName = other.createQueue(own.getQueueName());
        World.send(other, sameName, "anybody sends");
        World.refused(JMSException.class, () -> other.createConsumer(sameName));
        Suite.same("anybody sends", World.text(World.take(session.createConsumer(own))), "text");
    }

    private static void deleted(World world) throws Exception {
        Session session = world.session();
        TemporaryQueue own = session.createTemporaryQueue();
        String name = own.getQueueName();
        Session other = world.session();
        MessageProducer before = other.createProducer(other.createQueue(name));
        before.send(other.createTextMessage("x"));
        own.delete();
        World.refused(JMSException.class, () -> {
            before.send(other.createTextMessage("y"));
            return null;
        });
        World.refused(JMSException.class, () -> {
            World.send(other, other.createQueue(name), "z");
            return null;
        });
    }

    private static void connection(World world) throws Exception {
        Connection connection = world.connect();
        Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
        String name = session.createTemporaryQueue().getQueueName();
        Session other = world.session();
        World.send(other, other.createQueue(name), "x");
        connection.close();
        World.refused(JMSException.class, () -> {
            World.send(other, other.createQueue(name), "y");
            return null;
        });
    }

    private static void topics(World world) throws Exception {
        Session session = world.session();
        TemporaryTopic topic = session.createTemporaryTopic();
        MessageConsumer first = session.createConsumer(topic);
        MessageConsumer second = session.createConsumer(topic, "JMSType = 'b'");
        MessageProducer producer = session.createProducer(topic);
        for (String type : List.of("a", "b")) {
            Message message = session.createTextMessage(type);
            message.setJMSType(type);
            producer.send(message);
        }
        Suite.same(List.of("a", "b"), World.texts(first, 2), "first");
        Suite.same(List.of("b"), World.texts(second, 1), "second");
        first.close();
        second.close();
        topic.delete();
        World.refused(JMSException.class, () -> session.createConsumer(topic));
    }

    private static void names(World world) throws Exception {
        Session session = world.session();
        Set<String> names = new HashSet<>();
        for (int time = 0; time < 50; time++) {
            TemporaryQueue queue = session.createTemporaryQueue();
            Suite.check(names.add(queue.getQueueName()), "used again: " + queue);
            queue.delete();
        }
    }
}
