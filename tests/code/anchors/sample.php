<?php
namespace Shapes;

interface Shape { public function area(int $scale): int; }
abstract class Box extends Base implements Shape {
    private int $size = 1;
    const LIMIT = 3;
    public function __construct(int $size) { parent::__construct($size); $this->size = $size; }
    public function area(int $scale): int {
        $total = 0;
        for ($i = 0; $i < $scale; $i++) { $total += $this->step($i); }
        foreach ($this->items as $key => $item) {
            if ($item === null) { continue; } elseif (check($item)) { $total--; } else { $total = 1; }
        }
        while ($total > 9) { $total /= 2; }
        try { $x = new Point($total); } catch (\Exception $e) { throw new Bad($e->getMessage()); }
        switch ($total) { case 1: return 1; default: break; }
        $f = function ($a) use ($total) { return $a + $total; };
        $g = fn($a) => $a + 1;
        return $scale ? Box::make($f($total)) : $item?->size();
    }
}
function outside($a) { return $a; }
trait Walks { }
enum Color { case Red; }
