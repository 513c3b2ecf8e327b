import jakarta.jms.BytesMessage;
import jakarta.jms.CompletionListener;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MapMessage;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.ObjectMessage;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import jakarta.jms.StreamMessage;
import jakarta.jms.TextMessage;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** What producers send, how, and when it arrives. */
final class SendCases {
    private SendCases() {}

    static void register(Suite<World> suite) {
        suite.add("send.every_kind_of_message", SendCases::everyKind);
        suite.add("send.headers_and_properties", SendCases::headersAndProperties);
        suite.add("send.ten_priorities", SendCases::tenPriorities);
        suite.add("send.persistent_and_other_messages_stay_in_order", SendCases::mixedOrder);
        suite.add("send.what_has_expired_is_not_seen", SendCases::expiry);
        suite.add("send.a_delay_is_kept", SendCases::delay);
        suite.add("send.equal_delays_keep_the_order", SendCases::delayedOrder);
        suite.add("send.asynchronous_sends_complete_in_order", SendCases::asynchronous);
        suite.add("send.large_bodies", SendCases::largeBodies);
        suite.add("send.a_producer_opens_at_once", SendCases::producerOpens);
        suite.add("send.one_producer_for_all_destinations", SendCases::anonymous);
        suite.add("send.a_full_queue_refuses", Suite.OURS, SendCases::fullQueue);
    }

    private static void everyKind(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        MessageProducer producer = session.createProducer(queue);
        producer.send(session.createMessage());
        producer.send(session.createTextMessage("täxt"));
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(new byte[] {0, -1, 7});
        producer.send(bytes);
        MapMessage map = session.createMapMessage();
        map.setLong("l", Long.MIN_VALUE);
        map.setChar("c", 'ß');
        map.setBytes("b", new byte[] {1});
        map.setDouble("d", -0.5);
        producer.send(map);
        StreamMessage stream = session.createStreamMessage();
        stream.writeBoolean(true);
        stream.writeShort((short) -3);
        stream.writeString("s");
        producer.send(stream);
        producer.send(session.createObjectMessage(new ArrayList<>(List.of("a", 1))));

        MessageConsumer consumer = session.createConsumer(queue);
        Message plain = World.take(consumer);
        Suite.check(!(plain instanceof TextMessage) && !(plain instanceof BytesMessage), "kind: " + plain);
        Suite.same("täxt", World.text(World.take(consumer)), "text");
        bytes = (BytesMessage) World.take(consumer);
        byte[] got = new byte[(int) bytes.getBodyLength()];
        bytes.readBytes(got);
        Suite.same("[0, -1, 7]", Arrays.toString(got), "bytes");
        map = (MapMessage) World.take(consumer);
        Suite.same(Long.MIN_VALUE, map.getLong("l"), "long");
        Suite.same('ß', map.getChar("c"), "char");
        Suite.same("[1]", Arrays.toString(map.getBytes("b")), "bytes of the map");
        Suite.same(-0.5, map.getDouble("d"), "double");
        stream = (StreamMessage) World.take(consumer);
        Suite.check(stream.readBoolean(), "boolean");
        Suite.same((short) -3, stream.readShort(), "short");
        Suite.same("s", stream.readString(), "string");
        Suite.same(List.of("a", 1), ((ObjectMessage) World.take(consumer)).getObject(), "object");
    }

    private static void headersAndProperties(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        Map<String, Object> properties = Map.of("boolean", true, "byte", (byte) -1, "short", (short) 300,
                "int", 70_000, "long", 1L << 40, "float", 1.5f, "double", 2.25, "string", "ü");
        Message sent = session.createTextMessage("x");
        for (var property : properties.entrySet()) {
            sent.setObjectProperty(property.getKey(), property.getValue());
        }
        sent.setJMSCorrelationID("correlation");
        sent.setJMSType("type");
        Queue reply = World.queue(session);
        sent.setJMSReplyTo(reply);
        session.createProducer(queue).send(sent, DeliveryMode.NON_PERSISTENT, 7, 60_000);

        Message got = World.take(session.createConsumer(queue));
        for (var property : properties.entrySet()) {
            Object found = got.getObjectProperty(property.getKey());
            Suite.same(property.getValue(), found, "property " + property.getKey());
        }
        Suite.same("correlation", got.getJMSCorrelationID(), "correlation id");
        Suite.same("type", got.getJMSType(), "type");
        Suite.same(reply, got.getJMSReplyTo(), "reply-to");
        Suite.same(queue, got.getJMSDestination(), "destination");
        Suite.same(sent.getJMSMessageID(), got.getJMSMessageID(), "message id");
        Suite.same(sent.getJMSTimestamp(), got.getJMSTimestamp(), "timestamp");
        Suite.same(sent.getJMSExpiration(), got.getJMSExpiration(), "expiration");
        Suite.same(DeliveryMode.NON_PERSISTENT, got.getJMSDeliveryMode(), "delivery mode");
        Suite.same(7, got.getJMSPriority(), "priority");
        Suite.same(1, World.count(got), "delivery count");
        Suite.check(!got.getJMSRedelivered(), "redelivered");
    }

    private static void tenPriorities(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        MessageProducer producer = session.createProducer(queue);
        for (int priority : new int[] {3, 9, 0, 7, 1, 8, 5, 2, 6, 3, 9, 0, 7, 1, 8, 5, 2, 6}) {
            producer.setPriority(priority);
            producer.send(session.createTextMessage(String.valueOf(priority)));
        }
        producer.setPriority(Message.DEFAULT_PRIORITY);
        producer.send(session.createTextMessage("4"));
        producer.send(session.createTextMessage("4"));
        List<String> got = World.texts(session.createConsumer(queue), 20);
        Suite.same("99887766554433221100", String.join("", got), "order");
    }

    private static void mixedOrder(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 200; number++) {
            int mode = number % 3 == 0 ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT;
            long life = number % 5 == 0 ? 60_000 : 0;
            producer.send(session.createTextMessage(String.valueOf(number)), mode, 4, life);
        }
        List<String> got = World.texts(session.createConsumer(queue), 200);
        Suite.same(List.of(World.numbers(0, 200)), got, "order");
    }

    private static void expiry(World world) throws Exception {
        Session session = world.session("jms.localMessageExpiry=false");
        Queue queue = World.queue(session);
        MessageProducer producer = session.createProducer(queue);
        producer.send(session.createTextMessage("gone"), DeliveryMode.PERSISTENT, 4, 100);
        producer.send(session.createTextMessage("stays"), DeliveryMode.PERSISTENT, 4, 60_000);
        Thread.sleep(300);
        var browsed = session.createBrowser(queue).getEnumeration();
        Suite.same("stays", World.text((Message) browsed.nextElement()), "browsed");
        Suite.check(!browsed.hasMoreElements(), "only one is browsed");
        MessageConsumer consumer = session.createConsumer(queue);
        Suite.same("stays", World.text(World.take(consumer)), "received");
        World.quiet(consumer);
    }

    private static void delay(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        MessageConsumer consumer = session.createConsumer(queue);
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryDelay(600);
        Message late = session.createTextMessage("late");
        long begun = System.currentTimeMillis();
        producer.send(late);
        producer.setDeliveryDelay(0);
        producer.send(session.createTextMessage("now"));
        Suite.same("now", World.text(World.take(consumer)), "first");
        Message got = World.take(consumer);
        long passed = System.currentTimeMillis() - begun;
        Suite.same("late", World.text(got), "second");
        Suite.check(passed >= 600, "after " + passed + " ms");
        Suite.same(late.getJMSDeliveryTime(), got.getJMSDeliveryTime(), "delivery time");
        delayInATransaction(world, queue, consumer);
    }

    private static void delayInATransaction(World world, Queue queue, MessageConsumer consumer)
            throws Exception {
        Session session = world.transacted();
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryDelay(400);
        long begun = System.currentTimeMillis();
        producer.send(session.createTextMessage("committed"));
        Thread.sleep(200);
        session.commit();
        Suite.same("committed", World.text(World.take(consumer)), "after the commit");
        long passed = System.currentTimeMillis() - begun;
        Suite.check(passed >= 400, "after " + passed + " ms");
    }

    private static void delayedOrder(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryDelay(500);
        producer.setDisableMessageTimestamp(true);
        for (String number : World.numbers(0, 50)) {
            producer.send(session.createTextMessage(number));
        }
        List<String> got = World.texts(session.createConsumer(queue), 50);
        Suite.same(List.of(World.numbers(0, 50)), got, "order");
    }

    private static void asynchronous(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        BlockingQueue<String> done = new LinkedBlockingQueue<>();
        CompletionListener listener = new CompletionListener() {
            @Override
            public void onCompletion(Message message) {
                try {
                    done.add(World.text(message));
                } catch (Exception error) {
                    done.add(error.toString());
                }
            }

            @Override
            public void onException(Message message, Exception error) {
                done.add(error.toString());
            }
        };
        MessageProducer producer = session.createProducer(queue);
        for (String number : World.numbers(0, 500)) {
            producer.send(session.createTextMessage(number), listener);
        }
        for (String number : World.numbers(0, 500)) {
            Suite.same(number, Suite.take(done, "a completion"), "completion");
        }
        Suite.same("0", World.text(World.take(session.createConsumer(queue))), "first");
    }

    private static void largeBodies(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        MessageProducer producer = session.createProducer(queue);
        byte[] body = new byte[8 << 20];
        for (int index = 0; index < body.length; index++) {
            body[index] = (byte) (index * 31 + (index >> 12));
        }
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(body);
        producer.send(bytes);
        String text = "déjà vu ".repeat(100_000);
        producer.send(session.createTextMessage(text));
        MessageConsumer consumer = session.createConsumer(queue);
        byte[] got = new byte[body.length];
        BytesMessage received = (BytesMessage) World.take(consumer);
        Suite.same((long) body.length, received.getBodyLength(), "length");
        received.readBytes(got);
        Suite.check(Arrays.equals(body, got), "the body has changed");
        Suite.same(text, World.text(World.take(consumer)), "text");
    }

    /** Also with every outcome that a client names as possible. */
    private static void producerOpens(World world) throws Exception {
        Session session = world.session();
        long begun = System.nanoTime();
        MessageProducer producer = session.createProducer(World.queue(session));
        long passed = (System.nanoTime() - begun) / 1_000_000;
        Suite.check(passed < 1000, "took " + passed + " ms");
        producer.send(session.createTextMessage("x"));
    }

    private static void anonymous(World world) throws Exception {
        Session session = world.session();
        MessageProducer producer = session.createProducer(null);
        for (String number : World.numbers(0, 5)) {
            Queue queue = World.queue(session);
            MessageConsumer consumer = session.createConsumer(queue);
            producer.send(queue, session.createTextMessage(number));
            Suite.same(number, World.text(World.take(consumer)), "text");
        }
    }

    private static void fullQueue(World world) throws Exception {
        String name = World.declare(Map.of("x-max-length", 2, "x-overflow", "reject-publish"));
        Session session = world.session();
        Queue queue = session.createQueue(name);
        World.send(session, queue, "1", "2");
        World.refused(jakarta.jms.JMSException.class, () -> {
            World.send(session, queue, "3");
            return null;
        });
        MessageConsumer consumer = session.createConsumer(queue);
        Suite.same(List.of("1", "2"), World.texts(consumer, 2), "texts");
        World.quiet(consumer);
    }
}
