import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.naming.Context;
import javax.naming.NameNotFoundException;
import org.apache.qpid.jms.JmsQueue;
import org.apache.qpid.jms.JmsTopic;
import org.objectweb.jtests.jms.admin.Admin;

/** What the JORAM tests ask of a provider: factories and destinations by name, here out of a map. */
public final class MapAdmin implements Admin {
    private static final Map<String, Object> BOUND = new ConcurrentHashMap<>();

    @Override
    public String getName() {
        return "Qpid JMS";
    }

    /** A naming context that only looks up. */
    @Override
    public Context createContext() {
        return (Context) Proxy.newProxyInstance(
                MapAdmin.class.getClassLoader(),
                new Class<?>[] {Context.class},
                (proxy, method, arguments) -> {
                    if (!method.getName().equals("lookup")) {
                        throw new UnsupportedOperationException(method.getName());
                    }
                    Object found = BOUND.get(String.valueOf(arguments[0]));
                    if (found == null) {
                        throw new NameNotFoundException(String.valueOf(arguments[0]));
                    }
                    return found;
                });
    }

    @Override
    public void createConnectionFactory(String name) {
        BOUND.put(name, World.factory(Suite.amqpPort()));
    }

    @Override
    public void createQueueConnectionFactory(String name) {
        createConnectionFactory(name);
    }

    @Override
    public void createTopicConnectionFactory(String name) {
        createConnectionFactory(name);
    }

    @Override
    public void createQueue(String name) {
        BOUND.put(name, new JmsQueue(Suite.name(name)));
    }

    @Override
    public void createTopic(String name) {
        BOUND.put(name, new JmsTopic(Suite.name(name)));
    }

    @Override
    public void deleteQueue(String name) {
        BOUND.remove(name);
    }

    @Override
    public void deleteTopic(String name) {
        BOUND.remove(name);
    }

    @Override
    public void deleteConnectionFactory(String name) {
        BOUND.remove(name);
    }

    @Override
    public void deleteQueueConnectionFactory(String name) {
        BOUND.remove(name);
    }

    @Override
    public void deleteTopicConnectionFactory(String name) {
        BOUND.remove(name);
    }

    @Override
    public void startServer() {}

    @Override
    public void stopServer() {}

    @Override
    public void start() {}

    @Override
    public void stop() {}
}
