import java.net.URI;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/** The cases of a suite, the loop that runs them, and what they assert. */
final class Suite<W extends AutoCloseable> {
    /** The longest wait for anything that must come. */
    static final long PATIENCE_MS = 10_000;
    /** How long nothing must come before it counts as "does not come". */
    static final long SILENCE_MS = 200;
    /** Another broker than Angarium: what only Angarium has is then skipped. */
    static final boolean OURS = System.getenv("BROKER_TEST_PEER") == null;

    /** One case. */
    interface Body<W> {
        void run(W world) throws Exception;
    }

    private final Map<String, Body<W>> cases = new LinkedHashMap<>();
    private final Callable<W> worlds;

    /** Each case gets a world of its own. */
    Suite(Callable<W> worlds) {
        this.worlds = worlds;
    }

    void add(String name, Body<W> body) {
        cases.put(name, body);
    }

    /** A case that is skipped where what it needs is missing. */
    void add(String name, boolean isOffered, Body<W> body) {
        cases.put(name, isOffered ? body : null);
    }

    /** Runs all cases, or those whose name contains one of `parts`; returns the number that failed. */
    int run(String... parts) {
        int failed = 0;
        for (Map.Entry<String, Body<W>> entry : cases.entrySet()) {
            if (parts.length > 0 && Arrays.stream(parts).noneMatch(entry.getKey()::contains)) {
                continue;
            }
            if (entry.getValue() == null) {
                System.out.println("skip " + entry.getKey() + ": the environment lacks what it needs");
                continue;
            }
            try (W world = worlds.call()) {
                entry.getValue().run(world);
                System.out.println("pass " + entry.getKey());
            } catch (Exception | AssertionError error) {
                failed++;
                System.out.println("FAIL " + entry.getKey() + ": " + error);
                error.printStackTrace();
            }
        }
        return failed;
    }

    /** Where the broker takes AMQP. */
    static int amqpPort() {
        String url = System.getenv("AMQP_URL");
        return URI.create(url == null ? "amqp://guest:guest@127.0.0.1:5672/%2f" : url).getPort();
    }

    /** A name that nobody else uses. */
    static String name(String prefix) {
        return prefix + "-" + UUID.randomUUID();
    }

    static <T> T take(BlockingQueue<T> from, String what) throws InterruptedException {
        T taken = from.poll(PATIENCE_MS, TimeUnit.MILLISECONDS);
        check(taken != null, "waited in vain for " + what);
        return taken;
    }

    static void check(boolean holds, String what) {
        if (!holds) {
            throw new AssertionError(what);
        }
    }

    static void same(Object expected, Object found, String what) {
        check(Objects.equals(expected, found), what + ": expected " + expected + ", found " + found);
    }
}
