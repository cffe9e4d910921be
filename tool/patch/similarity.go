package patch

// distance is the Levenshtein distance in UTF-16 code units, by Myers' bit
// vectors in blocks of 64: a column of the table costs one machine word per 64
// units instead of 64 cells.
func distance(a, b []uint16) int {
	if len(a) < len(b) {
		a, b = b, a
	}
	// Ends in common change nothing, and are most of it in near misses.
	for len(b) > 0 && a[len(a)-1] == b[len(b)-1] {
		a, b = a[:len(a)-1], b[:len(b)-1]
	}
	for len(b) > 0 && a[0] == b[0] {
		a, b = a[1:], b[1:]
	}
	if len(b) == 0 {
		return len(a)
	}
	words := (len(b) + 63) / 64
	masks := map[uint16][]uint64{}
	for i, c := range b {
		m := masks[c]
		if m == nil {
			m = make([]uint64, words)
			masks[c] = m
		}
		m[i/64] |= 1 << (i % 64)
	}
	none := make([]uint64, words)
	vp := make([]uint64, words)
	vn := make([]uint64, words)
	for i := range vp {
		vp[i] = ^uint64(0)
	}
	score := len(b)
	last := uint64(1) << ((len(b) - 1) % 64)
	for _, c := range a {
		m := masks[c]
		if m == nil {
			m = none
		}
		// Going one column on adds one at the top.
		inP, inN := uint64(1), uint64(0)
		for w := range words {
			p, n := vp[w], vn[w]
			eq := m[w]
			xv := eq | n
			eq |= inN
			xh := (((eq & p) + p) ^ p) | eq
			hp := n | ^(xh | p)
			hn := p & xh
			if w == words-1 {
				if hp&last != 0 {
					score++
				}
				if hn&last != 0 {
					score--
				}
			}
			outP, outN := hp>>63, hn>>63
			hp = hp<<1 | inP
			hn = hn<<1 | inN
			vp[w] = hn | ^(xv | hp)
			vn[w] = hp & xv
			inP, inN = outP, outN
		}
	}
	return score
}

// similarity is 1 for equal texts and falls to 0, judged on normalised texts.
// When it cannot be over atLeast it gives 0 without working it out.
func similarity(a, b []uint16, atLeast float64) float64 {
	longer := max(len(a), len(b))
	if longer == 0 {
		return 1
	}
	gap := max(len(a), len(b)) - min(len(a), len(b))
	if 1-float64(gap)/float64(longer) <= atLeast {
		return 0
	}
	return 1 - float64(distance(a, b))/float64(longer)
}
