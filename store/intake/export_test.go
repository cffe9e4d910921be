package intake

// Tagged is one message of a tagged history.
type Tagged struct {
	From int // -1 = new
	Raw  []byte
}

// TagDeleted is tagDeleted.
func TagDeleted(history [][]byte, first, last int) (out []Tagged) {
	for _, m := range tagDeleted(history, first, last) {
		out = append(out, Tagged{From: m.from, Raw: m.raw})
	}
	return out
}
