import org.eclipse.paho.client.mqttv3.IMqttDeliveryToken;
import org.eclipse.paho.client.mqttv3.MqttAsyncClient;
import org.eclipse.paho.client.mqttv3.MqttCallback;
import org.eclipse.paho.client.mqttv3.MqttClient;
import org.eclipse.paho.client.mqttv3.MqttConnectOptions;
import org.eclipse.paho.client.mqttv3.MqttException;
import org.eclipse.paho.client.mqttv3.MqttMessage;
import org.eclipse.paho.client.mqttv3.MqttTopic;
import org.eclipse.paho.client.mqttv3.persist.MemoryPersistence;

/** MQTT 3.1.1 by Paho's first client. */
final class Version3Cases {
    private static final int MANY = 500;

    private Version3Cases() {}

    static void register(Suite<World> suite) {
        suite.add("3.1.1: messages of every quality of service arrive", Version3Cases::everyQos);
        suite.add("3.1.1: many exactly once, in their order", Version3Cases::many);
        suite.add("3.1.1: sessions collect what comes meanwhile", Version3Cases::session);
        suite.add("3.1.1: what was not acknowledged comes again", Version3Cases::unacknowledged);
    }

    /** A client, and what it gets. */
    private static final class Client implements MqttCallback {
        final MqttClient client;
        final World.Inbox inbox = new World.Inbox();

        Client(World world, String name, boolean clean) throws MqttException {
            client = new MqttClient(World.url(), name, new MemoryPersistence());
            client.setCallback(this);
            client.setTimeToWait(Suite.PATIENCE_MS);
            MqttConnectOptions options = new MqttConnectOptions();
            options.setMqttVersion(MqttConnectOptions.MQTT_VERSION_3_1_1);
            options.setCleanSession(clean);
            options.setMaxInflight(100);
            client.connectWithResult(options).waitForCompletion();
            world.closes(() -> {
                client.disconnectForcibly(0, 100, true);
                client.close();
            });
        }

        @Override
        public void connectionLost(Throwable why) {}

        @Override
        public void messageArrived(String topic, MqttMessage got) {
            inbox.add(new World.Got(got.getId(), got.getPayload(), got.getQos(), got.isDuplicate()));
        }

        @Override
        public void deliveryComplete(IMqttDeliveryToken token) {}
    }

    private static void everyQos(World world) throws Exception {
        String topic = MqttAsyncClient.generateClientId();
        Client client = new Client(world, MqttAsyncClient.generateClientId(), true);
        client.client.subscribe(topic + "/#", 2);
        for (int qos = 0; qos < 3; qos++) {
            client.client.publish(topic + "/" + qos, World.bytes(qos), qos, false);
            Suite.same(qos, client.inbox.next("" + qos).qos, "the quality of service");
        }
        client.client.unsubscribe(topic + "/#");
        client.client.publish(topic + "/1", World.bytes("gone"), 1, false);
        client.inbox.silent();
    }

    private static void many(World world) throws Exception {
        String name = Suite.name("java");
        Client client = new Client(world, name, true);
        Client publisher = new Client(world, name + "-p", true);
        client.client.subscribe(name, 2);
        MqttTopic topic = publisher.client.getTopic(name);
        for (int number = 0; number < MANY; number++) {
            topic.publish(World.bytes(number), 2, false).waitForCompletion(Suite.PATIENCE_MS);
        }
        for (int number = 0; number < MANY; number++) {
            client.inbox.next("" + number);
        }
        client.inbox.silent();
    }

    private static void session(World world) throws Exception {
        String name = Suite.name("java");
        Client first = new Client(world, name, false);
        first.client.subscribe(name, 2);
        first.client.disconnect();
        Client publisher = new Client(world, name + "-p", true);
        publisher.client.publish(name, World.bytes("1"), 1, false);
        publisher.client.publish(name, World.bytes("2"), 2, false);
        Client again = new Client(world, name, false);
        again.inbox.next("1");
        again.inbox.next("2");
        again.client.disconnect();
        Client fresh = new Client(world, name, true);
        publisher.client.publish(name, World.bytes("3"), 1, false);
        fresh.inbox.silent();
    }

    private static void unacknowledged(World world) throws Exception {
        String name = Suite.name("java");
        Client first = new Client(world, name, false);
        first.client.setManualAcks(true);
        first.client.subscribe(name, 1);
        Client publisher = new Client(world, name + "-p", true);
        for (int number = 0; number < 3; number++) {
            publisher.client.publish(name, World.bytes(number), 1, false);
        }
        int[] ids = new int[3];
        for (int number = 0; number < 3; number++) {
            ids[number] = first.inbox.next("" + number).id;
        }
        first.client.messageArrivedComplete(ids[0], 1);
        first.client.disconnect();
        Client again = new Client(world, name, false);
        for (int number = 1; number < 3; number++) {
            World.Got got = again.inbox.next("" + number);
            Suite.same(ids[number], got.id, "the packet identifier");
            Suite.check(got.duplicate, "it is said that it comes again");
        }
        again.inbox.silent();
    }
}
