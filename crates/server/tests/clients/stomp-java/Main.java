/**
 * Every case of Spring's broker relay against the broker at BROKER_TEST_STOMP_PORT; with arguments, the cases
 * whose names contain one of them. Exits with 1 if one fails.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        Suite<World> suite = new Suite<>(World::new);
        RelayCases.register(suite);
        System.exit(suite.run(arguments) == 0 ? 0 : 1);
    }
}
