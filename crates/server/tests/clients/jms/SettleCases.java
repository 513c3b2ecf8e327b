import jakarta.jms.Connection;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.List;
import java.util.Map;

/** What consumers do with messages, and how often these were delivered then. */
final class SettleCases {
    /** Qpid JMS: each message is acknowledged by itself. */
    private static final int INDIVIDUAL = 101;
    /** Qpid JMS: the outcome of a message that is acknowledged by itself. */
    private static final String OUTCOME = "JMS_AMQP_ACK_TYPE";

    private static final int REJECTED = 2;
    private static final int RELEASED = 3;
    private static final int FAILED = 4;
    private static final int UNDELIVERABLE = 5;

    private SettleCases() {}

    static void register(Suite<World> suite) {
        suite.add("settle.client_acknowledge_takes_all_before", SettleCases::clientAcknowledge);
        suite.add("settle.individual_acknowledge_takes_one", SettleCases::individual);
        suite.add("settle.duplicates_may_come_where_they_are_allowed", SettleCases::dupsOk);
        suite.add("settle.recover_repeats_in_order", SettleCases::recover);
        suite.add("settle.a_prefetched_message_nobody_saw_does_not_count", SettleCases::prefetched);
        suite.add("settle.a_lost_connection_counts", SettleCases::lostConnection);
        suite.add("settle.released_does_not_count_and_failed_does", SettleCases::releasedAndFailed);
        suite.add("settle.rejected_is_final", Suite.OURS, SettleCases::rejected);
        suite.add("settle.undeliverable_here_goes_to_another", Suite.OURS, SettleCases::undeliverable);
        suite.add("settle.failed_too_often_is_a_dead_letter", Suite.OURS, SettleCases::deliveryLimit);
        suite.add("settle.counts_survive_a_restart", OwnBroker.isThere(), SettleCases::restart);
        suite.add("settle.prefetched_messages_have_time", OwnBroker.isThere(), SettleCases::noTimeout);
    }

    private static void clientAcknowledge(World world) throws Exception {
        Session session = world.session(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 5));
        MessageConsumer consumer = session.createConsumer(queue);
        World.texts(consumer, 2);
        World.take(consumer).acknowledge();
        Suite.same("3", World.text(World.take(consumer)), "not acknowledged");
        session.close();
        consumer = world.session().createConsumer(queue);
        Message third = World.take(consumer);
        Suite.same("3", World.text(third), "returned");
        Suite.same(2, World.count(third), "its count");
        Suite.check(third.getJMSRedelivered(), "it is marked");
        Message fourth = World.take(consumer);
        Suite.same("4", World.text(fourth), "next");
        Suite.same(1, World.count(fourth), "count of what nobody saw");
        World.quiet(consumer);
    }

    private static void individual(World world) throws Exception {
        Session session = world.session(INDIVIDUAL);
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 4));
        MessageConsumer consumer = session.createConsumer(queue);
        World.take(consumer);
        World.take(consumer).acknowledge();
        World.take(consumer);
        World.take(consumer).acknowledge();
        session.close();
        consumer = world.session().createConsumer(queue);
        Suite.same(List.of("0", "2"), World.texts(consumer, 2), "returned");
        World.quiet(consumer);
    }

    private static void dupsOk(World world) throws Exception {
        Session session = world.session(Session.DUPS_OK_ACKNOWLEDGE);
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 300));
        MessageConsumer consumer = session.createConsumer(queue);
        Suite.same(List.of(World.numbers(0, 300)), World.texts(consumer, 300), "texts");
        session.close();
        World.quiet(world.session().createConsumer(queue));
    }

    private static void recover(World world) throws Exception {
        Session session = world.session(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 4));
        MessageConsumer consumer = session.createConsumer(queue);
        World.texts(consumer, 2);
        session.recover();
        for (String number : World.numbers(0, 4)) {
            Message message = World.take(consumer);
            boolean wasSeen = number.compareTo("2") < 0;
            Suite.same(number, World.text(message), "order");
            Suite.same(wasSeen ? 2 : 1, World.count(message), "count of " + number);
            message.acknowledge();
        }
    }

    private static void prefetched(World world) throws Exception {
        Session session = world.session(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 10));
        MessageConsumer consumer = session.createConsumer(queue);
        World.take(consumer).acknowledge();
        World.take(consumer);
        session.close();
        consumer = world.session().createConsumer(queue);
        for (String number : World.numbers(1, 9)) {
            Message message = World.take(consumer);
            Suite.same(number, World.text(message), "order");
            Suite.same(number.equals("1") ? 2 : 1, World.count(message), "count of " + number);
        }
    }

    private static void lostConnection(World world) throws Exception {
        Relay relay = world.closing(new Relay(Suite.amqpPort()));
        Connection connection = world.connectTo(relay.port);
        Session session = connection.createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 3));
        MessageConsumer consumer = session.createConsumer(queue);
        World.take(consumer);
        relay.cut();
        consumer = world.session().createConsumer(queue);
        for (String number : World.numbers(0, 3)) {
            Message message = World.take(consumer);
            Suite.same(number, World.text(message), "order");
            Suite.check(!number.equals("0") || World.count(message) == 2, "what was seen is counted");
        }
    }

    /** Takes a message with this text and ends it with that outcome. */
    private static void settle(MessageConsumer consumer, String text, int outcome) throws Exception {
        Message message = World.take(consumer);
        Suite.same(text, World.text(message), "text");
        message.setIntProperty(OUTCOME, outcome);
        message.acknowledge();
    }

    private static void releasedAndFailed(World world) throws Exception {
        Session session = world.session(INDIVIDUAL, "jms.prefetchPolicy.all=1");
        Queue queue = World.queue(session);
        World.send(session, queue, "x");
        MessageConsumer consumer = session.createConsumer(queue);
        for (int time = 0; time < 30; time++) {
            settle(consumer, "x", RELEASED);
        }
        settle(consumer, "x", FAILED);
        settle(consumer, "x", FAILED);
        Message message = World.take(consumer);
        Suite.same(3, World.count(message), "count");
        message.acknowledge();
    }

    private static void rejected(World world) throws Exception {
        String dead = World.declare(Map.of());
        String name = World.declare(Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));
        Session session = world.session(INDIVIDUAL, "jms.prefetchPolicy.all=1");
        World.send(session, session.createQueue(name), "bad", "good");
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        settle(consumer, "bad", REJECTED);
        settle(consumer, "good", 1);
        World.quiet(consumer);
        MessageConsumer mourner = session.createConsumer(session.createQueue(dead));
        settle(mourner, "bad", 1);
        World.quiet(mourner);
    }

    private static void undeliverable(World world) throws Exception {
        Session session = world.session(INDIVIDUAL, "jms.prefetchPolicy.all=1");
        Queue queue = World.queue(session);
        World.send(session, queue, "not mine");
        MessageConsumer first = session.createConsumer(queue);
        settle(first, "not mine", UNDELIVERABLE);
        World.quiet(first);
        Message message = World.take(world.session().createConsumer(queue));
        Suite.same("not mine", World.text(message), "another consumer gets it");
        Suite.same(2, World.count(message), "count");
        World.quiet(first);
    }

    private static void deliveryLimit(World world) throws Exception {
        String dead = World.declare(Map.of());
        String name = World.declare(Map.of("x-queue-type", "quorum", "x-delivery-limit", 3,
                "x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));
        Session session = world.session(INDIVIDUAL, "jms.prefetchPolicy.all=1");
        World.send(session, session.createQueue(name), "poison");
        MessageConsumer consumer = session.createConsumer(session.createQueue(name));
        for (int time = 0; time < 4; time++) {
            settle(consumer, "poison", FAILED);
        }
        World.quiet(consumer);
        settle(session.createConsumer(session.createQueue(dead)), "poison", 1);
    }

    private static void restart(World world) throws Exception {
        OwnBroker broker = world.broker();
        Connection connection = world.connectTo(broker.port);
        Session session = connection.createSession(Session.SESSION_TRANSACTED);
        Queue queue = session.createQueue("counted");
        World.send(session, queue, "x", "y");
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue);
        for (int time = 1; time <= 3; time++) {
            Suite.same(time, World.count(World.take(consumer)), "count before the restart");
            session.rollback();
        }
        connection.close();
        broker.restart();
        session = world.connectTo(broker.port).createSession(Session.AUTO_ACKNOWLEDGE);
        consumer = session.createConsumer(queue);
        Message message = World.take(consumer);
        Suite.same("x", World.text(message), "text");
        Suite.same(4, World.count(message), "count after it");
        Suite.same(1, World.count(World.take(consumer)), "count of the other");
    }

    private static void noTimeout(World world) throws Exception {
        OwnBroker broker = world.broker("--settle-timeout", "1s");
        Session session = world.connectTo(broker.port).createSession(Session.CLIENT_ACKNOWLEDGE);
        Queue queue = session.createQueue("slow");
        World.send(session, queue, World.numbers(0, 3));
        MessageConsumer consumer = session.createConsumer(queue);
        World.take(consumer);
        Thread.sleep(2500);
        World.texts(consumer, 1);
        World.take(consumer).acknowledge();
        session.close();
        Session later = world.connectTo(broker.port).createSession(Session.AUTO_ACKNOWLEDGE);
        World.quiet(later.createConsumer(queue));
    }
}
