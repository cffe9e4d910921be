package roofmt

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/roost-dev/roost/api"
	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/internal/inputfile"
)

// Kind selects one of the two histories of a task.
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

// State describes the file under the document's own name.
type State uint8

// The states of a file.
const (
	Missing    State = iota // no such file
	Present                 // JSON.parse accepts it, and it is an array, perhaps an empty one
	Empty                   // no byte, or only blanks, NULs and a byte order mark
	Damaged                 // an array that is cut, broken or surrounded by something else
	NotArray                // no array of messages in it
	Unreadable              // it exists but cannot be opened or read
)

var stateNames = [...]string{"missing", "present", "empty", "damaged", "not an array", "unreadable"}

// String describes the state.
func (s State) String() string { return stateNames[s] }

// Document is one history of a task: the places of its elements, and access to their bytes. Methods may be called
// from several goroutines until Close.
type Document struct {
	Kind  Kind
	Name  string      // the name that its file should have
	State State       // of the file under that name
	Print Fingerprint // of the file under that name, for Replacement.Expect
	Tail  esjson.Tail // how the file that was read ended

	Source      string           // name of the file that was read; "" when there was none
	SourcePrint Fingerprint      // of that file
	Spans       []esjson.Element // offsets of the elements in that file
	Unstable    bool             // the file changed in place during the read
	Notes       Noter            // the notes about each of Spans, in their order; nil when there are none

	file *os.File
}

// Noter sees the messages of one file while it is read, in order and each once: only then are the bytes of a large
// file in memory. The index has three levels (a message, its members, the blocks of its content and their members),
// and is valid during the call.
type Noter interface{ Note(message *esjson.Index) }

// Len returns the number of elements that can be read.
func (d *Document) Len() int { return len(d.Spans) }

// Lost reports whether there is nothing to read, and that was not meant so: the file is missing, or it holds no complete
// element. A valid empty file, and one that is unreadable now, are not lost.
func (d *Document) Lost() bool { return d.Len() == 0 && d.State != Present && d.State != Unreadable }

// Recovered reports whether the elements came from a file other than the document's own.
func (d *Document) Recovered() bool { return d.Source != "" && d.Source != d.Name }

// Intact reports whether the document's own file is a plain array that can be copied byte for byte.
func (d *Document) Intact() bool { return d.State == Present }

// blank reports whether the file holds nothing: it is absent, has no byte, or is an empty list. A power cut leaves
// NULs in place of a history, so they are damage.
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
	_, err := d.file.ReadAt(buf, s.Off)
	return buf, api.Failed(err, "reading message %d of %s at offset %d", i, d.Source, s.Off)
}

// ReadAt reads from the file that was read at first, whichever file has its name now. It implements io.ReaderAt.
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

// WriteTo copies that file byte for byte, in any state. It implements io.WriterTo.
func (d *Document) WriteTo(w io.Writer) (int64, error) {
	if d.file == nil {
		return 0, fmt.Errorf("copying %s: %w", d.Name, ErrClosed)
	}
	n, err := io.Copy(w, io.NewSectionReader(d.file, 0, d.SourcePrint.Size))
	return n, api.Failed(err, "copying %s", d.Source)
}

// SHA256 reads that file and returns its digest, which Read does not compute.
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

// millis reads ts. Fractions, which no writer produces but a file may hold, are cut off.
func millis(obj []byte) (int64, bool) {
	if n, ok := esjson.GetInt(obj, "ts"); ok {
		return n, true
	}
	f, ok := esjson.GetFloat(obj, "ts")
	if !ok || f < -(1<<62) || f > 1<<62 {
		return 0, false
	}
	return int64(f), true
}

// Environment holds the details that a request records about the place where it was made. Every tool ends the words
// of a request with such details, so both histories have them, even if no index names the task. The zero value holds
// nothing.
type Environment struct {
	Workspace string // absolute, spelled as on the system of its tool
	Mode      string // its slug
	Model     string
}

const environmentMark = "<environment_details>"

// EnvironmentOf reads the environment from a message of either history. Only details at the beginning of a block
// count, and the last of those: the text of a file may contain such details, too.
func EnvironmentOf(raw []byte) (e Environment) {
	if !bytes.Contains(raw, []byte(environmentMark[1:len(environmentMark)-1])) { // brackets may be spelled as escapes
		return e
	}
	if text, ok := esjson.GetString(raw, "text"); ok { // a row about a request holds it as JSON in its text
		request, _ := esjson.GetString([]byte(text), "request")
		return environmentIn(request)
	}
	if esjson.TextOf(raw, "role") != "user" {
		return e
	}
	for b := range esjson.Blocks(esjson.Member(raw, "content")) {
		text, _ := esjson.GetString(b, "text")
		if esjson.TextOf(b, "type") == "text" && strings.HasPrefix(strings.TrimSpace(text), environmentMark) {
			e = environmentIn(text)
		}
	}
	return e
}

// environmentIn reads the last details of a text. If a value occurs twice in them, the first one counts, because a
// list of files comes last.
func environmentIn(text string) (e Environment) {
	at := strings.LastIndex(text, environmentMark)
	if at < 0 {
		return e
	}
	text, _, _ = strings.Cut(text[at:], "</environment_details>")
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		switch {
		case e.Workspace == "" && strings.HasPrefix(line, "# Current Wor"):
			for _, start := range []string{"# Current Workspace Directory (", "# Current Working Directory ("} {
				if dir, ok := strings.CutPrefix(line, start); ok {
					if dir, ok = strings.CutSuffix(dir, ") Files"); ok {
						e.Workspace = nativePath(dir)
					}
				}
			}
		case e.Mode == "":
			e.Mode = tagged(line, "slug")
		case e.Model == "":
			e.Model = tagged(line, "model")
		}
	}
	return e
}

func tagged(line, tag string) string {
	inner, ok := strings.CutPrefix(strings.TrimSpace(line), "<"+tag+">")
	if inner, closed := strings.CutSuffix(inner, "</"+tag+">"); ok && closed && !strings.ContainsAny(inner, "<>") {
		return inner
	}
	return ""
}

// nativePath spells a path as its system does: details have slashes everywhere, indexes the backslashes of Windows. A
// path that is not absolute names no folder.
func nativePath(dir string) string {
	drive := len(dir) > 2 && dir[1] == ':' && dir[2] == '/' && (dir[0]|0x20) >= 'a' && (dir[0]|0x20) <= 'z'
	switch {
	case drive, strings.HasPrefix(dir, "//"):
		return strings.ReplaceAll(dir, "/", `\`)
	case strings.HasPrefix(dir, "/"):
		return dir
	}
	return ""
}

// large is held while a message of megabytes is in memory: folders are read in parallel, and several such messages at
// once would take more memory than a whole list may use.
var large sync.Mutex

// lookAt reads an element and calls show with its bytes, which are valid during the call. It returns the error of the
// read. show must not call lookAt.
func lookAt(file io.ReaderAt, e esjson.Element, show func(raw []byte)) error {
	if e.Len > noteRoom {
		large.Lock()
		defer large.Unlock()
	}
	raw := make([]byte, e.Len)
	if _, err := file.ReadAt(raw, e.Off); err != nil {
		return err
	}
	show(raw)
	return nil
}

// Fingerprint is a cheap check whether a file is still the one that was read. The zero value means "no such file".
// The change time is left out on purpose: making a hard link to keep the file would alter it.
type Fingerprint struct {
	Exists bool
	Size   int64  // bytes
	MTime  int64  // nanoseconds since 1970
	Inode  uint64 // 0 where the system has none
}

// noteRoom is the length up to which a message is noted while its file is split; longer messages are read again.
const noteRoom = 1 << 20

// Element is a message to be written.
type Element struct {
	Raw []byte
	// Made means that Roost made or changed the element: it then gets Roo's spelling. Otherwise only the blanks
	// between its tokens go, and every string and number keeps its spelling.
	Made bool
}

// WriteArray writes a list the way Roo does: [a,b,c], compact, without a newline at the end. It holds one element at
// a time and writes it with one call, so a caller should put a buffer before a file. The error names the element and
// wraps esjson.ErrSyntax if that is not JSON; otherwise it is seq's own.
func WriteArray(w io.Writer, seq iter.Seq2[Element, error]) error {
	buf := []byte{'['}
	n := 0
	for e, err := range seq {
		if err != nil {
			return fmt.Errorf("writing message %d: %w", n, err)
		}
		encode := esjson.Compact
		if e.Made {
			encode = esjson.Stringify
		}
		if buf, err = encode(buf, e.Raw); err != nil {
			return fmt.Errorf("writing message %d: %w", n, err)
		}
		if _, err := w.Write(buf); err != nil {
			return fmt.Errorf("writing message %d: %w", n, err)
		}
		buf = append(buf[:0], ',')
		n++
	}
	if n > 0 {
		buf = buf[:0]
	}
	_, err := w.Write(append(buf, ']'))
	return api.Failed(err, "writing a list of %d messages", n)
}

func fingerprintOf(info fs.FileInfo) Fingerprint {
	return Fingerprint{Exists: true, Size: info.Size(), MTime: info.ModTime().UnixNano(), Inode: inodeOf(info)}
}

// Prints returns the fingerprints of a task folder's files by their names, without reading them. It does not follow
// links: a link counts as absent, as in Read.
func Prints(dir string) (map[string]Fingerprint, error) {
	prints := map[string]Fingerprint{}
	if info, err := os.Lstat(dir); err == nil && info.Mode().IsRegular() && FolderOf(dir) != dir {
		prints[filepath.Base(dir)] = fingerprintOf(info)
		return prints, nil
	}
	root, err := inputfile.OpenDir(dir)
	if err != nil {
		return nil, fmt.Errorf("looking at task folder: %w", err)
	}
	defer root.Close()
	for _, name := range []string{UIName, APIName, ItemName, MetadataName} {
		info, err := root.Lstat(name)
		if err == nil && info.Mode().IsRegular() {
			prints[name] = fingerprintOf(info)
		}
	}
	return prints, nil
}

// String returns a short form for messages and logs.
func (f Fingerprint) String() string {
	if !f.Exists {
		return "absent"
	}
	return fmt.Sprintf("%d bytes, mtime %d, inode %d", f.Size, f.MTime, f.Inode)
}
