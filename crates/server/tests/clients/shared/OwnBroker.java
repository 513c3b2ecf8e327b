import java.io.File;
import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Comparator;
import java.util.List;
import java.util.ArrayList;
import java.util.stream.Stream;

/** A broker of one case: with settings of its own, and it can be killed and started again. */
final class OwnBroker implements AutoCloseable {
    private static final String PROGRAM = System.getenv("BROKER_TEST_PROGRAM");

    final int port;
    private final Path data;
    private final List<String> settings;
    private Process process;

    /** Starts it; `settings` are flags of `angarium serve`. */
    OwnBroker(String... settings) throws Exception {
        this.settings = Arrays.asList(settings);
        data = Files.createTempDirectory(Path.of(System.getenv("BROKER_TEST_DATA")).getParent(), "own-");
        try (ServerSocket free = new ServerSocket(0, 1, InetAddress.getLoopbackAddress())) {
            port = free.getLocalPort();
        }
        start();
    }

    /** Whether there is a program to start. */
    static boolean isThere() {
        return PROGRAM != null;
    }

    void start() throws Exception {
        List<String> command = new ArrayList<>(List.of(PROGRAM, "serve", "--http", "off", "--nats", "off",
                "--stomp", "off", "--mqtt", "off", "--shards", "2",
                "--amqp", "127.0.0.1:" + port, "--data", data.toString()));
        command.addAll(settings);
        process = new ProcessBuilder(command).redirectOutput(new File("/dev/null"))
                .redirectError(ProcessBuilder.Redirect.INHERIT).start();
        long end = System.nanoTime() + Suite.PATIENCE_MS * 1_000_000;
        while (!listens()) {
            Suite.check(process.isAlive() && System.nanoTime() < end, "the broker does not listen");
            Thread.sleep(5);
        }
    }

    private boolean listens() {
        try (Socket ignored = new Socket(InetAddress.getLoopbackAddress(), port)) {
            return true;
        } catch (IOException error) {
            return false;
        }
    }

    /** kill -9. */
    void kill() throws Exception {
        process.destroyForcibly().waitFor();
    }

    /** An orderly stop and a new start. */
    void restart() throws Exception {
        process.destroy();
        Suite.same(0, process.waitFor(), "the broker's exit status");
        start();
    }

    /** The most memory that it has had so far, in KiB. */
    long peakKib() throws IOException {
        Path status = Path.of("/proc/" + process.pid() + "/status");
        var peak = Files.readAllLines(status).stream().filter(it -> it.startsWith("VmHWM")).findAny();
        return Long.parseLong(peak.get().replaceAll("[^0-9]", ""));
    }

    @Override
    public void close() throws Exception {
        kill();
        try (Stream<Path> files = Files.walk(data)) {
            files.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
        }
    }
}
