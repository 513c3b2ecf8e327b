import java.util.Map;
import org.springframework.messaging.simp.SimpMessageHeaderAccessor;
import org.springframework.messaging.simp.stomp.StompCommand;

/** Spring's broker relay: its own connection, one for each browser, destinations of users. */
final class RelayCases {
    private RelayCases() {}

    static void register(Suite<World> suite) {
        suite.add("relay.the_application_reaches_browsers", RelayCases::topics);
        suite.add("relay.browsers_reach_each_other", RelayCases::browsers);
        suite.add("relay.users_have_queues", world -> users(world, Map.of()));
        suite.add(
                "relay.queues_of_users_go_with_them",
                world -> users(world, Map.of("auto-delete", "true")));
        suite.add("relay.who_leaves_does_no_harm", RelayCases::leaving);
        suite.add("relay.heart_beats_keep_it", RelayCases::heartBeats);
        suite.add("relay.errors_reach_the_browser", RelayCases::errors);
    }

    private static Map<String, Object> headers(Map<String, String> more) {
        SimpMessageHeaderAccessor accessor = SimpMessageHeaderAccessor.create();
        more.forEach(accessor::setNativeHeader);
        return accessor.getMessageHeaders();
    }

    private static void topics(World world) throws Exception {
        world.start();
        String topic = "/topic/" + World.name();
        String[] browsers = {world.connect("one"), world.connect("two")};
        for (String browser : browsers) {
            world.subscribe(browser, topic, Map.of());
        }
        world.template.convertAndSend(topic, "news");
        for (String browser : browsers) {
            World.StompFrame frame = world.next(browser);
            Suite.same(StompCommand.MESSAGE, frame.headers.getCommand(), "the frame");
            Suite.same("sub-" + topic, frame.headers.getSubscriptionId(), "the subscription");
            Suite.same("news", frame.body, "the body");
        }
    }

    private static void browsers(World world) throws Exception {
        world.start();
        String topic = "/topic/" + World.name();
        world.connect("hears");
        world.subscribe("hears", topic, Map.of());
        world.connect("speaks");
        world.say("speaks", StompCommand.SEND, headers -> {
            headers.setDestination(topic);
            headers.setNativeHeader("colour", "red");
        });
        World.StompFrame frame = world.next("hears");
        Suite.same(topic, frame.headers.getDestination(), "the destination");
        Suite.same("red", frame.headers.getFirstNativeHeader("colour"), "a header");
    }

    private static void users(World world, Map<String, String> options) throws Exception {
        world.start();
        String queue = "/queue/" + World.name();
        world.connect("ada");
        world.connect("eve");
        world.subscribe("ada", "/user" + queue, options);
        world.subscribe("eve", "/user" + queue, options);
        // With the options of its queue, and without.
        world.template.convertAndSendToUser("ada", queue, "for ada", headers(options));
        world.template.convertAndSendToUser("eve", queue, "for eve");
        Suite.same("for ada", world.next("ada").body, "ada's message");
        Suite.same("for eve", world.next("eve").body, "eve's message");
    }

    private static void leaving(World world) throws Exception {
        world.start();
        Map<String, String> options = Map.of("auto-delete", "true");
        String queue = "/queue/" + World.name();
        world.connect("ada");
        world.subscribe("ada", "/user" + queue, options);
        world.say("ada", StompCommand.DISCONNECT, headers -> headers.setReceipt("bye"));
        Suite.same(StompCommand.RECEIPT, world.next("ada").headers.getCommand(), "the answer to DISCONNECT");
        // The queue is gone; the relay's own connection stays.
        world.template.convertAndSendToUser("ada", queue, "too late", headers(options));
        topicsGoOn(world);
    }

    private static void topicsGoOn(World world) throws Exception {
        String topic = "/topic/" + World.name();
        world.connect("other");
        world.subscribe("other", topic, Map.of());
        world.template.convertAndSend(topic, "still there");
        Suite.same("still there", world.next("other").body, "the message");
        Suite.check(world.available.isEmpty(), "the broker was lost meanwhile");
    }

    private static void heartBeats(World world) throws Exception {
        world.relay.setSystemHeartbeatSendInterval(1_000);
        world.relay.setSystemHeartbeatReceiveInterval(1_000);
        world.start();
        Thread.sleep(3_500);
        topicsGoOn(world);
    }

    private static void errors(World world) throws Exception {
        world.start();
        world.connect("ada");
        world.say("ada", StompCommand.SUBSCRIBE, headers -> {
            headers.setSubscriptionId("0");
            headers.setDestination("/exchange/does.not.exist");
        });
        World.StompFrame frame = world.next("ada");
        Suite.same(StompCommand.ERROR, frame.headers.getCommand(), "the frame");
        Suite.same("not_found", frame.headers.getMessage(), "the message");
        topicsGoOn(world);
    }
}
