import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.MessageProperties;
import java.io.IOException;
import java.io.OutputStream;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** A full disk, where there is one that may be filled: the client hears of it, and of room. */
final class FullDiskCase {
    private static final String DISK = System.getenv("BROKER_TEST_SMALL_DISK");
    private static final String URL = System.getenv("BROKER_TEST_SMALL_URL");

    private FullDiskCase() {}

    static void register(Suite<World> suite) {
        if (DISK != null && URL != null) {
            suite.add("a publisher hears of a full disk, and of room", FullDiskCase::blocked);
        } else {
            System.out.println("skip a publisher hears of a full disk, and of room: no small disk");
        }
    }

    private static void blocked(World world) throws Exception {
        ConnectionFactory factory = World.factory();
        factory.setUri(URL);
        Connection connection = world.connect(factory);
        BlockingQueue<String> said = new LinkedBlockingQueue<>();
        connection.addBlockedListener(said::add, () -> said.add("unblocked"));
        Channel channel = connection.createChannel();
        String queue = World.name();
        channel.queueDeclare(queue, true, false, false, null);
        Path filler = Path.of(DISK, "filler");
        fill(filler);
        try {
            byte[] body = new byte[64 << 10];
            long end = System.nanoTime() + Suite.PATIENCE_MS * 1_000_000;
            while (said.isEmpty() && System.nanoTime() < end) {
                channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, body);
                Thread.sleep(10);
            }
            String reason = Suite.take(said, "connection.blocked");
            Suite.same(true, reason.length() > 5, "the reason '" + reason + "' says something");
        } finally {
            Files.delete(filler);
        }
        Suite.same("unblocked", Suite.take(said, "connection.unblocked"), "what comes next");
        channel.confirmSelect();
        channel.basicPublish("", queue, MessageProperties.PERSISTENT_BASIC, new byte[1]);
        channel.waitForConfirmsOrDie(Suite.PATIENCE_MS);
        channel.queueDelete(queue);
    }

    private static void fill(Path path) throws IOException {
        byte[] block = new byte[64 << 10];
        try (OutputStream out = Files.newOutputStream(path)) {
            while (true) {
                out.write(block);
            }
        } catch (IOException full) {
            // That is what was wanted.
        }
    }
}
