import java.io.IOException;
import java.net.InetAddress;
import java.net.ServerSocket;
import java.net.Socket;
import java.util.List;
import java.util.concurrent.CopyOnWriteArrayList;

/** Passes bytes between clients and a port of this machine, until it is told to cut. */
final class Relay implements AutoCloseable {
    final int port;
    private final ServerSocket listener = new ServerSocket(0, 50, InetAddress.getLoopbackAddress());
    private final int target;
    private final List<Socket> open = new CopyOnWriteArrayList<>();

    Relay(int target) throws IOException {
        this.target = target;
        port = listener.getLocalPort();
        begin(this::accept);
    }

    private interface Work {
        void run() throws IOException;
    }

    private static void begin(Work work) {
        Thread thread = new Thread(() -> {
            try {
                work.run();
            } catch (IOException end) {
                // One side has closed; the other is closed by whoever copies there.
            }
        });
        thread.setDaemon(true);
        thread.start();
    }

    private void accept() throws IOException {
        while (true) {
            Socket here = listener.accept();
            Socket there = new Socket(InetAddress.getLoopbackAddress(), target);
            here.setTcpNoDelay(true);
            there.setTcpNoDelay(true);
            open.addAll(List.of(here, there));
            begin(() -> copy(here, there));
            begin(() -> copy(there, here));
        }
    }

    private static void copy(Socket from, Socket to) throws IOException {
        try (from; to) {
            from.getInputStream().transferTo(to.getOutputStream());
        }
    }

    /** Ends every connection, as a failing network does. */
    void cut() throws IOException {
        for (Socket socket : open) {
            // One that the copying threads have closed is closed again, which does nothing.
            socket.close();
        }
    }

    @Override
    public void close() throws IOException {
        listener.close();
        cut();
    }
}
