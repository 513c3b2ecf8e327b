import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;

/** Transacted sessions while their broker is killed, again and again: a transaction is done or not done. */
final class CrashCases {
    /** How many messages a transaction of a producer sends to each of its queues. */
    static final int PARTS = 3;
    /** How many producers there are. */
    private static final int PRODUCERS = 2;
    /** Every so many rounds all queues are emptied and looked at. */
    private static final int CHECK_EVERY = 5;

    private CrashCases() {}

    static void register(Suite<World> suite) {
        suite.add("crash.transactions_are_whole", OwnBroker.isThere(), CrashCases::kills);
    }

    private static int rounds() {
        String rounds = System.getenv("CRASH_ROUNDS");
        return rounds == null ? 20 : Integer.parseInt(rounds);
    }

    private static void kills(World world) throws Exception {
        long seed = System.nanoTime();
        System.out.println("note " + rounds() + " rounds, seed " + seed);
        Random random = new Random(seed);
        OwnBroker broker = world.broker();
        CrashHistory history = new CrashHistory();
        for (int round = 1; round <= rounds(); round++) {
            int before = history.commits();
            List<Thread> work = new ArrayList<>();
            for (int producer = 0; producer < PRODUCERS; producer++) {
                int number = producer;
                work.add(begin(history, () -> produce(broker.port, number, history)));
            }
            work.add(begin(history, () -> move(broker.port, history, random.nextInt())));
            long end = System.nanoTime() + Suite.PATIENCE_MS * 1_000_000;
            while (history.commits() < before + 5) {
                Suite.check(System.nanoTime() < end, "no commits in round " + round);
                Thread.sleep(1);
            }
            // The moment of the kill is what differs from round to round.
            Thread.sleep(random.nextInt(150));
            broker.kill();
            for (Thread thread : work) {
                thread.join();
            }
            history.killed();
            broker.start();
            if (round % CHECK_EVERY == 0 || round == rounds()) {
                check(broker.port, history);
            }
        }
        System.out.println("note " + history);
    }

    private interface Work {
        void run() throws JMSException;
    }

    /** Begins work that ends with its connection. */
    private static Thread begin(CrashHistory history, Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (JMSException lost) {
                // The broker was killed, as it should be.
            } catch (RuntimeException | AssertionError broken) {
                history.broken(broken);
            }
        });
        thread.start();
        return thread;
    }

    private static Session session(int port) throws JMSException {
        Connection connection = World.factory(port).createConnection();
        connection.start();
        return connection.createSession(Session.SESSION_TRANSACTED);
    }

    /** Sends to two queues in each transaction. */
    private static void produce(int port, int producer, CrashHistory history) throws JMSException {
        Session session = session(port);
        MessageProducer work = session.createProducer(session.createQueue("work"));
        MessageProducer copy = session.createProducer(session.createQueue("copy"));
        while (true) {
            long first = history.attempt(producer);
            for (int part = 0; part < PARTS; part++) {
                String text = producer + " " + (first + part);
                work.send(session.createTextMessage(text), DeliveryMode.PERSISTENT, 4, 0);
                copy.send(session.createTextMessage(text), DeliveryMode.PERSISTENT, 4, 0);
            }
            int before = history.committing();
            session.commit();
            history.committed(producer, first, before);
        }
    }

    /** Takes from `work` and gives to `done` in one transaction; undoes some of them. */
    private static void move(int port, CrashHistory history, int seed) throws JMSException {
        Random random = new Random(seed);
        Session session = session(port);
        MessageConsumer work = session.createConsumer(session.createQueue("work"));
        MessageProducer done = session.createProducer(session.createQueue("done"));
        while (true) {
            List<String> moving = new ArrayList<>();
            int wanted = 1 + random.nextInt(4);
            for (int index = 0; index < wanted; index++) {
                Message message = work.receive(1000);
                if (message == null) {
                    break;
                }
                String text = World.text(message);
                history.received(text, World.count(message));
                moving.add(text);
                done.send(session.createTextMessage(text), DeliveryMode.PERSISTENT, 4, 0);
            }
            if (random.nextInt(5) == 0) {
                session.rollback();
                history.undone(moving);
            } else {
                history.moving(moving);
                int before = history.committing();
                session.commit();
                history.moved(moving, before);
            }
        }
    }

    /** Empties all queues and checks every promise. */
    private static void check(int port, CrashHistory history) throws Exception {
        for (String queue : List.of("work", "copy", "done")) {
            try (Connection connection = World.factory(port).createConnection()) {
                connection.start();
                Session session = connection.createSession(Session.SESSION_TRANSACTED);
                MessageConsumer consumer = session.createConsumer(session.createQueue(queue));
                List<Message> found = new ArrayList<>();
                for (Message next = consumer.receiveNoWait(); next != null; next = consumer.receiveNoWait()) {
                    found.add(next);
                }
                session.commit();
                history.drained(queue, found);
            }
        }
        history.check();
    }
}
