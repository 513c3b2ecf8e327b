import com.rabbitmq.client.Channel;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.Queue;
import jakarta.jms.QueueBrowser;
import jakarta.jms.Session;
import java.util.ArrayList;
import java.util.Enumeration;
import java.util.List;

/** Browsers, which look and take nothing. */
final class BrowserCases {
    /** How many messages of 1 KiB there are, and how many of their bytes the broker may keep in memory. */
    private static final int PAGED = 200_000;
    private static final String RESIDENT = "32MiB";
    private static final long PEAK_KIB_MAX = 160 << 10;

    private BrowserCases() {}

    static void register(Suite<World> suite) {
        suite.add("browser.sees_all_and_takes_nothing", BrowserCases::all);
        suite.add("browser.has_selectors", BrowserCases::selector);
        suite.add("browser.of_nothing", BrowserCases::nothing);
        suite.add("browser.sees_priorities_in_order", BrowserCases::priorities);
        suite.add("browser.beside_a_consumer", BrowserCases::besideConsumer);
        suite.add("browser.of_messages_on_the_disk", OwnBroker.isThere(), BrowserCases::paged);
    }

    static List<String> browse(QueueBrowser browser) throws Exception {
        List<String> texts = new ArrayList<>();
        for (Enumeration<?> all = browser.getEnumeration(); all.hasMoreElements(); ) {
            texts.add(World.text((Message) all.nextElement()));
        }
        return texts;
    }

    private static void all(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 300));
        for (int time = 0; time < 3; time++) {
            List<String> texts = browse(session.createBrowser(queue));
            Suite.same(List.of(World.numbers(0, 300)), texts, "browsed");
        }
        MessageConsumer consumer = session.createConsumer(queue);
        for (String number : World.numbers(0, 300)) {
            Message message = World.take(consumer);
            Suite.same(number, World.text(message), "taken");
            Suite.same(1, World.count(message), "browsing does not count");
        }
    }

    private static void selector(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        var producer = session.createProducer(queue);
        for (String number : World.numbers(0, 20)) {
            Message message = session.createTextMessage(number);
            message.setIntProperty("number", Integer.parseInt(number));
            producer.send(message);
        }
        List<String> texts = browse(session.createBrowser(queue, "number = 3 OR number = 17"));
        Suite.same(List.of("3", "17"), texts, "browsed");
    }

    private static void nothing(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        session.createConsumer(queue).close();
        Suite.same(List.of(), browse(session.createBrowser(queue)), "browsed");
    }

    private static void priorities(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        var producer = session.createProducer(queue);
        for (int priority : new int[] {1, 9, 4, 9, 1}) {
            producer.setPriority(priority);
            producer.send(session.createTextMessage(String.valueOf(priority)));
        }
        List<String> texts = browse(session.createBrowser(queue));
        Suite.same(List.of("9", "9", "4", "1", "1"), texts, "browsed");
    }

    private static void besideConsumer(World world) throws Exception {
        Session session = world.session(Session.CLIENT_ACKNOWLEDGE, "jms.prefetchPolicy.all=0");
        Queue queue = World.queue(session);
        World.send(session, queue, World.numbers(0, 5));
        MessageConsumer consumer = session.createConsumer(queue);
        World.take(consumer).acknowledge();
        Session other = world.session();
        Suite.same(List.of("1", "2", "3", "4"), browse(other.createBrowser(queue)), "browsed");
        Suite.same("1", World.text(World.take(consumer)), "the consumer goes on");
    }

    private static void paged(World world) throws Exception {
        OwnBroker broker = world.broker("--resident-bytes-max", RESIDENT);
        byte[] body = new byte[1024];
        try (var connection = World.plainFactory(broker.port).newConnection()) {
            Channel channel = connection.createChannel();
            channel.queueDeclare("long", true, false, false, null);
            channel.confirmSelect();
            for (int number = 0; number < PAGED; number++) {
                body[0] = (byte) (number >> 16);
                body[1] = (byte) (number >> 8);
                body[2] = (byte) number;
                channel.basicPublish("", "long", null, body);
            }
            channel.waitForConfirmsOrDie(6 * Suite.PATIENCE_MS);
        }
        Session session = world.connectTo(broker.port).createSession(Session.AUTO_ACKNOWLEDGE);
        Queue queue = session.createQueue("long");
        int expected = 0;
        for (Enumeration<?> all = session.createBrowser(queue).getEnumeration(); all.hasMoreElements(); ) {
            byte[] got = ((Message) all.nextElement()).getBody(byte[].class);
            int number = (got[0] & 255) << 16 | (got[1] & 255) << 8 | got[2] & 255;
            Suite.same(expected++, number, "order");
        }
        Suite.same(PAGED, expected, "browsed");
        long peak = broker.peakKib();
        Suite.check(peak < PEAK_KIB_MAX, "the broker had up to " + peak + " KiB");
        Message first = World.take(session.createConsumer(queue));
        Suite.same(1, World.count(first), "nothing was taken");
    }
}
