package roofmt

// Len returns the number of tasks that have a row.
func (r *Rows) Len() int { return len(r.rows) }
