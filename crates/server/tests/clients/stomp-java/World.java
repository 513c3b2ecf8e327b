import java.security.Principal;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.function.Consumer;
import org.springframework.messaging.Message;
import org.springframework.messaging.converter.StringMessageConverter;
import org.springframework.messaging.simp.SimpMessagingTemplate;
import org.springframework.messaging.simp.broker.BrokerAvailabilityEvent;
import org.springframework.messaging.simp.stomp.StompBrokerRelayMessageHandler;
import org.springframework.messaging.simp.stomp.StompCommand;
import org.springframework.messaging.simp.stomp.StompHeaderAccessor;
import org.springframework.messaging.simp.user.DefaultUserDestinationResolver;
import org.springframework.messaging.simp.user.SimpSession;
import org.springframework.messaging.simp.user.SimpSubscription;
import org.springframework.messaging.simp.user.SimpSubscriptionMatcher;
import org.springframework.messaging.simp.user.SimpUser;
import org.springframework.messaging.simp.user.SimpUserRegistry;
import org.springframework.messaging.simp.user.UserDestinationMessageHandler;
import org.springframework.messaging.support.ExecutorSubscribableChannel;
import org.springframework.messaging.support.MessageBuilder;

/**
 * A server on Spring with users at WebSockets, as one case has it: what its browsers say goes to the relay,
 * and what the relay has for them comes to queues here. The relay has its defaults, except for the port.
 */
final class World implements AutoCloseable {
    private static final String PREFIX = "java.";

    final ExecutorSubscribableChannel inbound = new ExecutorSubscribableChannel();
    final ExecutorSubscribableChannel outbound = new ExecutorSubscribableChannel();
    final ExecutorSubscribableChannel broker = new ExecutorSubscribableChannel();
    final StompBrokerRelayMessageHandler relay;
    final SimpMessagingTemplate template = new SimpMessagingTemplate(broker);
    /** Whether the broker is there, as applications hear it. */
    final BlockingQueue<Boolean> available = new LinkedBlockingQueue<>();
    private final UserDestinationMessageHandler users;
    private final Map<String, BlockingQueue<StompFrame>> sessions = new ConcurrentHashMap<>();

    /** A frame for a browser. */
    static final class StompFrame {
        final StompHeaderAccessor headers;
        final String body;

        StompFrame(StompHeaderAccessor headers, String body) {
            this.headers = headers;
            this.body = body;
        }
    }

    World() {
        List<String> prefixes = List.of("/topic", "/queue", "/exchange");
        relay = new StompBrokerRelayMessageHandler(inbound, outbound, broker, prefixes);
        String port = System.getenv("BROKER_TEST_STOMP_PORT");
        if (port != null) {
            relay.setRelayPort(Integer.parseInt(port));
        }
        relay.setApplicationEventPublisher(event -> {
            if (event instanceof BrokerAvailabilityEvent) {
                available.add(((BrokerAvailabilityEvent) event).isBrokerAvailable());
            }
        });
        users = new UserDestinationMessageHandler(
                inbound, broker, new DefaultUserDestinationResolver(new Users()));
        template.setMessageConverter(new StringMessageConverter());
        outbound.subscribe(this::keep);
    }

    /** Starts the relay and waits until it has found the broker. */
    World start() throws Exception {
        relay.start();
        users.start();
        Suite.same(true, Suite.take(available, "the broker"), "the broker is there");
        return this;
    }

    private void keep(Message<?> message) {
        StompHeaderAccessor headers = StompHeaderAccessor.wrap(message);
        BlockingQueue<StompFrame> frames = sessions.get(headers.getSessionId());
        if (frames != null) {
            frames.add(new StompFrame(headers, new String((byte[]) message.getPayload())));
        }
    }

    /** A browser connects: its session. */
    String connect(String session) throws Exception {
        sessions.put(session, new LinkedBlockingQueue<>());
        say(session, StompCommand.CONNECT, headers -> headers.setAcceptVersion("1.1,1.2"));
        Suite.same(StompCommand.CONNECTED, next(session).headers.getCommand(), "the answer to CONNECT");
        return session;
    }

    /** A browser sends a frame without a body. */
    void say(String session, StompCommand command, Consumer<StompHeaderAccessor> more) {
        StompHeaderAccessor headers = StompHeaderAccessor.create(command);
        headers.setSessionId(session);
        headers.setSessionAttributes(new ConcurrentHashMap<>());
        more.accept(headers);
        headers.setLeaveMutable(true);
        inbound.send(MessageBuilder.createMessage(new byte[0], headers.getMessageHeaders()));
    }

    /** A browser subscribes and waits for the receipt. */
    void subscribe(String session, String destination, Map<String, String> more) throws Exception {
        say(session, StompCommand.SUBSCRIBE, headers -> {
            headers.setSubscriptionId("sub-" + destination);
            headers.setDestination(destination);
            headers.setReceipt("r");
            more.forEach(headers::setNativeHeader);
        });
        Suite.same(StompCommand.RECEIPT, next(session).headers.getCommand(), "the answer to SUBSCRIBE");
    }

    StompFrame next(String session) throws Exception {
        return Suite.take(sessions.get(session), "a frame for " + session);
    }

    static String name() {
        return PREFIX + UUID.randomUUID();
    }

    @Override
    public void close() {
        users.stop();
        relay.stop();
    }

    /** Every user has one session, of its own name. */
    private static final class Users implements SimpUserRegistry {
        @Override
        public SimpUser getUser(String name) {
            return new User(name);
        }

        @Override
        public Set<SimpUser> getUsers() {
            return Collections.emptySet();
        }

        @Override
        public int getUserCount() {
            return 0;
        }

        @Override
        public Set<SimpSubscription> findSubscriptions(SimpSubscriptionMatcher matcher) {
            return Collections.emptySet();
        }
    }

    private static final class User implements SimpUser, SimpSession {
        private final String name;

        User(String name) {
            this.name = name;
        }

        @Override
        public String getName() {
            return name;
        }

        @Override
        public Principal getPrincipal() {
            return null;
        }

        @Override
        public boolean hasSessions() {
            return true;
        }

        @Override
        public SimpSession getSession(String session) {
            return this;
        }

        @Override
        public Set<SimpSession> getSessions() {
            return Collections.singleton(this);
        }

        @Override
        public String getId() {
            return name;
        }

        @Override
        public SimpUser getUser() {
            return this;
        }

        @Override
        public Set<SimpSubscription> getSubscriptions() {
            return Collections.emptySet();
        }
    }
}
