interface Shape<T> {
  readonly size: number;
  area(scale?: number): T;
}
type Name = string | null;
enum Color { Red = 1, Green }
export abstract class Box<T> implements Shape<T> {
  constructor(private value: T) { super(); }
  abstract area(scale?: number): T;
  public size: number = 1;
  run<U>(x: U): U {
    const y = x as unknown as U;
    if (isOk<U>(y)) return y!;
    this.value = other(x);
    return y ?? x;
  }
}
declare function outside(a: number): void;
namespace inner { export const k = (a: number): number => a + 1; }
