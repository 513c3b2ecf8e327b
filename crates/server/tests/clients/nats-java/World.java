import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.ErrorListener;
import io.nats.client.Message;
import io.nats.client.Nats;
import io.nats.client.Options;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** What one case uses. Everything it opens is closed. */
final class World implements AutoCloseable {
    static final Duration PATIENCE = Duration.ofMillis(Suite.PATIENCE_MS);

    private final List<Connection> connections = new ArrayList<>();
    /** What the server complained of, on all connections. */
    final BlockingQueue<String> complaints = new LinkedBlockingQueue<>();

    static String url() {
        String url = System.getenv("NATS_URL");
        return url == null ? "nats://127.0.0.1:4222" : url;
    }

    Options.Builder options() {
        return new Options.Builder()
                .server(url())
                .connectionTimeout(PATIENCE)
                .noReconnect()
                .errorListener(new ErrorListener() {
                    @Override
                    public void errorOccurred(Connection connection, String error) {
                        complaints.add(error);
                    }
                });
    }

    Connection connect() throws Exception {
        return connect(options());
    }

    Connection connect(Options.Builder options) throws Exception {
        Connection connection = Nats.connect(options.build());
        connections.add(connection);
        return connection;
    }

    static String subject() {
        return "java." + UUID.randomUUID();
    }

    /** Listens to a subject, in a group or by itself, until the connection is closed. */
    static BlockingQueue<Message> listen(Connection connection, String subject, String group)
            throws Exception {
        BlockingQueue<Message> got = new LinkedBlockingQueue<>();
        Dispatcher dispatcher = connection.createDispatcher(got::add);
        if (group == null) {
            dispatcher.subscribe(subject);
        } else {
            dispatcher.subscribe(subject, group);
        }
        connection.flush(PATIENCE);
        return got;
    }

    static BlockingQueue<Message> listen(Connection connection, String subject) throws Exception {
        return listen(connection, subject, null);
    }

    static String text(Message message) {
        return new String(message.getData(), StandardCharsets.UTF_8);
    }

    static byte[] bytes(Object text) {
        return String.valueOf(text).getBytes(StandardCharsets.UTF_8);
    }

    /** Runs a command of the program against the running broker. */
    static void administer(String... command) throws Exception {
        administerWith("", command);
    }

    /** The same, with that line on the standard input. */
    static void administerWith(String line, String... command) throws Exception {
        List<String> whole = new ArrayList<>(List.of(System.getenv("BROKER_TEST_PROGRAM")));
        whole.addAll(Arrays.asList(command));
        whole.addAll(List.of("--data", System.getenv("BROKER_TEST_DATA")));
        Process process = new ProcessBuilder(whole).redirectErrorStream(true).start();
        try (var input = process.getOutputStream()) {
            input.write(World.bytes(line));
        }
        String said = new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8);
        Suite.same(0, process.waitFor(), String.join(" ", command) + ": " + said);
    }

    @Override
    public void close() throws Exception {
        for (Connection connection : connections) {
            connection.close();
        }
    }
}
