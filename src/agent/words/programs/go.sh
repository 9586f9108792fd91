cat >"$TMPDIR/kvist_values_test.go" <<'KVIST_VALUES'
package @package@

import (
	"fmt"
	"testing"
@imports@)

var kvistHold, kvistOf int

func kvistSays(all ...interface{}) string {
	if n := len(all); n > 1 {
		if err, is := all[n-1].(error); is && err != nil {
			return "error"
		} else if all[n-1] == nil {
			all = all[:n-1]
		}
	} else if n == 1 {
		if err, is := all[0].(error); is && err != nil {
			return "error"
		}
	}
	return fmt.Sprint(all...)
}

func kvistValue(t *testing.T, call, wanted string, says func() string) {
	got := func() (got string) {
		defer func() {
			if r := recover(); r != nil {
				got = fmt.Sprint("panic: ", r)
			}
		}()
		return says()
	}()
	kvistOf++
	if got == wanted {
		kvistHold++
	} else {
		fmt.Printf("%s gives %s, and should give %s\n", call, got, wanted)
		t.Fail()
	}
}

func TestKvistValues(t *testing.T) {
@values@	fmt.Printf("%d of %d values of the request hold\n", kvistHold, kvistOf)
}
KVIST_VALUES
printf '{"Replace": {"%s": "%s"}}' "$PWD/@folder@kvist_values_test.go" "$TMPDIR/kvist_values_test.go" >"$TMPDIR/kvist_values.json"
go test -v -vet=off -count=1 -overlay "$TMPDIR/kvist_values.json" -run '^TestKvistValues$' ./@folder@
