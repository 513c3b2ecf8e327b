import io.nats.client.AuthHandler;
import io.nats.client.AuthenticationException;
import io.nats.client.Connection;
import io.nats.client.NKey;
import io.nats.client.Options;
import java.security.SecureRandom;
import java.time.Duration;

/** Who may connect, and what they may do. */
final class AccessCases {
    private AccessCases() {}

    static void register(Suite<World> suite) {
        suite.add("a wrong password is refused", AccessCases::password);
        suite.add("rights are checked", AccessCases::rights);
        suite.add("an nkey signs the nonce", AccessCases::nkey);
    }

    private static void password(World world) throws Exception {
        refused(world, world.options().userInfo("guest", "wrong"));
        world.connect(world.options().userInfo("guest", "guest"));
    }

    private static void rights(World world) throws Exception {
        World.administerWith("pw", "user", "add", "java-reader");
        World.administer(
                "permission", "set", "java-reader", "--write", "", "--configure", "", "--read", ".*");
        Connection client = world.connect(world.options().userInfo("java-reader", "pw"));
        String subject = World.subject();
        client.publish(subject, World.bytes("no"));
        String complaint = Suite.take(world.complaints, "the refusal");
        Suite.same("Permissions Violation for Publish to \"" + subject + "\"", complaint, "refusal");
        World.administer("user", "delete", "java-reader");
    }

    private static void nkey(World world) throws Exception {
        NKey known = NKey.createUser(new SecureRandom());
        String name = new String(known.getPublicKey());
        World.administer("user", "add", name, "--no-password");
        World.administer("permission", "set", name);
        world.connect(world.options().authHandler(signing(known))).flush(World.PATIENCE);
        NKey stranger = NKey.createUser(new SecureRandom());
        refused(world, world.options().authHandler(signing(stranger)));
        World.administer("user", "delete", name);
    }

    private static AuthHandler signing(NKey key) {
        return new AuthHandler() {
            @Override
            public byte[] sign(byte[] nonce) {
                try {
                    return key.sign(nonce);
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            }

            @Override
            public char[] getID() {
                try {
                    return key.getPublicKey();
                } catch (Exception error) {
                    throw new AssertionError(error);
                }
            }

            @Override
            public char[] getJWT() {
                return null;
            }
        };
    }

    private static void refused(World world, Options.Builder options) throws Exception {
        try {
            // It waits as long as for a connection before it says that it was refused.
            world.connect(options.connectionTimeout(Duration.ofMillis(500)));
        } catch (AuthenticationException error) {
            return;
        }
        throw new AssertionError("was let in");
    }
}
