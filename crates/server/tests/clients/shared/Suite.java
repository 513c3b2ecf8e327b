import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Objects;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.Callable;
import java.util.concurrent.TimeUnit;

/** The cases of a suite, the loop that runs them, and what they assert. */
final class Suite<W extends AutoCloseable> {
    /** The longest wait for anything that must come. */
    static final long PATIENCE_MS = 10_000;

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
