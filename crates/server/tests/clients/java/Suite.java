import java.util.LinkedHashMap;
import java.util.Map;

/** The cases and the loop that runs them. */
final class Suite {
    /** One case. */
    interface Body {
        void run(World world) throws Exception;
    }

    private final Map<String, Body> cases = new LinkedHashMap<>();

    void add(String name, Body body) {
        cases.put(name, body);
    }

    /** Runs all cases; returns the number that failed. */
    int run() {
        int failed = 0;
        for (Map.Entry<String, Body> entry : cases.entrySet()) {
            try (World world = new World()) {
                entry.getValue().run(world);
                System.out.println("pass " + entry.getKey());
            } catch (Exception | AssertionError error) {
                failed++;
                System.out.println("FAIL " + entry.getKey() + ": " + error);
                error.printStackTrace();
            }
        }
        return failed;
    }
}
