import { a } from "./a.js";

export default class Box extends Base {
  #size = 1;
  constructor(value) {
    super(value);
    this.value = value;
  }
  get area() { return this.#size ** 2; }
  static async *walk(items) {
    for await (const item of items) yield item;
  }
}

export const go = async (x, { y = 1 }) => {
  let total = 0;
  for (let i = 0; i < x; i++) total += await step(i)?.value;
  for (const key in y) if (key) delete y[key];
  do { total--; } while (total > 9);
  try {
    const box = new Box(total);
  } catch (e) {
    throw new Error(`bad ${e.message()}`);
  }
  switch (x) {
    case 1: return total ? one() : two();
    default: break;
  }
  items.forEach((item) => item.run());
  module.exports.leap = function () { return 1; };
};
const double = (n) => n * 2;
