import java.util.List;
import org.eclipse.paho.mqttv5.client.IMqttToken;
import org.eclipse.paho.mqttv5.client.MqttCallback;
import org.eclipse.paho.mqttv5.client.MqttClient;
import org.eclipse.paho.mqttv5.client.MqttConnectionOptions;
import org.eclipse.paho.mqttv5.client.MqttDisconnectResponse;
import org.eclipse.paho.mqttv5.client.persist.MemoryPersistence;
import org.eclipse.paho.mqttv5.common.MqttException;
import org.eclipse.paho.mqttv5.common.MqttMessage;
import org.eclipse.paho.mqttv5.common.packet.MqttProperties;
import org.eclipse.paho.mqttv5.common.packet.UserProperty;

/** MQTT 5 by Paho's second client. */
final class Version5Cases {
    private Version5Cases() {}

    static void register(Suite<World> suite) {
        suite.add("5: messages of every quality of service arrive", Version5Cases::everyQos);
        suite.add("5: properties arrive", Version5Cases::properties);
        suite.add("5: sessions collect what comes meanwhile", Version5Cases::session);
        suite.add("5: a second connection takes over", Version5Cases::takeover);
    }

    /** A client, and what it gets. */
    private static final class Client implements MqttCallback {
        final MqttClient client;
        final World.Inbox inbox = new World.Inbox();
        final java.util.concurrent.BlockingQueue<MqttMessage> messages = World.queue();
        final java.util.concurrent.BlockingQueue<Integer> ends = World.queue();
        boolean resumed;

        Client(World world, String name, long expiry) throws MqttException {
            client = new MqttClient(World.url(), name, new MemoryPersistence());
            client.setCallback(this);
            client.setTimeToWait(Suite.PATIENCE_MS);
            MqttConnectionOptions options = new MqttConnectionOptions();
            options.setCleanStart(expiry == 0);
            options.setSessionExpiryInterval(expiry);
            IMqttToken token = client.connectWithResult(options);
            token.waitForCompletion();
            resumed = token.getSessionPresent();
            world.closes(() -> {
                client.disconnectForcibly(0, 100, true);
                client.close();
            });
        }

        @Override
        public void disconnected(MqttDisconnectResponse why) {
            ends.add(why.getReturnCode());
        }

        @Override
        public void mqttErrorOccurred(MqttException error) {}

        @Override
        public void messageArrived(String topic, MqttMessage got) {
            messages.add(got);
            inbox.add(new World.Got(got.getId(), got.getPayload(), got.getQos(), got.isDuplicate()));
        }

        @Override
        public void deliveryComplete(IMqttToken token) {}

        @Override
        public void connectComplete(boolean reconnect, String url) {}

        @Override
        public void authPacketArrived(int reason, MqttProperties properties) {}
    }

    private static void everyQos(World world) throws Exception {
        String name = Suite.name("java");
        Client client = new Client(world, name, 0);
        client.client.subscribe(name + "/#", 2);
        for (int qos = 0; qos < 3; qos++) {
            client.client.publish(name + "/" + qos, World.bytes(qos), qos, false);
            Suite.same(qos, client.inbox.next("" + qos).qos, "the quality of service");
        }
    }

    private static void properties(World world) throws Exception {
        String name = Suite.name("java");
        Client client = new Client(world, name, 0);
        client.client.subscribe(name, 1);
        MqttMessage message = new MqttMessage(World.bytes("hello"), 1, false, new MqttProperties());
        message.getProperties().setContentType("text/plain");
        message.getProperties().setCorrelationData(new byte[] {0, 1});
        message.getProperties().setResponseTopic("answers/1");
        message.getProperties().setMessageExpiryInterval(60L);
        message.getProperties()
                .setUserProperties(List.of(new UserProperty("a", "1"), new UserProperty("a", "2")));
        client.client.publish(name, message);
        MqttProperties got = Suite.take(client.messages, "the message").getProperties();
        Suite.same("text/plain", got.getContentType(), "the content type");
        Suite.same("answers/1", got.getResponseTopic(), "the response topic");
        Suite.same(1, (int) got.getCorrelationData()[1], "the correlation data");
        Suite.same(2, got.getUserProperties().size(), "the user properties");
        long left = got.getMessageExpiryInterval();
        Suite.check(left >= 55 && left <= 60, "what is left of its time: " + left);
    }

    private static void session(World world) throws Exception {
        String name = Suite.name("java");
        Client first = new Client(world, name, 600);
        Suite.same(false, first.resumed, "there is a session");
        first.client.subscribe(name, 2);
        first.client.disconnect();
        Client publisher = new Client(world, name + "-p", 0);
        publisher.client.publish(name, World.bytes("1"), 1, false);
        publisher.client.publish(name, World.bytes("2"), 2, false);
        Client again = new Client(world, name, 600);
        Suite.same(true, again.resumed, "there is a session");
        again.inbox.next("1");
        again.inbox.next("2");
        again.inbox.silent();
    }

    private static void takeover(World world) throws Exception {
        String name = Suite.name("java");
        Client first = new Client(world, name, 600);
        new Client(world, name, 600);
        Suite.same(0x8E, Suite.take(first.ends, "the end of the first"), "the reason");
    }
}
