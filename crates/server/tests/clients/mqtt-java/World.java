import java.nio.charset.StandardCharsets;
import java.util.ArrayDeque;
import java.util.Deque;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** What one case uses; everything it opens is closed. */
final class World implements AutoCloseable {
    private final Deque<AutoCloseable> open = new ArrayDeque<>();

    /** A message as a client got it. */
    static final class Got {
        final int id;
        final String payload;
        final int qos;
        final boolean duplicate;

        Got(int id, byte[] payload, int qos, boolean duplicate) {
            this.id = id;
            this.payload = new String(payload, StandardCharsets.UTF_8);
            this.qos = qos;
            this.duplicate = duplicate;
        }

        @Override
        public String toString() {
            return id + " " + payload + " at " + qos + (duplicate ? " again" : "");
        }
    }

    /** What clients get, in its order. */
    static final class Inbox extends LinkedBlockingQueue<Got> {
        private static final long serialVersionUID = 1L;

        Got next(String payload) throws InterruptedException {
            Got got = Suite.take(this, payload);
            Suite.same(payload, got.payload, "the payload");
            return got;
        }

        void silent() throws InterruptedException {
            Thread.sleep(Suite.SILENCE_MS);
            Suite.check(isEmpty(), "came, and should not: " + peek());
        }
    }

    static String url() {
        String port = System.getenv("BROKER_TEST_MQTT_PORT");
        return "tcp://127.0.0.1:" + (port == null ? "1883" : port);
    }

    static byte[] bytes(Object text) {
        return text.toString().getBytes(StandardCharsets.UTF_8);
    }

    static <T> BlockingQueue<T> queue() {
        return new LinkedBlockingQueue<>();
    }

    /** Is closed at the end of the case. */
    void closes(AutoCloseable closed) {
        open.push(closed);
    }

    @Override
    public void close() {
        for (AutoCloseable closed : open) {
            try {
                closed.close();
            } catch (Exception error) {
                // It may be closed, or have lost its connection.
            }
        }
    }
}
