node --input-type=module - <<'KVIST_VALUES'
import assert from "node:assert";
import { pathToFileURL } from "node:url";
const module = await import(pathToFileURL("@path@"));
const names = { ...module, ...(module.default && typeof module.default !== "string" ? module.default : {}) };
if (typeof module.default === "function" && module.default.name) names[module.default.name] = module.default;
for (const name of Object.keys(names)) if (name === "default" || !/^[A-Za-z_$][\w$]*$/.test(name)) delete names[name];
const evaluate = (text) => new Function(...Object.keys(names), "return (" + text + ");")(...Object.values(names));
const values = [
@values@];
let hold = 0;
for (const [call, wanted, how] of values) {
  let got, error, good = true, should = "give " + wanted;
  try { got = evaluate(call); if (got instanceof Promise) got = await got; } catch (raised) { error = raised; }
  if (how === "raises") {
    const kinds = ["", "Error", error?.name, error?.constructor?.name];
    good = error !== undefined && kinds.includes(wanted) && !(error instanceof ReferenceError && wanted !== "ReferenceError");
    should = "throw " + (wanted || "an error");
  } else if (how === "plain") good = !error && String(got) === evaluate(wanted);
  else try { if (error) throw error; assert.deepStrictEqual(got, evaluate(wanted)); } catch { good = false; }
  hold += good;
  if (!good) console.log(`${call} ${error ? "throws " + error : "gives " + (JSON.stringify(got) ?? String(got))}, and should ${should}`);
}
console.log(`${hold} of ${values.length} values of the request hold`);
process.exit(hold === values.length ? 0 : 1);
KVIST_VALUES
