/*
 * For scripts/bench-rename: what each name in a tree of Java means, by the compiler. java Names.java TREE FILE...
 * writes a line for each name: file, byte, the name, and the thing it means; two places that mean the same thing
 * have the same last column, "?" is a name that the compiler cannot resolve (a library that is not there).
 *
 * Methods of one class that share a name are one thing, since rename is asked for a type and a name; so is what
 * overrides, with what it overrides, since it has to keep its name. "outside:" begins a thing that a class outside
 * of the tree declares too.
 */
import com.sun.source.tree.*;
import com.sun.source.util.JavacTask;
import com.sun.source.util.SourcePositions;
import com.sun.source.util.TreeScanner;
import com.sun.source.util.Trees;
import com.sun.tools.javac.api.*;
import com.sun.tools.javac.code.*;
import com.sun.tools.javac.code.Symbol.*;
import com.sun.tools.javac.tree.*;
import com.sun.tools.javac.tree.JCTree.*;
import java.io.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import javax.tools.*;

public class Names {
    static final Map<String, String> parent = new HashMap<>();
    static final Map<Symbol, String> locals = new IdentityHashMap<>();
    static final Set<String> outside = new HashSet<>();
    static final Set<Symbol> ours = Collections.newSetFromMap(new IdentityHashMap<>());
    static com.sun.tools.javac.code.Types types;

    static String root(String k) {
        String p = parent.get(k);
        while (p != null && !p.equals(k)) { k = p; p = parent.get(k); }
        return k;
    }
    static void join(String a, String b) {
        a = root(a);
        b = root(b);
        if (!a.equals(b)) parent.put(a, b);
    }
    static String key(Symbol s) {
        if (s == null || s.kind == null) return null;
        if (s instanceof MethodSymbol m) {
            if (m.isConstructor()) return key(m.owner);
            return m.owner.flatName() + "#" + m.name + "()";
        }
        if (s instanceof TypeVariableSymbol) return locals.computeIfAbsent(s, x -> "type " + locals.size());
        if (s instanceof ClassSymbol c) return c.type != null && c.type.isErroneous() ? null : "class " + c.flatname;
        if (s instanceof VarSymbol v) {
            if (v.type != null && v.name == v.name.table.names._class) return null;
            if (v.owner instanceof ClassSymbol c) return c.flatName() + "#" + v.name;
            return locals.computeIfAbsent(s, x -> "local " + locals.size());
        }
        return null;
    }
    /* Binds the methods of a class to what they override, its own and inherited ones. */
    static void bind(ClassSymbol c) {
        for (Type t : types.closure(c.type)) {
            if (t.tsym == c || !(t.tsym instanceof ClassSymbol)) continue;
            for (Symbol s : t.tsym.members().getSymbols()) {
                if (!(s instanceof MethodSymbol m) || m.isConstructor() || m.isStatic()) continue;
                Symbol i = m.implementation(c, types, true);
                if (i == null || i == m) continue;
                if (!ours.contains(i.owner)) continue;
                if (ours.contains(m.owner)) join(key(i), key(m));
                else outside.add(key(i));
            }
        }
    }
    record Found(String path, int at, String name, String key) {}

    public static void main(String[] a) throws Exception {
        Path tree = Path.of(a[0]).toRealPath();
        List<File> files = new ArrayList<>();
        for (int i = 1; i < a.length; i++) files.add(tree.resolve(a[i]).toFile());
        JavacTool tool = JavacTool.create();
        StandardJavaFileManager manager = tool.getStandardFileManager(d -> {}, null, StandardCharsets.UTF_8);
        JavacTask task = tool.getTask(null, manager, d -> {}, List.of("-proc:none", "-XDshould-stop.ifError=FLOW", "-Xmaxerrs", "100000"),
                null, manager.getJavaFileObjectsFromFiles(files));
        Iterable<? extends CompilationUnitTree> units = task.parse();
        task.analyze();
        types = com.sun.tools.javac.code.Types.instance(((BasicJavacTask) task).getContext());
        List<ClassSymbol> classes = new ArrayList<>();
        for (CompilationUnitTree u : units)
            new TreeScanner<Void, Void>() {
                @Override public Void visitClass(ClassTree t, Void v) {
                    if (((JCClassDecl) t).sym != null && ours.add(((JCClassDecl) t).sym)) classes.add(((JCClassDecl) t).sym);
                    return super.visitClass(t, v);
                }
            }.scan(u, null);
        for (ClassSymbol c : classes)
            try { bind(c); } catch (RuntimeException e) { /* a parent that is not there */ }
        List<Found> all = new ArrayList<>();
        SourcePositions where = Trees.instance(task).getSourcePositions();
        for (CompilationUnitTree u : units) {
            String text = u.getSourceFile().getCharContent(true).toString();
            String path = tree.relativize(Path.of(u.getSourceFile().toUri()).toRealPath()).toString();
            new TreeScanner<Void, Void>() {
                void put(long at, CharSequence name, Symbol s) {
                    if (at < 0 || name.length() == 0 || !text.startsWith(name.toString(), (int) at)) return;
                    String k = s != null && s.type != null && s.type.isErroneous() && !(s instanceof VarSymbol) && !(s instanceof MethodSymbol) ? null : key(s);
                    all.add(new Found(path, (int) at, name.toString(), k));
                }
                @Override public Void visitIdentifier(IdentifierTree t, Void v) {
                    put(((JCIdent) t).pos, t.getName(), ((JCIdent) t).sym);
                    return null;
                }
                @Override public Void visitMemberSelect(MemberSelectTree t, Void v) {
                    long end = where.getEndPosition(u, t);
                    put(end - t.getIdentifier().length(), t.getIdentifier(), ((JCFieldAccess) t).sym);
                    return super.visitMemberSelect(t, v);
                }
                @Override public Void visitMemberReference(MemberReferenceTree t, Void v) {
                    long end = where.getEndPosition(u, t);
                    put(end - t.getName().length(), t.getName(), ((JCMemberReference) t).sym);
                    return super.visitMemberReference(t, v);
                }
                @Override public Void visitVariable(VariableTree t, Void v) {
                    put(((JCVariableDecl) t).pos, t.getName(), ((JCVariableDecl) t).sym);
                    return super.visitVariable(t, v);
                }
                @Override public Void visitMethod(MethodTree t, Void v) {
                    JCMethodDecl m = (JCMethodDecl) t;
                    if (m.sym != null) put(m.pos, m.sym.isConstructor() ? m.sym.owner.name : m.name, m.sym);
                    return super.visitMethod(t, v);
                }
                @Override public Void visitTypeParameter(TypeParameterTree t, Void v) {
                    put(((JCTypeParameter) t).pos, t.getName(), ((JCTypeParameter) t).type == null ? null : ((JCTypeParameter) t).type.tsym);
                    return super.visitTypeParameter(t, v);
                }
                @Override public Void visitClass(ClassTree t, Void v) {
                    JCClassDecl c = (JCClassDecl) t;
                    if (c.name.length() > 0 && c.sym != null) {
                        int at = c.pos;
                        while (at < text.length() && (!text.startsWith(c.name.toString(), at) ||
                                Character.isJavaIdentifierPart(text.charAt(at - 1)) ||
                                (at + c.name.length() < text.length() && Character.isJavaIdentifierPart(text.charAt(at + c.name.length())))))
                            at++;
                        put(at, c.name, c.sym);
                    }
                    return super.visitClass(t, v);
                }
                @Override public Void visitImport(ImportTree t, Void v) {
                    if (t.isStatic() && t.getQualifiedIdentifier() instanceof JCFieldAccess f && f.selected.type != null) {
                        Symbol found = null;
                        for (Type k : types.closure(f.selected.type))
                            for (Symbol s : k.tsym.members().getSymbolsByName(f.name))
                                if (found == null) found = s;
                        put(where.getEndPosition(u, f) - f.name.length(), f.name, found);
                        return scan(f.selected, null);
                    }
                    return super.visitImport(t, v);
                }
            }.scan(u, null);
        }
        Set<String> closed = new HashSet<>();
        for (String o : outside) closed.add(root(o));
        PrintStream out = new PrintStream(new BufferedOutputStream(System.out), false, "UTF-8");
        Map<String, int[]> bytes = new HashMap<>();
        for (Found f : all) {
            int[] at = bytes.computeIfAbsent(f.path, p -> {
                try {
                    String text = Files.readString(tree.resolve(p));
                    int[] b = new int[text.length() + 1];
                    for (int i = 0; i < text.length(); i++) {
                        char c = text.charAt(i);
                        b[i + 1] = b[i] + (c < 0x80 ? 1 : c < 0x800 ? 2 : Character.isSurrogate(c) ? 2 : 3);
                    }
                    return b;
                } catch (IOException e) { throw new UncheckedIOException(e); }
            });
            String k = f.key == null ? "?" : root(f.key);
            out.println(f.path + "\t" + at[f.at] + "\t" + f.name + "\t" + (closed.contains(k) ? "outside:" : "") + k);
        }
        out.flush();
    }
}
