import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageListener;
import javax.jms.TextMessage;
import org.springframework.jms.connection.CachingConnectionFactory;
import org.springframework.jms.core.JmsTemplate;
import org.springframework.jms.listener.DefaultMessageListenerContainer;
import org.springframework.jms.listener.SessionAwareMessageListener;
import org.springframework.jms.listener.adapter.MessageListenerAdapter;

/** A shop on Spring JMS: it answers about prices, tries orders until they succeed, sends news to branches. */
final class SpringCases {
    private SpringCases() {}

    static void register(Suite<World> suite) {
        suite.add("spring.requests_are_answered", SpringCases::prices);
        suite.add("spring.work_that_fails_becomes_a_dead_letter", Suite.OURS, SpringCases::orders);
        suite.add("spring.a_durable_subscription_over_restarts", OwnBroker.isThere(), SpringCases::news);
    }

    private static JmsTemplate template(World world, int port) {
        CachingConnectionFactory factory = new CachingConnectionFactory(World.factory(port));
        world.closing(factory::destroy);
        JmsTemplate template = new JmsTemplate(factory);
        template.setReceiveTimeout(Suite.PATIENCE_MS);
        return template;
    }

    /** A container that is not started yet. */
    private static DefaultMessageListenerContainer container(
            World world, int port, String destination, Object listener) {
        DefaultMessageListenerContainer container = new DefaultMessageListenerContainer();
        container.setConnectionFactory(World.factory(port));
        container.setDestinationName(destination);
        container.setMessageListener(listener);
        container.setRecoveryInterval(100);
        container.setReceiveTimeout(200);
        world.closing(container::destroy);
        return container;
    }

    private static void start(DefaultMessageListenerContainer container) {
        container.afterPropertiesSet();
        container.start();
    }

    /** Answers with the price of what it is asked for. */
    public static final class PriceList {
        public String price(String article) {
            return article + " costs " + article.length();
        }
    }

    private static void prices(World world) throws Exception {
        String queue = Suite.name("prices");
        MessageListenerAdapter listener = new MessageListenerAdapter(new PriceList());
        listener.setDefaultListenerMethod("price");
        DefaultMessageListenerContainer container = container(world, Suite.amqpPort(), queue, listener);
        container.setConcurrency("3-3");
        start(container);
        JmsTemplate template = template(world, Suite.amqpPort());
        for (String article : List.of("tea", "bread", "honey")) {
            Message answer = template.sendAndReceive(queue, session -> session.createTextMessage(article));
            Suite.check(answer != null, "no answer for " + article);
            Suite.same(article + " costs " + article.length(), ((TextMessage) answer).getText(), "answer");
        }
    }

    private static void orders(World world) throws Exception {
        String dead = World.declare(Map.of());
        String orders = World.declare(Map.of("x-queue-type", "quorum", "x-delivery-limit", 3,
                "x-dead-letter-exchange", "", "x-dead-letter-routing-key", dead));
        String shipped = Suite.name("shipped");
        Map<String, Integer> tries = new HashMap<>();
        SessionAwareMessageListener<TextMessage> ship = (order, session) -> {
            int count = order.getIntProperty("JMSXDeliveryCount");
            tries.put(order.getText(), count);
            var to = session.createQueue(shipped);
            session.createProducer(to).send(session.createTextMessage(order.getText() + " shipped"));
            if (order.getText().equals("poison") || order.getText().equals("second try") && count == 1) {
                throw new IllegalStateException("cannot ship " + order.getText());
            }
        };
        DefaultMessageListenerContainer container = container(world, Suite.amqpPort(), orders, ship);
        container.setSessionTransacted(true);
        container.setErrorHandler(error -> {});
        start(container);
        JmsTemplate template = template(world, Suite.amqpPort());
        template.setSessionTransacted(true);
        for (String order : List.of("first try", "poison", "second try", "last")) {
            template.convertAndSend(orders, order);
        }
        Suite.same("poison", template.receiveAndConvert(dead), "dead letter");
        for (String order : List.of("first try", "second try", "last")) {
            Suite.same(order + " shipped", template.receiveAndConvert(shipped), "shipped");
        }
        template.setReceiveTimeout(Suite.SILENCE_MS);
        Suite.same(null, template.receiveAndConvert(shipped), "nothing else is shipped");
        Suite.same(null, template.receiveAndConvert(orders), "nothing is left to do");
        Suite.same(4, tries.get("poison"), "tries of the poison");
        Suite.same(2, tries.get("second try"), "tries of the second");
    }

    private static void news(World world) throws Exception {
        OwnBroker broker = world.closing(new OwnBroker());
        BlockingQueue<String> read = new LinkedBlockingQueue<>();
        MessageListener reader = message -> {
            try {
                read.add(((TextMessage) message).getText());
            } catch (JMSException error) {
                read.add(error.toString());
            }
        };
        DefaultMessageListenerContainer branch = branch(world, broker.port, reader);
        template(broker.port, "today");
        Suite.same("today", Suite.take(read, "news"), "while it is there");
        branch.shutdown();
        template(broker.port, "while the branch is closed");
        broker.restart();
        template(broker.port, "after the restart");
        branch = branch(world, broker.port, reader);
        Suite.same("while the branch is closed", Suite.take(read, "news"), "first");
        Suite.same("after the restart", Suite.take(read, "news"), "second");
        broker.restart();
        template(broker.port, "the branch has come back by itself");
        String third = Suite.take(read, "news");
        if (third.equals("after the restart")) {
            // The broker went before the branch had committed what it had read.
            third = Suite.take(read, "news");
        }
        Suite.same("the branch has come back by itself", third, "third");
    }

    private static DefaultMessageListenerContainer branch(World world, int port, Object reader) {
        DefaultMessageListenerContainer branch = container(world, port, "news", reader);
        branch.setPubSubDomain(true);
        branch.setSubscriptionDurable(true);
        branch.setDurableSubscriptionName("branch");
        branch.setClientId("shop-7");
        branch.setSessionTransacted(true);
        branch.setErrorHandler(error -> {});
        start(branch);
        Suite.check(waitFor(branch), "the subscription is not there");
        return branch;
    }

    private static boolean waitFor(DefaultMessageListenerContainer container) {
        long end = System.nanoTime() + Suite.PATIENCE_MS * 1_000_000;
        while (System.nanoTime() < end) {
            if (container.isRegisteredWithDestination()) {
                return true;
            }
            Thread.yield();
        }
        return false;
    }

    /** Publishes one text as news, by a template of its own. */
    private static void template(int port, String text) {
        JmsTemplate template = new JmsTemplate(World.factory(port));
        template.setPubSubDomain(true);
        template.convertAndSend("news", text);
    }
}
