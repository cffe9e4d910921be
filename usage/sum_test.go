package usage

// SpentIn is SpentOf for a whole row.
func SpentIn(message []byte) (Tokens, bool) {
	if r := parseRow(message); r.typ == "say" {
		return SpentOf(r.say, r.text, r.condens)
	}
	return Tokens{}, false
}

// Sum adds up the rows of a list.
func Sum(messages [][]byte) (t Tokens) {
	for _, m := range messages {
		if s, ok := SpentIn(m); ok {
			s.AddTo(&t)
		}
	}
	return t
}
