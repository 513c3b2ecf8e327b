/** Every case of the RabbitMQ Java client against the broker at AMQP_URL; exits with 1 if one fails. */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) throws Exception {
        Suite<World> suite = new Suite<>(World::new);
        BasicCases.register(suite);
        ContentCases.register(suite);
        ErrorCases.register(suite);
        FeatureCases.register(suite);
        FullDiskCase.register(suite);
        System.exit(suite.run() == 0 ? 0 : 1);
    }
}
