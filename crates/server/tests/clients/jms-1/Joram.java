import java.util.HashSet;
import java.util.Set;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;
import org.objectweb.jtests.jms.conform.connection.ConnectionTest;
import org.objectweb.jtests.jms.conform.connection.TopicConnectionTest;
import org.objectweb.jtests.jms.conform.message.MessageBodyTest;
import org.objectweb.jtests.jms.conform.message.MessageDefaultTest;
import org.objectweb.jtests.jms.conform.message.MessageTypeTest;
import org.objectweb.jtests.jms.conform.message.headers.MessageHeaderTest;
import org.objectweb.jtests.jms.conform.message.properties.JMSXPropertyTest;
import org.objectweb.jtests.jms.conform.message.properties.MessagePropertyConversionTest;
import org.objectweb.jtests.jms.conform.message.properties.MessagePropertyTest;
import org.objectweb.jtests.jms.conform.queue.QueueBrowserTest;
import org.objectweb.jtests.jms.conform.queue.TemporaryQueueTest;
import org.objectweb.jtests.jms.conform.selector.SelectorSyntaxTest;
import org.objectweb.jtests.jms.conform.selector.SelectorTest;
import org.objectweb.jtests.jms.conform.session.QueueSessionTest;
import org.objectweb.jtests.jms.conform.session.SessionTest;
import org.objectweb.jtests.jms.conform.session.TopicSessionTest;
import org.objectweb.jtests.jms.conform.session.UnifiedSessionTest;
import org.objectweb.jtests.jms.conform.topic.TemporaryTopicTest;

/** JORAM's conformance tests of JMS 1.1, all of them. */
final class Joram {
    /** How many tests its classes have. */
    private static final int TESTS = 196;

    private static final Class<?>[] CLASSES = {
        ConnectionTest.class, TopicConnectionTest.class, MessageBodyTest.class, MessageDefaultTest.class,
        MessageTypeTest.class, MessageHeaderTest.class, JMSXPropertyTest.class,
        MessagePropertyConversionTest.class, MessagePropertyTest.class, QueueBrowserTest.class,
        TemporaryQueueTest.class, SelectorSyntaxTest.class, SelectorTest.class, QueueSessionTest.class,
        SessionTest.class, TopicSessionTest.class, UnifiedSessionTest.class, TemporaryTopicTest.class,
    };

    private Joram() {}

    /** Runs them; returns how many failed. Fewer than there should be count as a failure. */
    static int run() {
        JUnitCore core = new JUnitCore();
        Report report = new Report();
        core.addListener(report);
        core.run(CLASSES);
        if (report.passed + report.failed.size() != TESTS) {
            System.out.println("FAIL joram.all: " + report.passed + " passed and " + report.failed.size()
                    + " failed, which are not " + TESTS);
            return report.failed.size() + 1;
        }
        return report.failed.size();
    }

    /** Prints a line for each test. */
    private static final class Report extends RunListener {
        int passed;
        final Set<String> failed = new HashSet<>();

        private static String name(Description test) {
            return "joram." + test.getTestClass().getSimpleName() + "." + test.getMethodName();
        }

        @Override
        public void testFailure(Failure failure) {
            if (failed.add(name(failure.getDescription()))) {
                System.out.println("FAIL " + name(failure.getDescription()) + ": " + failure.getException());
                failure.getException().printStackTrace();
            }
        }

        @Override
        public void testFinished(Description test) {
            if (!failed.contains(name(test))) {
                passed++;
                System.out.println("pass " + name(test));
            }
        }
    }
}
