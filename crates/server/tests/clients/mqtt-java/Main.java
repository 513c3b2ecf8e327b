/** Every case of Paho's clients against the broker at BROKER_TEST_MQTT_PORT; exits with 1 if one fails. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        Suite<World> suite = new Suite<>(World::new);
        Version3Cases.register(suite);
        Version5Cases.register(suite);
        System.exit(suite.run(arguments) == 0 ? 0 : 1);
    }
}
