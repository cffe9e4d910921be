package roofmt

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/roost-dev/roost/esjson"
)

// ClineHistory is where classic Cline keeps the rows of all its tasks: one list, beside the folder of task folders.
const ClineHistory = "state/taskHistory.json"

// Rows are what indexes keep of the tasks in one tasks directory: Roo's _index.json and classic Cline's list; without
// these, the editor's own database, where both kept it before; of sessions, Cline's database. They are derived data
// of another program: a task without a row is a task, and a row without a folder is none.
type Rows struct {
	// Prints of the places that were read. Equal prints give equal rows.
	Prints RowsPrint

	rows      map[string][]byte
	extension string // the folder of the extension whose tasks these are
}

// Row returns the row of a task as the index holds it: a JSON object, nil when there is none.
func (r *Rows) Row(id string) []byte { return r.rows[id] }

// Len returns the number of tasks that have a row.
func (r *Rows) Len() int { return len(r.rows) }

// take adds the rows of one file: a list, or an object that holds one.
func (r *Rows) take(raw []byte) error {
	if esjson.Valid(raw) {
		list := raw
		if esjson.TypeOf(raw) == esjson.TypeObject {
			list, _ = esjson.Get(raw, "entries")
		}
		if list == nil || esjson.TypeOf(list) != esjson.TypeArray {
			return ErrIndex
		}
		for row := range esjson.Array(list) {
			r.add(row)
		}
		return nil
	}
	if i := bytes.Index(raw, []byte(`"entries":[`)); i >= 0 && bytes.HasPrefix(raw, []byte{'{'}) {
		raw = raw[i+len(`"entries":`):] // a cut index of Roo's: the list in it
	}
	tail, err := esjson.Split(bytes.NewReader(raw), func(e esjson.Element) error {
		r.add(raw[e.Off : e.Off+e.Len])
		return nil
	})
	if err != nil {
		return err
	}
	if tail.End == esjson.EndEmpty {
		return fmt.Errorf("empty: %w", ErrIndex)
	}
	return fmt.Errorf("damaged at byte %d of %d: %w", tail.Off, tail.Size, ErrIndex)
}

// add takes a row; the first of an id counts.
func (r *Rows) add(row []byte) {
	if esjson.TypeOf(row) != esjson.TypeObject {
		return
	}
	if id := text(row, "id"); id != "" && r.rows[id] == nil {
		r.rows[id] = row
	}
}

// readRegular reads a small file with its fingerprint, and neither waits for a pipe nor fills memory with what is no index.
// Both are of the open file: asked by name afterwards, the print could be that of another file, and replacing that one
// would lose what it holds.
func readRegular(path string) ([]byte, Fingerprint, error) {
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, Fingerprint{}, err
	}
	defer f.Close()
	info, err := f.Stat() // first: what changes in place while we read does not match later
	if err != nil {
		return nil, Fingerprint{}, err
	}
	print := fingerprintOf(info)
	if !info.Mode().IsRegular() || info.Size() > maxSmall {
		return nil, print, &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file of a usual size")}
	}
	raw, err := io.ReadAll(f)
	return raw, print, err
}

func printOf(path string) Fingerprint {
	info, err := os.Stat(path)
	if err != nil {
		return Fingerprint{}
	}
	return fingerprintOf(info)
}
