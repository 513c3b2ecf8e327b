import jakarta.jms.JMSException;
import jakarta.jms.Message;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;

/** What was attempted, committed, moved and found while a broker was killed, and what must hold then. */
final class CrashHistory {
    /** The number that each producer's next message gets. */
    private final Map<Integer, Long> next = new HashMap<>();
    /** The first messages of the transactions that were committed for sure. */
    private final Set<String> committed = new HashSet<>();
    /** What the mover may have moved, and what it has for sure. */
    private final Set<String> movedPerhaps = new HashSet<>();
    private final Set<String> moved = new HashSet<>();
    /** How often the mover received a message, and how often it gave one back for sure. */
    private final Map<String, Integer> received = new HashMap<>();
    private final Map<String, Integer> undone = new HashMap<>();
    /** Given back, one after the other, and how many of these are written for sure. */
    private final List<String> givenBack = new ArrayList<>();
    private int written;
    /** What was found in each queue, in all rounds. */
    private final Map<String, Set<String>> found = new TreeMap<>();
    private Throwable broken;
    private int commits;

    synchronized int commits() {
        return commits;
    }

    synchronized void broken(Throwable why) {
        broken = why;
    }

    /** A producer's next transaction: the number of its first message. */
    synchronized long attempt(int producer) {
        long first = next.getOrDefault(producer, 0L);
        next.put(producer, first + CrashCases.PARTS);
        return first;
    }

    /** A commit begins: everything that was given back until now. */
    synchronized int committing() {
        return givenBack.size();
    }

    synchronized void committed(int producer, long first, int before) {
        committed.add(producer + " " + first);
        flushed(before);
    }

    /** What was given back before a commit began is as safe as the commit. */
    private void flushed(int before) {
        commits++;
        for (; written < before; written++) {
            undone.merge(givenBack.get(written), 1, Integer::sum);
        }
    }

    synchronized void received(String text, int count) {
        Suite.check(!moved.contains(text), text + " came again after it was moved");
        counted(text, count);
        received.merge(text, 1, Integer::sum);
    }

    /** Every delivery that ended badly may count, and each one that was undone for sure must. */
    private void counted(String text, int count) {
        int most = 1 + received.getOrDefault(text, 0);
        int least = 1 + undone.getOrDefault(text, 0);
        String range = least + " to " + most;
        Suite.check(count >= least && count <= most, text + " has the count " + count + ", not " + range);
    }

    synchronized void undone(List<String> texts) {
        givenBack.addAll(texts);
    }

    synchronized void moving(List<String> texts) {
        movedPerhaps.addAll(texts);
    }

    synchronized void moved(List<String> texts, int before) {
        moved.addAll(texts);
        flushed(before);
    }

    /** What was not written for sure when the broker was killed is perhaps forgotten. */
    synchronized void killed() {
        written = givenBack.size();
    }

    /** These messages were in a queue, in this order. */
    synchronized void drained(String queue, List<Message> messages) throws JMSException {
        Map<String, Long> last = new HashMap<>();
        for (Message message : messages) {
            String text = World.text(message);
            if (queue.equals("work")) {
                counted(text, World.count(message));
                Suite.check(!moved.contains(text), text + " was moved and is still there");
            }
            boolean isNew = found.computeIfAbsent(queue, name -> new HashSet<>()).add(text);
            Suite.check(isNew, text + " is in " + queue + " twice");
            String[] words = text.split(" ");
            long number = Long.parseLong(words[1]);
            Long before = last.put(words[0], number);
            Suite.check(before == null || before < number, text + " after " + before + " in " + queue);
        }
    }

    /** After all queues were emptied. */
    synchronized void check() {
        if (broken != null) {
            throw new AssertionError("under load", broken);
        }
        Set<String> work = found.getOrDefault("work", Set.of());
        Set<String> done = found.getOrDefault("done", Set.of());
        Set<String> copy = found.getOrDefault("copy", Set.of());
        for (String text : done) {
            Suite.check(!work.contains(text), text + " is in work and in done");
            Suite.check(movedPerhaps.contains(text), text + " is in done, and nobody moved it");
        }
        for (String text : moved) {
            Suite.check(done.contains(text), text + " was moved and is lost");
        }
        for (Map.Entry<Integer, Long> producer : next.entrySet()) {
            for (long first = 0; first < producer.getValue(); first += CrashCases.PARTS) {
                whole(producer.getKey(), first, work, done, copy);
            }
        }
    }

    /** All messages of a transaction are there, in both places, or none is. */
    private void whole(int producer, long first, Set<String> work, Set<String> done, Set<String> copy) {
        int here = 0;
        int there = 0;
        for (long number = first; number < first + CrashCases.PARTS; number++) {
            String text = producer + " " + number;
            here += work.contains(text) || done.contains(text) ? 1 : 0;
            there += copy.contains(text) ? 1 : 0;
        }
        String name = producer + " " + first;
        Suite.same(here, there, "messages in both places of transaction " + name);
        Suite.check(here == 0 || here == CrashCases.PARTS, "transaction " + name + " is torn: " + here);
        boolean isLost = here == 0 && committed.contains(name);
        Suite.check(!isLost, "transaction " + name + " was committed and is lost");
    }

    @Override
    public synchronized String toString() {
        return committed.size() + " transactions committed, " + moved.size() + " messages moved";
    }
}
