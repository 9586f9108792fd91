package p;

@Deprecated
public class Sample<T> extends Base implements Shape {
    private int size = 1, other;

    public Sample(int size) throws IOException {
        super(size);
        this.size = size;
    }

    @Override
    public int area(List<T> items) {
        int total = 0;
        for (int i = 0; i < size; i++) total += step(i);
        for (T item : items) {
            if (item == null) continue;
            total = item.size() > 3 ? item.size() : other(item);
        }
        do { total--; } while (total > 9);
        try (Reader r = open("a")) {
            r.read();
        } catch (IOException | RuntimeException e) {
            throw new IllegalStateException(e.getMessage());
        } finally {
            close();
        }
        switch (total) {
            case 1: return 1;
            default: break;
        }
        items.forEach(x -> run(x));
        return total;
    }

    interface Shape { int area(); }
    enum Color { RED, GREEN }
    record Pair(int a, int b) {}
}
