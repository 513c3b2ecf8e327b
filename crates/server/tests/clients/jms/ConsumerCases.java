import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** How consumers share a queue, and how they wait. */
final class ConsumerCases {
    private ConsumerCases() {}

    static void register(Suite<World> suite) {
        suite.add("consumer.receive_without_waiting", ConsumerCases::noWait);
        suite.add("consumer.without_prefetch_nothing_is_lost", ConsumerCases::noPrefetch);
        suite.add("consumer.credit_is_exact", ConsumerCases::credit);
        suite.add("consumer.listeners_share", ConsumerCases::listeners);
        suite.add("consumer.an_exclusive_one_gets_everything", Suite.OURS, ConsumerCases::exclusive);
        suite.add("consumer.groups_stick", ConsumerCases::groups);
        suite.add("consumer.a_stopped_connection_gets_nothing", ConsumerCases::stopped);
        suite.add("consumer.closing_returns_what_was_prefetched", ConsumerCases::closing);
        suite.add("consumer.of_a_deleted_queue_is_told", Suite.OURS, ConsumerCases::deletedQueue);
    }

    private static void noWait(World world) throws Exception {
        for (int prefetch : new int[] {0, 1, 1000}) {
            Session session = world.session("jms.prefetchPolicy.all=" + prefetch);
            Queue queue = World.queue(session);
            MessageConsumer consumer = session.createConsumer(queue);
            Suite.check(consumer.receiveNoWait() == null, "nothing is there");
            World.send(session, queue, "1", "2");
            Suite.same("1", World.text(consumer.receiveNoWait()), "with prefetch " + prefetch);
            Suite.same("2", World.text(consumer.receiveNoWait()), "with prefetch " + prefetch);
            Suite.check(consumer.receiveNoWait() == null, "nothing is left");
            Suite.check(consumer.receive(50) == null, "nothing comes");
        }
    }

    /** Two consumers that wait in turn for a short time: each message comes to one of them. */
    private static void noPrefetch(World world) throws Exception {
        Session sender = world.session();
        Queue queue = World.queue(sender);
        List<MessageConsumer> consumers = new ArrayList<>();
        for (int index = 0; index < 2; index++) {
            consumers.add(world.session("jms.prefetchPolicy.all=0").createConsumer(queue));
        }
        Thread producer = new Thread(() -> {
            try {
                for (String number : World.numbers(0, 200)) {
                    World.send(sender, queue, number);
                }
            } catch (JMSException error) {
                error.printStackTrace();
            }
        });
        producer.start();
        Set<String> got = new HashSet<>();
        long end = System.nanoTime() + Suite.PATIENCE_MS * 1_000_000;
        for (int turn = 0; got.size() < 200 && System.nanoTime() < end; turn++) {
            String text = World.text(consumers.get(turn % 2).receive(2));
            if (text != null) {
                Suite.check(got.add(text), text + " came twice");
                end = System.nanoTime() + Suite.PATIENCE_MS * 1_000_000;
            }
        }
        producer.join();
        Suite.same(200, got.size(), "messages");
    }

    private static void credit(World world) throws Exception {
        Session sender = world.session();
        Queue queue = World.queue(sender);
        Session three = world.session(Session.CLIENT_ACKNOWLEDGE, "jms.prefetchPolicy.all=3");
        MessageConsumer few = three.createConsumer(queue);
        World.send(sender, queue, World.numbers(0, 6));
        Thread.sleep(Suite.SILENCE_MS);
        MessageConsumer rest = sender.createConsumer(queue);
        Suite.same(List.of("3", "4", "5"), World.texts(rest, 3), "beyond the credit of the first");
        World.quiet(rest);
        Suite.same(List.of("0", "1", "2"), World.texts(few, 3), "within it");
    }

    private static void listeners(World world) throws Exception {
        Session sender = world.session();
        Queue queue = World.queue(sender);
        var got = new java.util.concurrent.LinkedBlockingQueue<String>();
        for (int index = 0; index < 3; index++) {
            world.session("jms.prefetchPolicy.all=5").createConsumer(queue).setMessageListener(message -> {
                try {
                    got.add(World.text(message));
                } catch (JMSException error) {
                    got.add(error.toString());
                }
            });
        }
        World.send(sender, queue, World.numbers(0, 100));
        Set<String> texts = new HashSet<>();
        for (int index = 0; index < 100; index++) {
            texts.add(Suite.take(got, "a message"));
        }
        Suite.same(Set.of(World.numbers(0, 100)), texts, "each once");
    }

    private static void exclusive(World world) throws Exception {
        String name = World.declare(Map.of("x-single-active-consumer", true));
        Session session = world.session();
        Queue queue = session.createQueue(name);
        MessageConsumer first = world.session().createConsumer(queue);
        MessageConsumer second = world.session().createConsumer(queue);
        World.send(session, queue, World.numbers(0, 10));
        Suite.same(List.of(World.numbers(0, 10)), World.texts(first, 10), "the first");
        World.quiet(second);
        first.close();
        World.send(session, queue, "later");
        Suite.same("later", World.text(World.take(second)), "the second");
    }

    private static void groups(World world) throws Exception {
        Session sender = world.session();
        Queue queue = World.queue(sender);
        MessageConsumer[] consumers = new MessageConsumer[2];
        for (int index = 0; index < 2; index++) {
            consumers[index] = world.session("jms.prefetchPolicy.all=1").createConsumer(queue);
        }
        MessageProducer producer = sender.createProducer(queue);
        for (int number = 0; number < 120; number++) {
            Message message = sender.createTextMessage(number % 12 + " " + number);
            message.setStringProperty("JMSXGroupID", "group " + number % 12);
            message.setIntProperty("JMSXGroupSeq", number / 12 + 1);
            producer.send(message);
        }
        Map<String, Integer> owners = new HashMap<>();
        Map<String, Integer> last = new HashMap<>();
        long end = System.nanoTime() + Suite.PATIENCE_MS * 1_000_000;
        for (int came = 0; came < 120; ) {
            Suite.check(System.nanoTime() < end, "only " + came + " messages came");
            for (int index = 0; index < 2; index++) {
                Message message = consumers[index].receive(20);
                if (message == null) {
                    continue;
                }
                came++;
                String group = message.getStringProperty("JMSXGroupID");
                Integer before = owners.put(group, index);
                Suite.check(before == null || before == index, group + " went to both");
                int sequence = message.getIntProperty("JMSXGroupSeq");
                Suite.same(last.getOrDefault(group, 0) + 1, sequence, "sequence of " + group);
                last.put(group, sequence);
            }
        }
        Suite.same(Set.of(0, 1), new HashSet<>(owners.values()), "both have groups");
        groupsMoveOn(sender, queue, consumers, owners);
    }

    /** The groups of a consumer that has gone are another's. */
    private static void groupsMoveOn(
            Session sender, Queue queue, MessageConsumer[] consumers, Map<String, Integer> owners)
            throws Exception {
        var ofFirst = owners.entrySet().stream().filter(it -> it.getValue() == 0).findAny();
        String group = ofFirst.get().getKey();
        consumers[0].close();
        Message message = sender.createTextMessage("inherited");
        message.setStringProperty("JMSXGroupID", group);
        sender.createProducer(queue).send(message);
        Suite.same("inherited", World.text(World.take(consumers[1])), "the other's");
    }

    private static void stopped(World world) throws Exception {
        var connection = world.connect();
        Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
        Queue queue = World.queue(session);
        MessageConsumer consumer = session.createConsumer(queue);
        connection.stop();
        World.send(session, queue, "x");
        World.quiet(consumer);
        connection.start();
        Suite.same("x", World.text(World.take(consumer)), "text");
    }

    private static void closing(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 50));
        for (int time = 0; time < 10; time++) {
            MessageConsumer consumer = session.createConsumer(queue);
            for (String number : World.numbers(time * 5, 5)) {
                Message message = World.take(consumer);
                Suite.same(number, World.text(message), "order");
                Suite.same(1, World.count(message), "count");
            }
            consumer.close();
        }
    }

    private static void deletedQueue(World world) throws Exception {
        String name = World.declare(Map.of());
        var connection = world.connect();
        var errors = new java.util.concurrent.LinkedBlockingQueue<JMSException>();
        connection.setExceptionListener(errors::add);
        Session session = connection.createSession(Session.AUTO_ACKNOWLEDGE);
        Queue other = World.queue(session);
        MessageConsumer doomed = session.createConsumer(session.createQueue(name));
        MessageConsumer healthy = session.createConsumer(other);
        try (var plain = World.plainFactory(Suite.amqpPort()).newConnection()) {
            plain.createChannel().queueDelete(name);
        }
        World.refused(JMSException.class, () -> doomed.receive(Suite.PATIENCE_MS));
        World.send(session, other, "x");
        Suite.same("x", World.text(World.take(healthy)), "the others go on");
    }
}
