package p

type Box struct {
	A, B int
	Run  func(int) error
}

type Shape interface {
	Area() int
}

const limit = 3

func (b *Box) Area(n int) (total int, err error) {
	if v, ok := lookup(n); ok && v > limit {
		return v, nil
	}
	for i := 0; i < n; i++ {
		total += b.A
	}
	for _, x := range b.items() {
		switch x := x.(type) {
		case int:
			total++
		default:
			continue
		}
	}
	defer b.close()
	go func() { done <- run(n) }()
	select {
	case m := <-done:
		b.B = m
	}
	var out, other = pair(n)
	return out, fmt.Errorf("x %d", other)
}
