cat >"$TMPDIR/kvist_values.c" <<'KVIST_VALUES'
#define main kvist_main_of_the_file
#include "@path@"
#undef main
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
static int kvist_hold, kvist_of;
static char *kvist_text(const char *s) { char *r = malloc((s ? strlen(s) : 8) + 1); return strcpy(r, s ? s : "NULL"); }
static char *kvist_number(double d) { char s[64]; snprintf(s, sizeof s, "%.15g", d); return kvist_text(s); }
static char *kvist_integer(long long i) { char s[64]; snprintf(s, sizeof s, "%lld", i); return kvist_text(s); }
static char *kvist_pointer(const void *p) { return kvist_text(p ? "a pointer" : "NULL"); }
#define KVIST_SAYS(x) _Generic((x), char *: kvist_text, const char *: kvist_text, float: kvist_number, double: kvist_number, void *: kvist_pointer, default: kvist_integer)(x)
static void kvist_value(const char *call, const char *got, const char *wanted)
{
    kvist_of++;
    if (!strcmp(got, wanted)) kvist_hold++;
    else printf("%s gives %s, and should give %s\n", call, got, wanted);
    fflush(stdout);
}
int main(void)
{
@values@    printf("%d of %d values of the request hold\n", kvist_hold, kvist_of);
    return kvist_hold != kvist_of;
}
KVIST_VALUES
flags="-std=gnu11 -D_GNU_SOURCE -I. -I@folder@ -Iinclude -Isrc"
n=0
for f in @folder@/*.c; do
    [ "$f" -ef @path@ ] && continue
    n=$((n + 1)); [ $n -gt 40 ] && break
    cc -w $flags -Dmain=kvist_other_main -c -o "$TMPDIR/kvist_$n.o" "$f" 2>/dev/null && set -- "$@" "$TMPDIR/kvist_$n.o"
done
rm -f "$TMPDIR/kvist_values.a"; [ $# = 0 ] || ar rc "$TMPDIR/kvist_values.a" "$@"; [ $# = 0 ] || set -- "$TMPDIR/kvist_values.a"
cc $flags -Werror=implicit-function-declaration -Wno-unused -o "$TMPDIR/kvist_values" "$TMPDIR/kvist_values.c" "$@" -lm -Wl,--unresolved-symbols=ignore-all && "$TMPDIR/kvist_values"
