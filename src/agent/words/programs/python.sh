python3 - <<'KVIST_VALUES'
import importlib, sys
sys.dont_write_bytecode = True
sys.path.insert(0, "@root@")
names = vars(importlib.import_module("@module@"))
values = [
@values@]
hold = 0
for call, wanted, how in values:
    error = None
    try:
        got = eval(call, names)
    except Exception as raised:
        got, error = raised, type(raised)
    if how == "raises":
        good = error is not None and wanted in ("", "Error", "Exception", *(c.__name__ for c in error.__mro__))
        good = good and not (error is NameError and wanted != "NameError")
        wanted = "raise " + (wanted or "an error")
    elif how == "plain":
        good = error is None and str(got) == eval(wanted)
    else:
        value = eval(wanted, names)
        good = error is None and (got == value or (isinstance(value, float) and isinstance(got, (int, float)) and abs(got - value) < 1e-9))
    hold += good
    if not good:
        said = "raises %s: %s" % (error.__name__, got) if error else "gives %r" % (got,)
        print(call, said + ", and should", wanted if how == "raises" else "give " + wanted)
print(hold, "of", len(values), "values of the request hold")
sys.exit(hold != len(values))
KVIST_VALUES
