copy="$TMPDIR/kvist_values"; rm -rf "$copy"; mkdir "$copy"
tar --exclude=./target --exclude=./.git -cf - . | tar -xf - -C "$copy"
cat >>"$copy/@path@" <<'KVIST_VALUES'

#[cfg(test)]
#[allow(warnings)]
mod kvist_values {
    use super::*;
    fn kvist_value(hold: &mut u32, of: &mut u32, call: &str, got: String, wanted: String) {
        *of += 1;
        if got == wanted { *hold += 1; } else { println!("{} gives {}, and should give {}", call, got, wanted); }
    }
    #[test]
    fn kvist_values() {
        let (mut hold, mut of) = (0u32, 0u32);
@values@        println!("{} of {} values of the request hold", hold, of);
        assert_eq!(hold, of);
    }
}
KVIST_VALUES
cd "$copy" && CARGO_TARGET_DIR="$TMPDIR/target" cargo test --offline -q --lib kvist_values -- --nocapture 2>&1 | grep -v '^ *$' | tee "$TMPDIR/kvist_values.txt"; grep -q 'test result: ok. [1-9]' "$TMPDIR/kvist_values.txt"
