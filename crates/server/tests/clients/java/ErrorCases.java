import com.rabbitmq.client.AuthenticationFailureException;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Connection;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.ShutdownSignalException;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;

/** What is refused, as the Java client shows it. */
final class ErrorCases {
    private ErrorCases() {}

    static void register(Suite<World> suite) {
        suite.add("a missing queue is 404 and ends only its channel", ErrorCases::missing);
        suite.add("another declaration of the same name is 406", ErrorCases::different);
        suite.add("an exclusive queue is 405 for others", ErrorCases::locked);
        suite.add("an unknown delivery tag is 406", ErrorCases::unknownTag);
        suite.add("a wrong password is an authentication failure", ErrorCases::password);
    }

    private static void missing(World world) throws Exception {
        Connection connection = world.connect();
        Channel channel = connection.createChannel();
        World.refused(404, () -> channel.queueDeclarePassive(World.name()));
        Suite.check(!channel.isOpen() && connection.isOpen(), "the connection is closed");
        connection.createChannel().close();
    }

    private static void different(World world) throws Exception {
        Channel channel = world.channel();
        String queue = world.queue(channel);
        World.refused(406, () -> channel.queueDeclare(queue, true, false, false, Map.of()));
    }

    private static void locked(World world) throws Exception {
        String queue = world.channel().queueDeclare().getQueue();
        Channel other = world.channel();
        World.refused(405, () -> other.queueDeclarePassive(queue));
    }

    private static void unknownTag(World world) throws Exception {
        Channel channel = world.channel();
        BlockingQueue<ShutdownSignalException> ends = new LinkedBlockingQueue<>();
        channel.addShutdownListener(ends::add);
        channel.basicAck(77, false);
        ShutdownSignalException end = Suite.take(ends, "the channel error");
        World.refused(406, () -> { throw end; });
    }

    private static void password(World world) throws Exception {
        ConnectionFactory factory = World.factory();
        factory.setPassword("wrong");
        try {
            world.connect(factory);
        } catch (AuthenticationFailureException refused) {
            return;
        }
        throw new AssertionError("was let in");
    }
}
