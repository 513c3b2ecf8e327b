import jakarta.jms.Connection;
import jakarta.jms.InvalidClientIDException;
import jakarta.jms.InvalidDestinationException;
import jakarta.jms.JMSException;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import jakarta.jms.TextMessage;
import jakarta.jms.Topic;
import java.util.List;

/** Topics: who gets what, and what stays for whom. */
final class SubscriptionCases {
    private SubscriptionCases() {}

    static void register(Suite<World> suite) {
        suite.add("subscription.gets_what_comes_meanwhile", SubscriptionCases::plain);
        suite.add("subscription.selectors_choose", SubscriptionCases::selectors);
        suite.add("subscription.no_local", SubscriptionCases::noLocal);
        suite.add("subscription.durable_ones_keep_messages", SubscriptionCases::durable);
        suite.add("subscription.durable_ones_have_one_consumer", SubscriptionCases::durableInUse);
        suite.add("subscription.another_selector_begins_anew", SubscriptionCases::changedSelector);
        suite.add("subscription.another_topic_begins_anew", SubscriptionCases::changedTopic);
        suite.add("subscription.unsubscribe", SubscriptionCases::unsubscribe);
        suite.add("subscription.names_belong_to_clients", SubscriptionCases::owners);
        suite.add("subscription.shared_ones_share", SubscriptionCases::shared);
        suite.add("subscription.shared_ones_end_with_the_last", SubscriptionCases::sharedEnds);
        suite.add("subscription.shared_durable_ones_stay", SubscriptionCases::sharedDurable);
        suite.add("subscription.shared_durable_ones_change_when_unused", SubscriptionCases::sharedChanged);
        suite.add("subscription.shared_or_not", Suite.OURS, SubscriptionCases::sharedOrNot);
        suite.add("subscription.a_client_id_is_used_once", SubscriptionCases::clientIdClash);
        suite.add("subscription.durable_over_a_restart", OwnBroker.isThere(), SubscriptionCases::restart);
    }

    private static Topic topic(Session session) throws JMSException {
        return session.createTopic(Suite.name("topic"));
    }

    /** A connection of that client. */
    private static Connection client(World world, String id) throws JMSException {
        return world.connect("jms.clientID=" + id);
    }

    private static Session session(Connection connection) throws JMSException {
        return connection.createSession(Session.AUTO_ACKNOWLEDGE);
    }

    /** Sends texts with the property `color`: the word before the blank. */
    private static void paint(Session session, Topic topic, String... texts) throws JMSException {
        MessageProducer producer = session.createProducer(topic);
        for (String text : texts) {
            TextMessage message = session.createTextMessage(text);
            message.setStringProperty("color", text.split(" ")[0]);
            producer.send(message);
        }
        producer.close();
    }

    private static void plain(World world) throws Exception {
        Session sender = world.session();
        Topic topic = topic(sender);
        World.send(sender, topic, "early");
        MessageConsumer first = world.session().createConsumer(topic);
        MessageConsumer second = world.session().createConsumer(topic);
        World.send(sender, topic, "1", "2");
        Suite.same(List.of("1", "2"), World.texts(first, 2), "first");
        Suite.same(List.of("1", "2"), World.texts(second, 2), "second");
        second.close();
        World.send(sender, topic, "3");
        Suite.same("3", World.text(World.take(first)), "after the second has gone");
    }

    private static void selectors(World world) throws Exception {
        Session session = world.session();
        Topic topic = topic(session);
        MessageConsumer red = session.createConsumer(topic, "color = 'red'");
        MessageConsumer all = session.createConsumer(topic);
        MessageConsumer notRed = session.createConsumer(topic, "color <> 'red'");
        paint(session, topic, "red 1", "blue 2", "red 3");
        Suite.same(List.of("red 1", "red 3"), World.texts(red, 2), "red");
        Suite.same(List.of("blue 2"), World.texts(notRed, 1), "not red");
        Suite.same(List.of("red 1", "blue 2", "red 3"), World.texts(all, 3), "all");
        World.quiet(notRed);
    }

    private static void noLocal(World world) throws Exception {
        Connection own = client(world, Suite.name("client"));
        Session session = session(own);
        Topic topic = topic(session);
        MessageConsumer deaf = session.createConsumer(topic, null, true);
        MessageConsumer hearing = session.createConsumer(topic, null, false);
        World.send(session, topic, "own");
        World.send(world.session(), topic, "foreign");
        Suite.same(List.of("own", "foreign"), World.texts(hearing, 2), "with its own");
        Suite.same("foreign", World.text(World.take(deaf)), "without its own");
        World.quiet(deaf);
    }

    private static void durable(World world) throws Exception {
        String id = Suite.name("client");
        Connection connection = client(world, id);
        Topic topic = topic(session(connection));
        MessageConsumer consumer = session(connection).createDurableConsumer(topic, "inbox");
        Session sender = world.session();
        World.send(sender, topic, "1");
        Suite.same("1", World.text(World.take(consumer)), "while it is there");
        consumer.close();
        World.send(sender, topic, "2");
        connection.close();
        World.send(sender, topic, "3");
        consumer = session(client(world, id)).createDurableConsumer(topic, "inbox");
        Suite.same(List.of("2", "3"), World.texts(consumer, 2), "what came meanwhile");
        World.quiet(consumer);
    }

    private static void durableInUse(World world) throws Exception {
        Session session = session(client(world, Suite.name("client")));
        Topic topic = topic(session);
        MessageConsumer consumer = session.createDurableConsumer(topic, "inbox");
        World.refused(JMSException.class, () -> session.createDurableConsumer(topic, "inbox"));
        World.send(session, topic, "1");
        Suite.same("1", World.text(World.take(consumer)), "the first one goes on");
        consumer.close();
        session.createDurableConsumer(topic, "inbox").close();
    }

    private static void changedSelector(World world) throws Exception {
        Session session = session(client(world, Suite.name("client")));
        Topic topic = topic(session);
        session.createDurableConsumer(topic, "inbox", "color = 'red'", false).close();
        paint(session, topic, "red 1", "blue 2");
        MessageConsumer red = session.createDurableConsumer(topic, "inbox", "color = 'red'", false);
        Suite.same("red 1", World.text(World.take(red)), "the same selector");
        red.close();
        paint(session, topic, "red 3", "blue 4");
        MessageConsumer blue = session.createDurableConsumer(topic, "inbox", "color = 'blue'", false);
        paint(session, topic, "red 5", "blue 6");
        Suite.same("blue 6", World.text(World.take(blue)), "another selector");
        World.quiet(blue);
    }

    private static void changedTopic(World world) throws Exception {
        Session session = session(client(world, Suite.name("client")));
        Topic before = topic(session);
        Topic after = topic(session);
        session.createDurableConsumer(before, "inbox").close();
        World.send(session, before, "old");
        MessageConsumer consumer = session.createDurableConsumer(after, "inbox");
        World.send(session, before, "older");
        World.send(session, after, "new");
        Suite.same("new", World.text(World.take(consumer)), "of the new topic");
        World.quiet(consumer);
    }

    private static void unsubscribe(World world) throws Exception {
        Session session = session(client(world, Suite.name("client")));
        Topic topic = topic(session);
        World.refused(InvalidDestinationException.class, () -> {
            session.unsubscribe("unknown");
            return null;
        });
        MessageConsumer consumer = session.createDurableConsumer(topic, "inbox");
        World.refused(JMSException.class, () -> {
            session.unsubscribe("inbox");
            return null;
        });
        World.send(session, topic, "1");
        Suite.same("1", World.text(World.take(consumer)), "it is still there");
        consumer.close();
        World.send(session, topic, "2");
        session.unsubscribe("inbox");
        consumer = session.createDurableConsumer(topic, "inbox");
        World.quiet(consumer);
        consumer.close();
        session.unsubscribe("inbox");
    }

    private static void owners(World world) throws Exception {
        Session ada = session(client(world, Suite.name("ada")));
        Session bob = session(client(world, Suite.name("bob")));
        Topic topic = topic(ada);
        MessageConsumer first = ada.createDurableConsumer(topic, "inbox");
        MessageConsumer second = bob.createDurableConsumer(topic, "inbox");
        World.send(ada, topic, "1");
        Suite.same("1", World.text(World.take(first)), "Ada's");
        Suite.same("1", World.text(World.take(second)), "Bob's");
    }

    /** Two consumers of a shared subscription: each message once, whether clients have names or not. */
    private static void shared(World world) throws Exception {
        Session sender = world.session();
        Topic topic = topic(sender);
        String name = Suite.name("crew");
        String one = "jms.prefetchPolicy.all=1";
        MessageConsumer first = world.session(one).createSharedConsumer(topic, name);
        MessageConsumer second = world.session(one).createSharedConsumer(topic, name);
        Session own = session(client(world, Suite.name("client")));
        MessageConsumer apart = own.createSharedConsumer(topic, name);
        World.send(sender, topic, World.numbers(0, 20));
        Suite.same(List.of(World.numbers(0, 20)), World.texts(apart, 20), "of the one with a client id");
        java.util.Set<String> got = new java.util.TreeSet<>();
        int[] counts = new int[2];
        long end = System.nanoTime() + Suite.PATIENCE_MS * 1_000_000;
        while (got.size() < 20 && System.nanoTime() < end) {
            for (int index = 0; index < 2; index++) {
                String text = World.text((index == 0 ? first : second).receive(20));
                if (text != null) {
                    Suite.check(got.add(text), text + " came twice");
                    counts[index]++;
                }
            }
        }
        Suite.same(20, got.size(), "messages");
        Suite.check(counts[0] > 0 && counts[1] > 0, "both get some: " + counts[0] + ", " + counts[1]);
        first.close();
        World.send(sender, topic, "rest");
        Suite.same("rest", World.text(World.take(second)), "the other goes on");
    }

    private static void sharedEnds(World world) throws Exception {
        Session session = world.session();
        Topic topic = topic(session);
        MessageConsumer consumer = session.createSharedConsumer(topic, "crew-" + topic.getTopicName());
        consumer.close();
        World.send(session, topic, "lost");
        consumer = session.createSharedConsumer(topic, "crew-" + topic.getTopicName());
        World.send(session, topic, "new");
        Suite.same("new", World.text(World.take(consumer)), "text");
        World.quiet(consumer);
    }

    private static void sharedDurable(World world) throws Exception {
        Session session = world.session();
        Topic topic = topic(session);
        String name = Suite.name("crew");
        session.createSharedDurableConsumer(topic, name).close();
        World.send(session, topic, "1", "2");
        Session other = world.session();
        MessageConsumer first = session.createSharedDurableConsumer(topic, name);
        MessageConsumer second = other.createSharedDurableConsumer(topic, name);
        Suite.same(List.of("1", "2"), World.texts(first, 2), "what came meanwhile");
        World.refused(JMSException.class, () -> {
            session.unsubscribe(name);
            return null;
        });
        first.close();
        second.close();
        session.unsubscribe(name);
        World.send(session, topic, "3");
        MessageConsumer anew = session.createSharedDurableConsumer(topic, name);
        World.quiet(anew);
        anew.close();
        session.unsubscribe(name);
    }

    private static void sharedChanged(World world) throws Exception {
        Session session = world.session();
        Topic topic = topic(session);
        String name = Suite.name("crew");
        MessageConsumer red = session.createSharedDurableConsumer(topic, name, "color = 'red'");
        World.refused(JMSException.class,
                () -> session.createSharedDurableConsumer(topic, name, "color = 'blue'"));
        paint(session, topic, "red 1");
        Suite.same("red 1", World.text(World.take(red)), "the first one goes on");
        red.close();
        paint(session, topic, "red 2", "blue 3");
        MessageConsumer blue = session.createSharedDurableConsumer(topic, name, "color = 'blue'");
        paint(session, topic, "blue 4");
        Suite.same("blue 4", World.text(World.take(blue)), "another selector");
        blue.close();
        session.unsubscribe(name);
    }

    private static void sharedOrNot(World world) throws Exception {
        Session session = session(client(world, Suite.name("client")));
        Topic topic = topic(session);
        MessageConsumer single = session.createDurableConsumer(topic, "inbox");
        World.refused(JMSException.class, () -> session.createSharedDurableConsumer(topic, "inbox"));
        single.close();
        World.refused(JMSException.class, () -> session.createSharedDurableConsumer(topic, "inbox"));
        session.unsubscribe("inbox");
        MessageConsumer shared = session.createSharedDurableConsumer(topic, "inbox");
        World.refused(JMSException.class, () -> session.createDurableConsumer(topic, "inbox"));
        shared.close();
        session.unsubscribe("inbox");
    }

    private static void clientIdClash(World world) throws Exception {
        String id = Suite.name("client");
        Connection first = client(world, id);
        World.refused(InvalidClientIDException.class, () -> client(world, id));
        Session session = session(first);
        Topic topic = topic(session);
        MessageConsumer consumer = session.createConsumer(topic);
        World.send(session, topic, "1");
        Suite.same("1", World.text(World.take(consumer)), "the first one goes on");
        first.close();
        client(world, id).close();
    }

    private static void restart(World world) throws Exception {
        OwnBroker broker = world.broker();
        Connection connection = world.connectTo(broker.port, "jms.clientID=ada");
        Session session = session(connection);
        Topic topic = session.createTopic("news");
        session.createDurableConsumer(topic, "inbox", "color = 'red'", false).close();
        session.createSharedDurableConsumer(topic, "crew").close();
        paint(session, topic, "red 1", "blue 2");
        connection.close();
        broker.restart();
        session = session(world.connectTo(broker.port, "jms.clientID=ada"));
        paint(session, topic, "blue 3", "red 4");
        MessageConsumer red = session.createDurableConsumer(topic, "inbox", "color = 'red'", false);
        Suite.same(List.of("red 1", "red 4"), World.texts(red, 2), "selected");
        World.quiet(red);
        MessageConsumer crew = session.createSharedDurableConsumer(topic, "crew");
        Suite.same(List.of("red 1", "blue 2", "blue 3", "red 4"), World.texts(crew, 4), "shared");
    }
}
