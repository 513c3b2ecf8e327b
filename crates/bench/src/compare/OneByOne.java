// Sends messages over Qpid JMS one by one, and receives and acknowledges them one by one: a line each
// second, like PerfTest's. Arguments: the broker's address, seconds, octets of a body, and `persistent` or
// `transient`.

import jakarta.jms.BytesMessage;
import jakarta.jms.Connection;
import jakarta.jms.DeliveryMode;
import jakarta.jms.MessageConsumer;
import jakarta.jms.MessageProducer;
import jakarta.jms.Session;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.qpid.jms.JmsConnectionFactory;

public class OneByOne {
    /** Messages that were sent and not received, at most: a backlog would be measured otherwise. */
    private static final int AHEAD = 1000;

    public static void main(String[] arguments) throws Exception {
        String address = arguments[0];
        double seconds = Double.parseDouble(arguments[1]);
        byte[] body = new byte[Integer.parseInt(arguments[2])];
        boolean persistent = arguments[3].equals("persistent");
        String queue = "one-by-one-" + ProcessHandle.current().pid();
        AtomicLong sent = new AtomicLong();
        AtomicLong received = new AtomicLong();
        Semaphore ahead = new Semaphore(AHEAD);
        Connection consuming = new JmsConnectionFactory(address).createConnection();
        Connection producing = new JmsConnectionFactory(address).createConnection();
        consuming.start();
        Session consumerSession = consuming.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageConsumer consumer = consumerSession.createConsumer(consumerSession.createQueue(queue));
        Session producerSession = producing.createSession(false, Session.AUTO_ACKNOWLEDGE);
        MessageProducer producer = producerSession.createProducer(producerSession.createQueue(queue));
        producer.setDeliveryMode(persistent ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        Thread receiver = new Thread(() -> {
            try {
                while (consumer.receive() != null) {
                    received.incrementAndGet();
                    ahead.release();
                }
            } catch (Exception error) {
                end(error);
            }
        });
        Thread sender = new Thread(() -> {
            try {
                while (true) {
                    ahead.acquire();
                    BytesMessage message = producerSession.createBytesMessage();
                    message.writeBytes(body);
                    producer.send(message);
                    sent.incrementAndGet();
                }
            } catch (Exception error) {
                end(error);
            }
        });
        receiver.setDaemon(true);
        sender.setDaemon(true);
        receiver.start();
        sender.start();
        long start = System.nanoTime();
        long beforeNs = start;
        long sentBefore = 0;
        long receivedBefore = 0;
        while (beforeNs - start < seconds * 1e9) {
            Thread.sleep(1000);
            long nowNs = System.nanoTime();
            long sentNow = sent.get();
            long receivedNow = received.get();
            double span = (nowNs - beforeNs) / 1e9;
            System.out.printf(
                java.util.Locale.ROOT,
                "id: one-by-one, time %.3f s, sent: %.0f msg/s, received: %.0f msg/s%n",
                (nowNs - start) / 1e9,
                (sentNow - sentBefore) / span,
                (receivedNow - receivedBefore) / span);
            System.out.flush();
            beforeNs = nowNs;
            sentBefore = sentNow;
            receivedBefore = receivedNow;
        }
        System.exit(0);
    }

    private static void end(Exception error) {
        error.printStackTrace();
        System.exit(1);
    }
}
