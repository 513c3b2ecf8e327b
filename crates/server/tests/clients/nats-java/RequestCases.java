import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.JetStreamStatusException;
import io.nats.client.Message;
import io.nats.service.Discovery;
import io.nats.service.Service;
import io.nats.service.ServiceEndpoint;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CancellationException;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutionException;
import java.util.concurrent.TimeUnit;

/** Requests and their answers. */
final class RequestCases {
    private RequestCases() {}

    static void register(Suite<World> suite) {
        suite.add("requests are answered", RequestCases::answered);
        suite.add("nobody there is told at once", RequestCases::nobody);
        suite.add("services are found and answer", RequestCases::services);
        suite.add("streams are declined", RequestCases::streams);
    }

    private static void answered(World world) throws Exception {
        Connection server = world.connect();
        Connection client = world.connect();
        String subject = World.subject();
        Dispatcher dispatcher = server.createDispatcher(request ->
                server.publish(request.getReplyTo(), World.bytes(World.text(request) + "!")));
        dispatcher.subscribe(subject, "servers");
        server.flush(World.PATIENCE);
        List<CompletableFuture<Message>> answers = new ArrayList<>();
        for (int number = 0; number < 500; number++) {
            answers.add(client.request(subject, World.bytes(number)));
        }
        for (int number = 0; number < 500; number++) {
            Message answer = answers.get(number).get(Suite.PATIENCE_MS, TimeUnit.MILLISECONDS);
            Suite.same(number + "!", World.text(answer), "answer");
        }
    }

    private static void nobody(World world) throws Exception {
        Connection client = world.connect();
        try {
            client.request(World.subject(), null).get(Suite.PATIENCE_MS, TimeUnit.MILLISECONDS);
            throw new AssertionError("somebody answered");
        } catch (CancellationException error) {
            // So the library says it, unless it is to report why.
        }
        Connection telling = world.connect(world.options().reportNoResponders());
        try {
            telling.request(World.subject(), null).get(Suite.PATIENCE_MS, TimeUnit.MILLISECONDS);
            throw new AssertionError("somebody answered");
        } catch (ExecutionException error) {
            Throwable cause = error.getCause();
            Suite.check(cause instanceof JetStreamStatusException, "says why: " + cause);
            Suite.check(cause.getMessage().contains("503"), "says 503: " + cause.getMessage());
        }
    }

    private static void services(World world) throws Exception {
        Connection server = world.connect();
        Connection client = world.connect();
        String name = "java-" + System.nanoTime();
        ServiceEndpoint endpoint = ServiceEndpoint.builder()
                .endpointName("endpoint")
                .endpointSubject(World.subject())
                .handler(request -> request.respond(server, World.bytes("served")))
                .build();
        Service service = Service.builder()
                .connection(server)
                .name(name)
                .version("1.0.0")
                .addServiceEndpoint(endpoint)
                .build();
        service.startService();
        server.flush(World.PATIENCE);
        Message answer = client.request(endpoint.getSubject(), null, World.PATIENCE);
        Suite.same("served", World.text(answer), "answer");
        Discovery discovery = new Discovery(client, Suite.PATIENCE_MS, 1);
        Suite.same(service.getId(), discovery.ping(name).get(0).getId(), "who was found");
        long requests = discovery.stats(name).get(0).getEndpointStatsList().get(0).getNumRequests();
        Suite.same(1L, requests, "requests");
        service.stop();
    }

    private static void streams(World world) throws Exception {
        try {
            world.connect().jetStreamManagement().getAccountStatistics();
            throw new AssertionError("there are streams");
        } catch (IOException error) {
            // As from a nats-server without them.
        }
    }
}
