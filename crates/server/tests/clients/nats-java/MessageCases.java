import io.nats.client.Connection;
import io.nats.client.Message;
import io.nats.client.Subscription;
import io.nats.client.impl.Headers;
import io.nats.client.impl.NatsMessage;
import java.time.Duration;
import java.util.List;
import java.util.concurrent.BlockingQueue;

/** Messages from publishers to listeners. */
final class MessageCases {
    private static final int MANY = 20_000;

    private MessageCases() {}

    static void register(Suite<World> suite) {
        suite.add("messages arrive in their order", MessageCases::order);
        suite.add("wildcards stand for tokens", MessageCases::wildcards);
        suite.add("one of a group gets each message", MessageCases::groups);
        suite.add("headers pass as they are", MessageCases::headers);
        suite.add("payloads of all sizes", MessageCases::sizes);
        suite.add("a subscription ends after so many messages", MessageCases::ends);
        suite.add("a client need not hear itself", MessageCases::echo);
    }

    private static void order(World world) throws Exception {
        Connection publisher = world.connect();
        String subject = World.subject();
        BlockingQueue<Message> got = World.listen(world.connect(), subject);
        for (int number = 0; number < MANY; number++) {
            publisher.publish(subject, World.bytes(number));
        }
        for (int number = 0; number < MANY; number++) {
            Message message = Suite.take(got, "message " + number);
            Suite.same(String.valueOf(number), World.text(message), "body");
        }
    }

    private static void wildcards(World world) throws Exception {
        Connection client = world.connect();
        String subject = World.subject();
        BlockingQueue<Message> one = World.listen(client, subject + ".*");
        BlockingQueue<Message> many = World.listen(client, subject + ".>");
        for (String end : List.of("", ".a", ".a.b")) {
            client.publish(subject + end, World.bytes(end));
        }
        client.publish(subject + ".end", World.bytes("end"));
        for (String end : List.of(".a", "end")) {
            Suite.same(end, World.text(Suite.take(one, end)), "by *");
        }
        for (String end : List.of(".a", ".a.b", "end")) {
            Suite.same(end, World.text(Suite.take(many, end)), "by >");
        }
    }

    private static void groups(World world) throws Exception {
        Connection publisher = world.connect();
        String subject = World.subject();
        BlockingQueue<Message> one = World.listen(world.connect(), subject, "workers");
        BlockingQueue<Message> other = World.listen(world.connect(), subject, "workers");
        BlockingQueue<Message> all = World.listen(world.connect(), subject);
        for (int number = 0; number < 1_000; number++) {
            publisher.publish(subject, World.bytes(number));
        }
        for (int number = 0; number < 1_000; number++) {
            Suite.take(all, "message " + number);
        }
        long end = System.nanoTime() + World.PATIENCE.toNanos();
        while (one.size() + other.size() < 1_000 && System.nanoTime() < end) {
            Thread.sleep(1);
        }
        Suite.same(1_000, one.size() + other.size(), "what the group got");
        Suite.check(Math.min(one.size(), other.size()) > 100, "fairly shared: " + one.size());
    }

    private static void headers(World world) throws Exception {
        Connection client = world.connect();
        String subject = World.subject();
        BlockingQueue<Message> got = World.listen(client, subject);
        Headers headers = new Headers();
        headers.add("Many", "1", "2");
        headers.add("many", "3");
        headers.add("Empty", "");
        byte[] body = {0, 13, 10, -1};
        client.publish(NatsMessage.builder().subject(subject).headers(headers).data(body).build());
        Message message = Suite.take(got, "the message");
        Suite.same(List.of("1", "2"), message.getHeaders().get("Many"), "Many");
        Suite.same(List.of("3"), message.getHeaders().get("many"), "many");
        Suite.same(List.of(""), message.getHeaders().get("Empty"), "Empty");
        Suite.check(java.util.Arrays.equals(body, message.getData()), "the body");
    }

    private static void sizes(World world) throws Exception {
        Connection client = world.connect();
        String subject = World.subject();
        BlockingQueue<Message> got = World.listen(client, subject);
        int most = (int) client.getMaxPayload();
        for (int size : new int[] {0, 1, 4_095, 65_536, most}) {
            client.publish(subject, new byte[size]);
            Suite.same(size, Suite.take(got, "a payload").getData().length, "size");
        }
        try {
            client.publish(subject, new byte[most + 1]);
            throw new AssertionError("more than max_payload");
        } catch (IllegalArgumentException error) {
            // The client refuses it by what INFO says.
        }
    }

    private static void ends(World world) throws Exception {
        Connection client = world.connect();
        String subject = World.subject();
        Subscription subscription = client.subscribe(subject);
        subscription.unsubscribe(3);
        for (int number = 0; number < 5; number++) {
            client.publish(subject, World.bytes(number));
        }
        client.flush(World.PATIENCE);
        for (int number = 0; number < 3; number++) {
            Message message = subscription.nextMessage(World.PATIENCE);
            Suite.same(String.valueOf(number), World.text(message), "body");
        }
        Suite.check(!subscription.isActive(), "it has ended");
    }

    private static void echo(World world) throws Exception {
        Connection silent = world.connect(world.options().noEcho());
        Connection other = world.connect();
        String subject = World.subject();
        BlockingQueue<Message> got = World.listen(silent, subject);
        silent.publish(subject, World.bytes("mine"));
        silent.flush(World.PATIENCE);
        other.publish(subject, World.bytes("another's"));
        Suite.same("another's", World.text(Suite.take(got, "the other's")), "body");
    }
}
