/**
 * Every case of Qpid JMS (Jakarta), or those whose names contain an argument, against the broker at AMQP_URL;
 * exits with 1 if one fails.
 */
public final class Main {
    private Main() {}

    public static void main(String[] arguments) {
        Suite<World> suite = new Suite<>(World::new);
        SendCases.register(suite);
        SettleCases.register(suite);
        TransactionCases.register(suite);
        SubscriptionCases.register(suite);
        TemporaryCases.register(suite);
        SelectorCases.register(suite);
        BrowserCases.register(suite);
        ConsumerCases.register(suite);
        CrashCases.register(suite);
        System.exit(suite.run(arguments) == 0 ? 0 : 1);
    }
}
