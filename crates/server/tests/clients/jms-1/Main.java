/**
 * JORAM's tests, and cases of clients of JMS 1.1 and 2.0 (javax), against the broker at AMQP_URL; with
 * arguments, the cases whose names contain one of them. Exits with 1 if one fails.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        Suite<World> suite = new Suite<>(World::new);
        SpringCases.register(suite);
        RabbitCases.register(suite);
        int failed = (arguments.length == 0 ? Joram.run() : 0) + suite.run(arguments);
        System.exit(failed == 0 ? 0 : 1);
    }
}
