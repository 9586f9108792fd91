namespace Shapes {
    public class Box : Base {
        private int size = 1;
        public int Width { get; set; }
        public Box(int size) { this.size = size; Init(); }
        public async Task<int> Area(List<int> items) {
            var total = 0;
            for (int i = 0; i < size; i++) total += Step(i);
            foreach (var item in items) {
                if (item == 0) continue;
                total = item > 3 ? item : Other(item);
            }
            while (total > 9) total--;
            try { await Run(total); }
            catch (IOException e) { throw new Exception(e.Message); }
            switch (total) { case 1: return 1; default: break; }
            items.ForEach(x => Log(x));
            return items.Where(x => x > 1).Count();
        }
        int Local(int a) { int Inner(int b) { return b; } return Inner(a); }
    }
    interface IShape { int Area(); }
    enum Color { Red, Green }
    struct Point { public int X; }
}
