package redact

import "io"

// Writer masks secrets on their way to another writer. It is not safe for
// concurrent use.
type Writer struct {
	r      *Redactor
	w      io.Writer
	held   []byte
	out    []byte
	before byte
	count  int
}

// Writer returns a masking writer in front of w. Close it to write what is held
// back; w is not closed.
func (r *Redactor) Writer(w io.Writer) *Writer { return &Writer{r: r, w: w} }

// Write takes all of p; a part of it may be held back.
func (w *Writer) Write(p []byte) (int, error) {
	w.held = append(w.held, p...)
	if err := w.pass(false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Close writes the rest. The Writer can be used again for another text.
func (w *Writer) Close() error {
	err := w.pass(true)
	w.held, w.before = w.held[:0], 0
	return err
}

// Count is how many secrets were masked so far.
func (w *Writer) Count() int { return w.count }

func (w *Writer) pass(final bool) error {
	out, count, done := w.r.mask(w.out[:0], string(w.held), w.before, final)
	w.out, w.count = out, w.count+count
	if done > 0 {
		w.before = w.held[done-1]
		w.held = w.held[:copy(w.held, w.held[done:])]
	}
	if len(out) == 0 {
		return nil
	}
	_, err := w.w.Write(out)
	return err
}
