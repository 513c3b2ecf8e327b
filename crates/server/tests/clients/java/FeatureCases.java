import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.Delivery;
import com.rabbitmq.client.Return;
import java.util.Map;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeoutException;

/** Extensions that the Java client takes other paths for. */
final class FeatureCases {
    private FeatureCases() {}

    static void register(Suite<World> suite) {
        suite.add("a returned message comes before its confirm", FeatureCases::returned);
        suite.add("direct reply-to by the client's own RPC", FeatureCases::rpc);
        suite.add("exchanges are bound to exchanges", FeatureCases::exchangeBinding);
        suite.add("a transaction over two queues commits and rolls back", FeatureCases::transaction);
        suite.add("a rejected message becomes a dead letter", FeatureCases::deadLetter);
        suite.add("a consumer hears that its queue is gone", FeatureCases::cancelled);
        suite.add("confirms come while others consume", FeatureCases::concurrent);
    }

    private static void returned(World world) throws Exception {
        Channel channel = world.confirming();
        BlockingQueue<String> events = new LinkedBlockingQueue<>();
        channel.addReturnListener((Return back) -> events.add("return " + back.getReplyCode()));
        channel.addConfirmListener(
                (tag, multiple) -> events.add("ack"), (tag, multiple) -> events.add("nack"));
        channel.basicPublish("", World.name(), true, null, new byte[1]);
        Suite.same("return 312", Suite.take(events, "the return"), "first event");
        Suite.same("ack", Suite.take(events, "the confirm"), "second event");
    }

    private static void rpc(World world) throws Exception {
        Channel server = world.channel();
        Channel client = world.channel();
        String queue = world.queue(server);
        server.basicConsume(queue, true, (tag, request) -> {
            AMQP.BasicProperties.Builder answer = new AMQP.BasicProperties.Builder();
            answer.correlationId(request.getProperties().getCorrelationId());
            server.basicPublish("", request.getProperties().getReplyTo(), answer.build(), request.getBody());
        }, tag -> {});
        BlockingQueue<Delivery> answers = World.consume(client, "amq.rabbitmq.reply-to", true);
        for (int number = 0; number < 50; number++) {
            AMQP.BasicProperties.Builder ask = new AMQP.BasicProperties.Builder();
            ask.replyTo("amq.rabbitmq.reply-to").correlationId("" + number);
            World.send(client, queue, "q" + number, ask.build());
            Delivery answer = Suite.take(answers, "answer " + number);
            Suite.same("q" + number, World.text(answer.getBody()), "answer");
            Suite.same("" + number, answer.getProperties().getCorrelationId(), "correlation");
        }
    }

    private static void exchangeBinding(World world) throws Exception {
        Channel channel = world.confirming();
        String queue = world.queue(channel);
        String source = World.name();
        String target = World.name();
        channel.exchangeDeclare(source, "fanout", false, true, null);
        channel.exchangeDeclare(target, "topic", false, true, null);
        channel.exchangeBind(target, source, "");
        channel.queueBind(queue, target, "a.#");
        channel.basicPublish(source, "a.b", null, "x".getBytes());
        Suite.same("x", World.text(World.get(channel, queue, true).getBody()), "body");
        channel.exchangeDelete(source);
        channel.exchangeDelete(target);
    }

    private static void transaction(World world) throws Exception {
        Channel channel = world.channel();
        String one = world.queue(channel, true, Map.of());
        String two = world.queue(channel, true, Map.of());
        channel.txSelect();
        World.send(channel, one, "rolled back", null);
        channel.txRollback();
        World.send(channel, one, "1", null);
        World.send(channel, two, "2", null);
        channel.txCommit();
        Channel other = world.channel();
        Suite.same("1", World.text(World.get(other, one, true).getBody()), "first queue");
        Suite.same("2", World.text(World.get(other, two, true).getBody()), "second queue");
        Suite.check(other.basicGet(one, true) == null, "the rollback left something");
    }

    private static void deadLetter(World world) throws Exception {
        Channel channel = world.confirming();
        String letters = world.queue(channel);
        Map<String, Object> arguments =
                Map.of("x-dead-letter-exchange", "", "x-dead-letter-routing-key", letters);
        String queue = world.queue(channel, false, arguments);
        World.send(channel, queue, "x", null);
        channel.basicReject(World.get(channel, queue, false).getEnvelope().getDeliveryTag(), false);
        Map<String, Object> headers = World.get(channel, letters, true).getProps().getHeaders();
        Suite.same("rejected", headers.get("x-first-death-reason").toString(), "reason");
        Suite.same(queue, headers.get("x-first-death-queue").toString(), "queue");
    }

    private static void cancelled(World world) throws Exception {
        Channel channel = world.channel();
        String queue = world.queue(channel);
        BlockingQueue<String> cancelled = new LinkedBlockingQueue<>();
        String tag = channel.basicConsume(queue, true, (of, delivery) -> {}, cancelled::add);
        world.channel().queueDelete(queue);
        Suite.same(tag, Suite.take(cancelled, "the cancel notification"), "tag");
    }

    private static void concurrent(World world) throws Exception {
        Channel setup = world.channel();
        String queue = world.queue(setup, true, Map.of());
        BlockingQueue<Delivery> got = World.consume(world.channel(), queue, true);
        Thread[] producers = new Thread[4];
        BlockingQueue<Exception> failures = new LinkedBlockingQueue<>();
        for (int index = 0; index < producers.length; index++) {
            Channel channel = world.confirming();
            producers[index] = new Thread(() -> publishMany(channel, queue, failures));
            producers[index].start();
        }
        for (int number = 0; number < 4 * 250; number++) {
            Suite.take(got, "message " + number);
        }
        for (Thread producer : producers) {
            producer.join(Suite.PATIENCE_MS);
        }
        Suite.check(failures.isEmpty(), "a producer failed: " + failures);
    }

    private static void publishMany(Channel channel, String queue, BlockingQueue<Exception> failures) {
        try {
            AMQP.BasicProperties persistent = new AMQP.BasicProperties.Builder().deliveryMode(2).build();
            for (int number = 0; number < 250; number++) {
                World.send(channel, queue, "x", persistent);
            }
            channel.waitForConfirmsOrDie(Suite.PATIENCE_MS);
        } catch (java.io.IOException | InterruptedException | TimeoutException error) {
            failures.add(error);
        }
    }
}
