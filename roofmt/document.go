package roofmt

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/roost-dev/roost/esjson"
)

// Kind is one of the two histories of a task.
type Kind uint8

// The two histories: what a person sees, and what the model sees.
const (
	UI Kind = iota
	API
)

// String returns "ui" or "api".
func (k Kind) String() string {
	if k == UI {
		return "ui"
	}
	return "api"
}

// State is how the file of a document was found under its own name.
type State uint8

// The states of a file.
const (
	Missing    State = iota // no such file
	Present                 // JSON.parse takes it, and it is an array (perhaps of nothing)
	Empty                   // no byte, or only blanks, NULs and a byte order mark
	Damaged                 // an array that is cut, broken or surrounded by something else
	NotArray                // no array of messages in it
	Unreadable              // it is there but can not be opened or read
)

var stateNames = [...]string{"missing", "present", "empty", "damaged", "not an array", "unreadable"}

// String describes the state.
func (s State) String() string { return stateNames[s] }

// Document is one history of a task: where its elements lie, and access to their bytes. Methods may be called from
// several goroutines until Close.
type Document struct {
	Kind  Kind
	Name  string      // the name it should have
	State State       // of the file under that name
	Print Fingerprint // of the file under that name, for Replacement.Expect
	Tail  esjson.Tail // how the file that was used ended

	Source      string           // name of the file that was used; "" when there was none
	SourcePrint Fingerprint      // of that file
	Spans       []esjson.Element // offsets of the elements in that file
	Unstable    bool             // it changed in place while it was read
	Notes       Noter            // what was noted of each of Spans, in their order; nil when nothing was

	file *os.File
}

// Noter looks at the messages of one file while it is read, in order and each once: of a large file the bytes are at hand
// only then. The index has three levels (a message, its members, the blocks of its content and theirs), and is good for
// the length of the call.
type Noter interface{ Note(message *esjson.Index) }

// Len returns the number of elements that can be read.
func (d *Document) Len() int { return len(d.Spans) }

// Recovered reports whether the elements came from another file than the document's own.
func (d *Document) Recovered() bool { return d.Source != "" && d.Source != d.Name }

// Intact reports whether the document's own file is a plain array that can be copied byte for byte.
func (d *Document) Intact() bool { return d.State == Present }

// blank reports whether the file holds nothing: it is absent, has no byte, or is an empty list. NULs are what a power
// cut leaves of a history, so they are damage.
func (d *Document) blank() bool {
	return len(d.Spans) == 0 && (d.State == Missing || d.State == Empty && d.Print.Size == 0 || d.State == Present)
}

// ErrClosed is returned by reads after Close, or when the document has no file.
var ErrClosed = errors.New("no open file")

// Raw reads the bytes of element i, as they are in the file. It panics when i is out of range.
func (d *Document) Raw(i int) ([]byte, error) {
	s := d.Spans[i]
	if d.file == nil {
		return nil, fmt.Errorf("reading message %d of %s: %w", i, d.Name, ErrClosed)
	}
	buf := make([]byte, s.Len)
	if _, err := d.file.ReadAt(buf, s.Off); err != nil {
		return nil, fmt.Errorf("reading message %d of %s at offset %d: %w", i, d.Source, s.Off, err)
	}
	return buf, nil
}

// ReadAt reads from the file that was used, whichever file has its name by now, and implements io.ReaderAt.
func (d *Document) ReadAt(p []byte, off int64) (int, error) {
	if d.file == nil {
		return 0, fmt.Errorf("reading %s: %w", d.Name, ErrClosed)
	}
	n, err := d.file.ReadAt(p, off)
	if err != nil && (!errors.Is(err, io.EOF) || n < len(p)) {
		return n, fmt.Errorf("reading %s at offset %d: %w", d.Source, off, err)
	}
	return n, nil
}

// All yields the elements in order. After an error it ends.
func (d *Document) All() iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for i := range d.Spans {
			raw, err := d.Raw(i)
			if !yield(raw, err) || err != nil {
				return
			}
		}
	}
}

// WriteTo copies the file that was used byte for byte, in any state, and implements io.WriterTo.
func (d *Document) WriteTo(w io.Writer) (int64, error) {
	if d.file == nil {
		return 0, fmt.Errorf("copying %s: %w", d.Name, ErrClosed)
	}
	n, err := io.Copy(w, io.NewSectionReader(d.file, 0, d.SourcePrint.Size))
	if err != nil {
		return n, fmt.Errorf("copying %s: %w", d.Source, err)
	}
	return n, nil
}

// SHA256 reads the file that was used and returns its digest. It is not computed by Read.
func (d *Document) SHA256() ([sha256.Size]byte, error) {
	h := sha256.New()
	var sum [sha256.Size]byte
	if _, err := d.WriteTo(h); err != nil {
		return sum, err
	}
	h.Sum(sum[:0])
	return sum, nil
}

func (d *Document) close() error {
	if d == nil || d.file == nil {
		return nil
	}
	err := d.file.Close()
	d.file = nil
	return err
}
