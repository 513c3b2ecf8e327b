import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import com.rabbitmq.client.LongString;
import java.math.BigDecimal;
import java.util.Arrays;
import java.util.Date;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/** What a message carries, with every kind of header that the Java client can write. */
final class ContentCases {
    private ContentCases() {}

    static void register(Suite<World> suite) {
        suite.add("every property arrives", ContentCases::properties);
        suite.add("headers of every kind arrive", ContentCases::headers);
        suite.add("bodies around the frame size arrive", ContentCases::bodies);
    }

    private static void properties(World world) throws Exception {
        Channel channel = world.channel();
        String queue = world.queue(channel);
        AMQP.BasicProperties sent = new AMQP.BasicProperties.Builder()
                .contentType("a").contentEncoding("b").deliveryMode(1).priority(9).correlationId("c")
                .replyTo("d").expiration("600000").messageId("e").timestamp(new Date(1_700_000_000_000L))
                .type("f").userId("guest").appId("g").clusterId("h").build();
        World.send(channel, queue, "x", sent);
        Suite.same(sent, World.get(channel, queue, true).getProps(), "properties");
    }

    private static void headers(World world) throws Exception {
        Channel channel = world.channel();
        String queue = world.queue(channel);
        Map<String, Object> headers = new HashMap<>();
        headers.put("boolean", true);
        headers.put("byte", (byte) -7);
        headers.put("short", (short) -300);
        headers.put("int", 70_000);
        headers.put("long", 1L << 40);
        headers.put("float", 1.5f);
        headers.put("double", -2.25d);
        headers.put("decimal", new BigDecimal("3.14"));
        headers.put("date", new Date(1_700_000_000_000L));
        headers.put("null", null);
        headers.put("bytes", new byte[] {0, -1, 2});
        headers.put("list", Arrays.asList(1, 2L, 3.5d));
        headers.put("table", Map.of("inner", 1));
        headers.put("text", "Grüße");
        World.send(channel, queue, "x", new AMQP.BasicProperties.Builder().headers(headers).build());
        Map<String, Object> found = World.get(channel, queue, true).getProps().getHeaders();
        Suite.same(headers.keySet(), found.keySet(), "names");
        for (Map.Entry<String, Object> entry : headers.entrySet()) {
            Object value = found.get(entry.getKey());
            if (value instanceof byte[]) {
                Suite.check(Arrays.equals((byte[]) entry.getValue(), (byte[]) value), "bytes");
            } else {
                Object plain = value instanceof LongString ? value.toString() : value;
                Suite.same(entry.getValue(), plain, entry.getKey());
            }
        }
    }

    private static void bodies(World world) throws Exception {
        ConnectionFactory factory = World.factory();
        factory.setRequestedFrameMax(4096);
        Channel channel = world.connect(factory).createChannel();
        String queue = world.queue(channel);
        for (int size : List.of(0, 1, 4087, 4088, 4089, 8176, 8177, 1 << 20)) {
            byte[] body = new byte[size];
            Arrays.fill(body, (byte) size);
            channel.basicPublish("", queue, null, body);
            Suite.check(Arrays.equals(body, World.get(channel, queue, true).getBody()), size + " bytes");
        }
    }
}
