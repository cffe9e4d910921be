package catalog

import (
	"os"
	"path/filepath"
	"time"
)

// LookedName is the name of the file that says when rows were last compared with every
// file that they are derived from.
const LookedName = "list.looked"

const lookedMagic = "roost looked 1\n\x00"

// NoteLook keeps that all rows of the storages whose digest is what were compared with
// their files at a time, and are as they were or were kept anew. Another file of rows
// makes it void: nobody knows what it was made of.
func (r *Rows) NoteLook(dir string, what uint64, at time.Time) error {
	p := packer{head: []byte(lookedMagic)}
	for _, n := range []uint64{r.base, what, uint64(at.UnixNano())} {
		p.fixed(n)
	}
	p.fixed(MixText(1, string(p.head)))
	f, err := os.CreateTemp(dir, "."+LookedName+"-*")
	if err != nil {
		return err
	}
	_, err = f.Write(p.head)
	if failed := f.Close(); err == nil {
		err = failed
	}
	if err == nil {
		err = os.Rename(f.Name(), filepath.Join(dir, LookedName))
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error tells more
	}
	return err
}

// Looked is when NoteLook was called for these rows and storages, the zero time when
// that is not known.
func (r *Rows) Looked(dir string, what uint64) time.Time {
	if r == nil || r.file == nil {
		return time.Time{}
	}
	b, err := os.ReadFile(filepath.Join(dir, LookedName))
	if err != nil || len(b) != len(lookedMagic)+4*8 || string(b[:len(lookedMagic)]) != lookedMagic {
		return time.Time{}
	}
	u := unpacker{text: string(b[len(lookedMagic):])}
	base, of, at, sum := u.fixed(), u.fixed(), u.fixed(), u.fixed()
	if base != r.base || of != what || sum != MixText(1, string(b[:len(b)-8])) {
		return time.Time{}
	}
	return time.Unix(0, int64(at))
}
