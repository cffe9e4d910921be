package postgres

// Keep bounds the lines that are kept.
func (f *Feed) Keep(lines int64) *Feed {
	f.keep = lines
	return f
}
