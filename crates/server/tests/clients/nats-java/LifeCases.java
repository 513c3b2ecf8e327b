import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.Message;
import io.nats.client.api.ServerInfo;
import java.io.FileInputStream;
import java.io.InputStream;
import java.security.KeyStore;
import java.security.cert.Certificate;
import java.security.cert.CertificateFactory;
import java.time.Duration;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** From connecting to leaving. */
final class LifeCases {
    private LifeCases() {}

    static void register(Suite<World> suite) {
        suite.add("the server says what it is", LifeCases::info);
        suite.add("a verbose and pedantic client is served", LifeCases::verbose);
        suite.add("draining handles what has arrived", LifeCases::drain);
        suite.add("a client that lost its connection comes back", LifeCases::reconnect);
        suite.add("tls begins after info", world -> tls(world, false));
        suite.add("tls begins before info", world -> tls(world, true));
    }

    private static void info(World world) throws Exception {
        Connection client = world.connect();
        ServerInfo info = client.getServerInfo();
        Suite.same(1, info.getProtocolVersion(), "protocol");
        Suite.same(1L << 20, info.getMaxPayload(), "max_payload");
        Suite.check(info.isHeadersSupported() && !info.isJetStreamAvailable(), "what it offers");
        Suite.check(!client.RTT().isNegative(), "it answers");
    }

    private static void verbose(World world) throws Exception {
        Connection client = world.connect(world.options().verbose().pedantic());
        String subject = World.subject();
        BlockingQueue<Message> got = World.listen(client, subject);
        client.publish(subject, World.bytes("body"));
        Suite.same("body", World.text(Suite.take(got, "the message")), "body");
        Suite.check(client.getStatistics().getOKs() >= 2, "SUB and PUB are acknowledged");
    }

    private static void drain(World world) throws Exception {
        Connection publisher = world.connect();
        Connection client = world.connect();
        String subject = World.subject();
        AtomicInteger seen = new AtomicInteger();
        Dispatcher dispatcher = client.createDispatcher(message -> seen.incrementAndGet());
        dispatcher.subscribe(subject);
        client.flush(World.PATIENCE);
        for (int number = 0; number < 1_000; number++) {
            publisher.publish(subject, null);
        }
        publisher.flush(World.PATIENCE);
        var drained = client.drain(World.PATIENCE);
        Suite.check(drained.get(2 * Suite.PATIENCE_MS, TimeUnit.MILLISECONDS), "drained");
        Suite.same(1_000, seen.get(), "messages");
        Suite.same(Connection.Status.CLOSED, client.getStatus(), "status");
    }

    private static void reconnect(World world) throws Exception {
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        Connection client = world.connect(world.options()
                .maxReconnects(-1)
                .reconnectWait(Duration.ofMillis(20))
                .connectionListener((connection, event) -> events.add(event.name())));
        String subject = World.subject();
        BlockingQueue<Message> got = World.listen(client, subject);
        client.forceReconnect();
        while (!Suite.take(events, "the client to be back").equals("RESUBSCRIBED")) {
            // It says every step.
        }
        client.flush(World.PATIENCE);
        world.connect().publish(subject, World.bytes("again"));
        Suite.same("again", World.text(Suite.take(got, "the message")), "body");
    }

    private static SSLContext trusting(String authority) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null);
        try (InputStream file = new FileInputStream(authority)) {
            Certificate certificate = CertificateFactory.getInstance("X.509").generateCertificate(file);
            store.setCertificateEntry("authority", certificate);
        }
        TrustManagerFactory trust =
                TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        return context;
    }

    private static void tls(World world, boolean first) throws Exception {
        SSLContext context = trusting(System.getenv("BROKER_TEST_CERTIFICATES") + "/authority.pem");
        var options = world.options().sslContext(context);
        if (first) {
            options.server("nats://127.0.0.1:" + System.getenv("BROKER_TEST_NATS_TLS_PORT")).tlsFirst();
        }
        Connection client = world.connect(options);
        // What the connection is like is said in a second INFO, behind the answer to the first PING.
        client.flush(World.PATIENCE);
        Suite.check(client.getServerInfo().isTLSRequired() || first, "the connection is encrypted");
        String subject = World.subject();
        BlockingQueue<Message> got = World.listen(client, subject);
        byte[] body = new byte[200_000];
        client.publish(subject, body);
        Suite.same(body.length, Suite.take(got, "more than a record").getData().length, "size");
    }
}
