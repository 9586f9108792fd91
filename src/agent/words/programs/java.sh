mkdir -p "$TMPDIR/kvist_values"; cat >"$TMPDIR/kvist_values/KvistValues.java" <<'KVIST_VALUES'
@package_line@public class KvistValues {
    static int hold, of;
    static void value(String call, String got, String wanted) {
        of++;
        if (got.equals(wanted)) hold++;
        else System.out.println(call + " gives " + got + ", and should give " + wanted);
    }
    public static void main(String[] arguments) {
@values@        System.out.println(hold + " of " + of + " values of the request hold");
        System.exit(hold == of ? 0 : 1);
    }
}
KVIST_VALUES
javac -nowarn -sourcepath "@root@" -d "$TMPDIR/kvist_values/out" "@path@" "$TMPDIR/kvist_values/KvistValues.java" && java -cp "$TMPDIR/kvist_values/out" @package_prefix@KvistValues
