use std::fmt;

#[derive(Debug)]
pub struct Point { pub x: u8, y: Vec<u8> }

pub enum Shape { Round(u8), Square { side: u8 } }

pub trait Area { fn area(&self) -> u32; fn name(&self) -> String { String::new() } }

impl<T> Area for Point where T: Clone {
    #[inline]
    fn area(&self) -> u32 {
        let mut total = 0;
        for (i, v) in self.y.iter().enumerate() {
            if let Some(n) = check(*v) { total += n; } else { continue; }
        }
        while total > 3 { total -= 1; }
        let side = match self.x { 0 => return 1, n if n > 3 => n, _ => 2 };
        println!("{}", side);
        let f = |a: u32| a + 1;
        self.z = f(total)?;
        loop { break; }
        total + u32::from(side)
    }
}
