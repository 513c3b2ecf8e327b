/** Every case of jnats against the broker at NATS_URL; exits with 1 if one fails. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        Suite<World> suite = new Suite<>(World::new);
        MessageCases.register(suite);
        RequestCases.register(suite);
        LifeCases.register(suite);
        AccessCases.register(suite);
        System.exit(suite.run() == 0 ? 0 : 1);
    }
}
