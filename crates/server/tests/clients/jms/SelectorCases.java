import jakarta.jms.DeliveryMode;
import jakarta.jms.JMSException;
import jakarta.jms.Message;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Queue;
import jakarta.jms.Session;
import java.util.Enumeration;
import java.util.List;

/** Selectors: which messages of a queue each one chooses. */
final class SelectorCases {
    /** A selector, and the messages that it chooses. */
    private static final String[][] TABLE = {
        {"TRUE", "abcdef"},
        {"FALSE", ""},
        {"color = 'red'", "ad"},
        {"color <> 'red'", "bc"},
        {"color IS NULL", "ef"},
        {"color IS NOT NULL", "abcd"},
        {"NOT (color = 'red')", "bc"},
        {"color = 'red' OR color IS NULL", "adef"},
        {"color = 'red' AND number > 1", "d"},
        {"missing = 1 OR number = 1", "a"},
        {"NOT (missing = 1)", ""},
        {"NOT (missing = 1 AND number = 99)", "abcdef"},
        {"missing IS NULL AND missing <> 1", ""},
        {"color LIKE 'r%'", "ad"},
        {"color LIKE '_lue'", "b"},
        {"color NOT LIKE '%e%'", ""},
        {"odd LIKE '50\\%%' ESCAPE '\\'", "a"},
        {"odd LIKE '50|_x' ESCAPE '|'", "b"},
        {"odd = 'it''s'", "c"},
        {"color IN ('blue', 'green')", "bc"},
        {"color NOT IN ('blue', 'green')", "ad"},
        {"number BETWEEN 2 AND 4", "bcd"},
        {"number NOT BETWEEN 2 AND 4", "aef"},
        {"number = 3.0", "c"},
        {"number > 2.5 AND number < 4E0", "c"},
        {"number + 1 = 3", "b"},
        {"number * 2 - 1 = 5", "c"},
        {"number / 2 = 2", "d"},
        {"-number = -6", "f"},
        {"number = 0x2", "b"},
        {"number = 03", "c"},
        {"real = 2.5", "b"},
        {"real > 2", "bcdef"},
        {"real = .25E1", "b"},
        {"real * 2 = 7.", "c"},
        {"big = 9223372036854775807", "a"},
        {"big = -9223372036854775808", "b"},
        {"flag", "ace"},
        {"NOT flag", "bdf"},
        {"flag = TRUE", "ace"},
        {"flag <> TRUE", "bdf"},
        {"text = 1", ""},
        {"text = '1'", "a"},
        {"number = '1'", ""},
        {"JMSPriority > 6", "ab"},
        {"JMSPriority = 4", "cdef"},
        {"JMSDeliveryMode = 'NON_PERSISTENT'", "b"},
        {"JMSDeliveryMode = 'PERSISTENT' AND JMSPriority = 9", "a"},
        {"JMSType = 'first'", "a"},
        {"JMSType IS NULL", "bcdef"},
        {"JMSCorrelationID = 'c-2'", "b"},
        {"JMSTimestamp > 0", "abcdef"},
        {"JMSMessageID IS NOT NULL", "abcdef"},
        {"JMSMessageID LIKE 'ID:%'", "abcdef"},
        {"color Like 'r%' aNd number iS nOt nUlL", "ad"},
        {"((number) = (((1))))", "a"},
        {"$x_1 = 'dollar'", "a"},
        {"number>=2 AND number<=3", "bc"},
        {"number <> 1 AND NOT number = 2 AND number < 5 OR number = 1", "acd"},
    };

    /** What no broker may take for a selector. */
    private static final String[] WRONG = {
        "color = ", "= 1", "color = 'open", "color LIKE 1", "number BETWEEN 1", "color IN ()", "(number = 1",
        "number = 1)", "NOT", "1 +", "color LIKE 'a' ESCAPE 'ab'", "number = 1 number = 2", "color ! 1",
        "number BETWEEN 'a' AND 'b'", "'text'", "color = 'a' AND", "and = 1",
    };

    private SelectorCases() {}

    static void register(Suite<World> suite) {
        suite.add("selector.what_each_one_chooses", SelectorCases::table);
        suite.add("selector.wrong_ones_are_refused", SelectorCases::wrong);
        suite.add("selector.consumers_take_their_own", SelectorCases::consumers);
        suite.add("selector.what_others_do_not_want_waits", SelectorCases::waits);
        suite.add("selector.a_message_deep_in_the_queue", SelectorCases::deep);
        suite.add("selector.returned_messages_are_chosen_again", SelectorCases::returned);
    }

    private static void fill(Session session, Queue queue) throws Exception {
        MessageProducer producer = session.createProducer(queue);
        for (int index = 0; index < 6; index++) {
            Message message = session.createTextMessage(String.valueOf((char) ('a' + index)));
            String color = new String[] {"red", "blue", "green", "red", null, null}[index];
            if (color != null) {
                message.setStringProperty("color", color);
            }
            String odd = new String[] {"50% off", "50_x", "it's", null, null, null}[index];
            if (odd != null) {
                message.setStringProperty("odd", odd);
            }
            message.setIntProperty("number", index + 1);
            message.setDoubleProperty("real", index + 1.5);
            message.setBooleanProperty("flag", index % 2 == 0);
            message.setStringProperty("text", String.valueOf(index + 1));
            message.setJMSCorrelationID("c-" + (index + 1));
            if (index == 0) {
                message.setLongProperty("big", Long.MAX_VALUE);
                message.setStringProperty("$x_1", "dollar");
                message.setJMSType("first");
            } else if (index == 1) {
                message.setLongProperty("big", Long.MIN_VALUE);
            }
            int mode = index == 1 ? DeliveryMode.NON_PERSISTENT : DeliveryMode.PERSISTENT;
            producer.send(message, mode, index == 0 ? 9 : index == 1 ? 8 : 4, 0);
        }
    }

    private static void table(World world) throws Exception {
        Session session = world.session("jms.validateSelector=false");
        Queue queue = World.queue(session);
        fill(session, queue);
        StringBuilder wrong = new StringBuilder();
        for (String[] row : TABLE) {
            StringBuilder found = new StringBuilder();
            try (var browser = session.createBrowser(queue, row[0])) {
                for (Enumeration<?> all = browser.getEnumeration(); all.hasMoreElements(); ) {
                    found.append(World.text((Message) all.nextElement()));
                }
            } catch (Exception error) {
                found.append(error);
            }
            if (!found.toString().equals(row[1])) {
                wrong.append("\n  " + row[0] + ": " + found + " instead of " + row[1]);
            }
        }
        Suite.check(wrong.length() == 0, wrong.toString());
    }

    private static void wrong(World world) throws Exception {
        Session session = world.session("jms.validateSelector=false");
        Queue queue = World.queue(session);
        for (String selector : WRONG) {
            try {
                World.refused(JMSException.class, () -> session.createConsumer(queue, selector));
            } catch (AssertionError error) {
                throw new AssertionError(selector + ": " + error.getMessage(), error);
            }
        }
        World.send(session, queue, "x");
        World.take(session.createConsumer(queue));
    }

    private static Message numbered(Session session, int number) throws Exception {
        Message message = session.createTextMessage(String.valueOf(number));
        message.setIntProperty("number", number);
        return message;
    }

    private static void consumers(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        MessageConsumer[] all = new MessageConsumer[4];
        for (int index = 0; index < 4; index++) {
            String range = "number BETWEEN " + index * 25 + " AND " + (index * 25 + 24);
            all[index] = world.session().createConsumer(queue, range);
        }
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 100; number++) {
            producer.send(numbered(session, number * 37 % 100));
        }
        for (int index = 0; index < 4; index++) {
            List<String> texts = World.texts(all[index], 25);
            for (String text : texts) {
                Suite.same(index, Integer.parseInt(text) / 25, "whose " + text + " is");
            }
            World.quiet(all[index]);
        }
    }

    private static void waits(World world) throws Exception {
        Session session = world.session();
        Queue queue = World.queue(session);
        MessageConsumer picky = session.createConsumer(queue, "number > 1000");
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 10; number++) {
            producer.send(numbered(session, number));
        }
        World.quiet(picky);
        producer.send(numbered(session, 1001));
        Suite.same("1001", World.text(World.take(picky)), "chosen");
        picky.close();
        List<String> rest = World.texts(session.createConsumer(queue), 10);
        Suite.same(List.of(World.numbers(0, 10)), rest, "the others, in order");
    }

    private static void deep(World world) throws Exception {
        Session session = world.session("jms.forceAsyncSend=true");
        Queue queue = World.queue(session);
        MessageProducer producer = session.createProducer(queue);
        producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
        for (int number = 0; number < 20_000; number++) {
            producer.send(numbered(session, number));
        }
        session.close();
        Session reader = world.session("jms.prefetchPolicy.all=0");
        MessageConsumer consumer = reader.createConsumer(queue, "number = 19999");
        Suite.same("19999", World.text(World.take(consumer)), "the last one");
        Suite.check(consumer.receiveNoWait() == null, "nothing else");
        consumer.close();
        consumer = reader.createConsumer(queue, "number = 3 OR number = 15000");
        Suite.same("3", World.text(consumer.receiveNoWait()), "found at once");
        Suite.same("15000", World.text(consumer.receiveNoWait()), "and the other");
    }

    private static void returned(World world) throws Exception {
        Session session = world.transacted();
        Queue queue = World.queue(session);
        MessageProducer producer = session.createProducer(queue);
        for (int number = 0; number < 6; number++) {
            producer.send(numbered(session, number));
        }
        session.commit();
        MessageConsumer consumer = session.createConsumer(queue, "number >= 3");
        Suite.same(List.of("3", "4"), World.texts(consumer, 2), "before the rollback");
        session.rollback();
        Suite.same(List.of("3", "4", "5"), World.texts(consumer, 3), "after it");
        session.commit();
        World.quiet(consumer);
        List<String> rest = World.texts(world.session().createConsumer(queue), 3);
        Suite.same(List.of("0", "1", "2"), rest, "the rest");
    }
}
