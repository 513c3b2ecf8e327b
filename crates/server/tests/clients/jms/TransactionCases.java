import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.Topic;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** Transacted sessions. */
final class TransactionCases {
    private TransactionCases() {}

    static void register(Suite<World> suite) {
        suite.add("transaction.sends_show_at_the_commit", TransactionCases::sends);
        suite.add("transaction.takes_are_final_at_the_commit", TransactionCases::takes);
        suite.add("transaction.rollback_restores_places", TransactionCases::rollbackOrder);
        suite.add("transaction.rollback_precedes_other_consumers", TransactionCases::rollbackFirst);
        suite.add("transaction.moves_are_atomic", TransactionCases::move);
        suite.add("transaction.queues_and_topics_in_one", TransactionCases::queuesAndTopics);
        suite.add("transaction.many_messages", TransactionCases::many);
        suite.add("transaction.many_sessions_of_a_connection", TransactionCases::manySessions);
        suite.add("transaction.a_refused_send_undoes_all", Suite.OURS, TransactionCases::refused);
        suite.add("transaction.a_lost_connection_undoes_all", TransactionCases::lostConnection);
        suite.add("transaction.closing_the_session_undoes_all", TransactionCases::closed);
    }

    private static void sends(World world) throws Exception {
        Session session = world.transacted();
        Queue queue = World.queue(session);
        MessageConsumer consumer = world.session().createConsumer(queue);
        World.send(session, queue, "no");
        session.rollback();
        World.send(session, queue, "1", "2");
        World.quiet(consumer);
        session.commit();
        Suite.same(List.of("1", "2"), World.texts(consumer, 2), "texts");
        World.quiet(consumer);
    }

    private static void takes(World world) throws Exception {
        Session session = world.transacted();
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 4));
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue);
        World.texts(consumer, 2);
        session.commit();
        World.texts(consumer, 1);
        session.rollback();
        session.close();
        consumer = world.session().createConsumer(queue);
        Message second = World.take(consumer);
        Suite.same("2", World.text(second), "what was rolled back");
        Suite.same(2, World.count(second), "its count");
        Message third = World.take(consumer);
        Suite.same("3", World.text(third), "the other");
        Suite.same(1, World.count(third), "its count");
        World.quiet(consumer);
    }

    private static void rollbackOrder(World world) throws Exception {
        Session session = world.transacted();
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 10));
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue);
        for (int round = 1; round <= 4; round++) {
            for (int number = 0; number < 10; number++) {
                Message message = World.take(consumer);
                Suite.same(String.valueOf(number), World.text(message), "order in round " + round);
                int seen = number < 5 ? round : 1;
                Suite.same(seen, World.count(message), "count of " + number + " in round " + round);
                if (number == 4 && round < 4) {
                    session.rollback();
                    break;
                }
            }
        }
        session.commit();
        World.quiet(consumer);
    }

    private static void rollbackFirst(World world) throws Exception {
        Session session = world.transacted();
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 6));
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue);
        World.texts(consumer, 3);
        Session other = world.session("jms.prefetchPolicy.all=0");
        MessageConsumer rival = other.createConsumer(queue);
        session.rollback();
        session.close();
        Suite.same(List.of(World.numbers(0, 6)), World.texts(rival, 6), "order");
    }

    private static void move(World world) throws Exception {
        Session session = world.transacted();
        Queue from = World.queue(session);
        Queue to = World.queue(session);
        World.send(session, from, World.numbers(0, 100));
        session.commit();
        MessageConsumer consumer = session.createConsumer(from);
        MessageProducer producer = session.createProducer(to);
        List<String> expected = new ArrayList<>();
        for (int done = 0; done < 100; ) {
            List<String> batch = World.texts(consumer, 5);
            for (String text : batch) {
                producer.send(session.createTextMessage(text));
            }
            if (Math.floorMod(batch.hashCode(), 3) == 0 && !expected.contains("again" + done)) {
                expected.add("again" + done);
                session.rollback();
                continue;
            }
            session.commit();
            done += 5;
        }
        MessageConsumer moved = world.session().createConsumer(to);
        Suite.same(List.of(World.numbers(0, 100)), World.texts(moved, 100), "moved");
        World.quiet(moved);
        World.quiet(consumer);
    }

    private static void queuesAndTopics(World world) throws Exception {
        Session session = world.transacted();
        Queue queue = World.queue(session);
        Topic topic = session.createTopic(Suite.name("topic"));
        Session reader = world.session();
        MessageConsumer onTopic = reader.createConsumer(topic);
        MessageConsumer onQueue = reader.createConsumer(queue);
        World.send(session, queue, "q");
        World.send(session, topic, "t");
        World.quiet(onTopic);
        session.commit();
        Suite.same("t", World.text(World.take(onTopic)), "on the topic");
        Suite.same("q", World.text(World.take(onQueue)), "on the queue");
    }

    private static void many(World world) throws Exception {
        Session session = world.transacted();
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 3000));
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue);
        World.texts(consumer, 2000);
        session.rollback();
        Suite.same(List.of(World.numbers(0, 3000)), World.texts(consumer, 3000), "order");
        session.commit();
        World.quiet(consumer);
    }

    private static void manySessions(World world) throws Exception {
        var connection = world.connect();
        Session plain = connection.createSession(Session.AUTO_ACKNOWLEDGE);
        Queue queue = World.queue(plain);
        List<Session> sessions = new ArrayList<>();
        for (String number : World.numbers(0, 8)) {
            Session session = connection.createSession(Session.SESSION_TRANSACTED);
            World.send(session, queue, number);
            sessions.add(session);
        }
        World.send(plain, queue, "plain");
        for (int index = 7; index >= 0; index--) {
            if (index % 2 == 0) {
                sessions.get(index).rollback();
            } else {
                sessions.get(index).commit();
            }
        }
        MessageConsumer consumer = plain.createConsumer(queue);
        Suite.same(List.of("plain", "7", "5", "3", "1"), World.texts(consumer, 5), "by commit");
        World.quiet(consumer);
    }

    private static void refused(World world) throws Exception {
        Session session = world.transacted();
        Queue full = session.createQueue(World.declare(
                Map.of("x-max-length", 1, "x-overflow", "reject-publish")));
        Queue other = World.queue(session);
        World.send(session, full, "1");
        session.commit();
        World.refused(JMSException.class, () -> {
            World.send(session, other, "with it");
            World.send(session, full, "2");
            session.commit();
            return null;
        });
        Session reader = world.session();
        World.quiet(reader.createConsumer(other));
        MessageConsumer consumer = reader.createConsumer(full);
        Suite.same("1", World.text(World.take(consumer)), "first");
        World.quiet(consumer);
    }

    private static void lostConnection(World world) throws Exception {
        Relay relay = world.closing(new Relay(Suite.amqpPort()));
        Session session = world.connectTo(relay.port).createSession(Session.SESSION_TRANSACTED);
        Queue queue = World.queue(session);
        World.send(session, queue, "stays");
        session.commit();
        World.take(session.createConsumer(queue));
        World.send(session, queue, "goes");
        relay.cut();
        MessageConsumer consumer = world.session().createConsumer(queue);
        Message message = World.take(consumer);
        Suite.same("stays", World.text(message), "text");
        Suite.same(2, World.count(message), "count");
        World.quiet(consumer);
    }

    private static void closed(World world) throws Exception {
        Session session = world.transacted();
        Queue queue = World.queue(session);
        World.send(session, queue, "stays");
        session.commit();
        World.take(session.createConsumer(queue));
        World.send(session, queue, "goes");
        session.close();
        MessageConsumer consumer = world.session().createConsumer(queue);
        Suite.same("stays", World.text(World.take(consumer)), "text");
        World.quiet(consumer);
    }
}
