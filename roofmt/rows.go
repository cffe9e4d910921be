package roofmt

import (
	"bytes"
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/roost-dev/roost/esjson"
	"github.com/roost-dev/roost/roofmt/sqlitefile"
)

// rowFile is one place that holds rows of the tasks in a folder. An earlier place takes precedence.
type rowFile struct {
	path     string
	read     func(r *Rows, path string) error // adds the rows of the place
	database bool
	late     bool // only read when the earlier places have no rows
}

// inFile returns a rowFile's read function, from a function that takes the rows out of a file's text.
func inFile(take func(r *Rows, raw []byte) error) func(*Rows, string) error {
	return func(r *Rows, path string) error {
		raw, _, err := readRegular(path)
		if err != nil {
			return err
		}
		return take(r, raw)
	}
}

// rowFiles returns the places that hold rows of the tasks in a folder. The folder's path decides which places are
// possible. Unusual places are left out, because each read of a task checks every place.
func rowFiles(tasksDir string) []rowFile {
	base := filepath.Dir(tasksDir)
	if filepath.Base(tasksDir) == sessionsName {
		own := cmp.Or(strings.TrimSpace(os.Getenv("CLINE_DB_DATA_DIR")), tasksDir)
		return []rowFile{
			{path: filepath.Join(base, "db", sessionDBName), read: (*Rows).fromSessions, database: true},
			{path: filepath.Join(own, sessionDBName), read: (*Rows).fromSessions, database: true},
			{path: filepath.Join(tasksDir, "sessions.index.json"), read: inFile((*Rows).takeSessions)},
		}
	}
	list := []rowFile{
		{path: filepath.Join(tasksDir, IndexName), read: inFile((*Rows).take)},
		{path: filepath.Join(base, filepath.FromSlash(ClineHistory)), read: inFile((*Rows).take)},
	}
	switch parent := filepath.Dir(base); {
	case filepath.Base(base) == "global-storage":
		list = append(list, rowFile{path: filepath.Join(base, "global-state.json"), read: inFile((*Rows).takeState), late: true})
	case strings.EqualFold(filepath.Base(parent), "globalStorage"): // VS Code's global state is the same object, in a table
		list = append(list, rowFile{path: filepath.Join(parent, stateDBName), read: (*Rows).fromState, database: true, late: true})
	}
	return list
}

const (
	sessionsName  = "sessions"
	sessionDBName = "sessions.db"
	stateDBName   = "state.vscdb"
)

// RowsPrint holds the fingerprints of the places that rows come from.
type RowsPrint [3]Fingerprint

// print returns the fingerprint of the place; for a database it includes the log.
func (f rowFile) print() Fingerprint {
	if !f.database {
		info, err := os.Stat(f.path)
		if err != nil {
			return Fingerprint{}
		}
		return fingerprintOf(info)
	}
	changed, size := sqlitefile.Newest(f.path)
	return Fingerprint{Exists: changed != 0, MTime: changed, Size: size}
}

// takeSessions takes the rows out of an object with a record for each session.
func (r *Rows) takeSessions(raw []byte) error {
	sessions, ok := esjson.Get(raw, "sessions")
	if !esjson.Valid(raw) || !ok || esjson.TypeOf(sessions) != esjson.TypeObject {
		return ErrIndex
	}
	for id, record := range esjson.Members(sessions) {
		if esjson.TypeOf(record) == esjson.TypeObject {
			r.add(sessionItem(id, record).bytes())
		}
	}
	return nil
}

// takeState takes the list out of an extension's global state.
func (r *Rows) takeState(raw []byte) error {
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return ErrIndex
	}
	list, ok := esjson.Get(raw, "taskHistory")
	if !ok {
		return nil // the extension never had a task
	}
	if esjson.TypeOf(list) == esjson.TypeString { // programs that keep each value as a text
		inner, err := esjson.Unquote(list)
		if err != nil {
			return ErrIndex
		}
		list = []byte(inner)
	}
	return r.take(list)
}

// fromState reads an extension's entry in VS Code's table. Its keys are the extensions' names as their makers spell
// them; folders spell them in lower case.
func (r *Rows) fromState(path string) error {
	extension := r.extension
	var value []byte
	err := sqlitefile.Read(context.Background(), path, func(ctx context.Context, db *sql.DB) error {
		value = nil
		// The query scans only the index of keys: values of others may be large.
		row := db.QueryRowContext(ctx, "SELECT value FROM ItemTable WHERE key = (SELECT key FROM ItemTable WHERE lower(key) "+
			"= lower(?) LIMIT 1)", extension)
		err := row.Scan(&value)
		if errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	switch {
	case err != nil:
		return unlessAbsent(err)
	case value == nil:
		return nil
	}
	return r.takeState(value)
}

// sessionRows bounds the rows that are read. No person has that many.
const sessionRows = 1 << 20

// fromSessions reads Cline's table of sessions. Its columns depend on Cline's version.
func (r *Rows) fromSessions(path string) error {
	var items [][]byte
	err := sqlitefile.Read(context.Background(), path, func(ctx context.Context, db *sql.DB) error {
		items = nil
		rows, err := db.QueryContext(ctx, "SELECT * FROM sessions LIMIT ?", sessionRows)
		if err != nil {
			return err
		}
		defer rows.Close() //nolint:errcheck // rows.Err has the error
		columns, err := rows.Columns()
		if err != nil {
			return err
		}
		cells := make([]any, len(columns))
		for i := range cells {
			cells[i] = new(any)
		}
		for rows.Next() {
			if err := rows.Scan(cells...); err != nil {
				return err
			}
			items = append(items, itemsOfCells(columns, cells)...)
		}
		return rows.Err()
	})
	for _, item := range items { // of a damaged table, what came before the damage
		r.add(item)
	}
	return unlessAbsent(err)
}

func unlessAbsent(err error) error {
	switch {
	case err == nil, errors.Is(err, fs.ErrNotExist):
		return err
	}
	return fmt.Errorf("%w: %w", ErrIndex, err)
}

// itemsOfCells returns the items of one row: none when the row has no id, and two for a subagent whose transcript has
// another name than its session, because a search finds the file.
func itemsOfCells(columns []string, cells []any) [][]byte {
	var record esjson.Object
	id := ""
	for i, column := range columns {
		var s string
		switch v := (*cells[i].(*any)).(type) {
		case string:
			s = v
		case []byte:
			s = string(v)
		default:
			continue // numbers hold nothing that an item has
		}
		if column == "session_id" {
			id = s
		}
		record.String(column, s)
	}
	if id == "" {
		return nil
	}
	items := [][]byte{sessionItem(id, record.Bytes()).bytes()}
	if file := esjson.TextOf(record.Bytes(), "messages_path"); file != "" {
		dir, name := lastTwo(file)
		if stem, ok := strings.CutSuffix(name, transcriptEnd); ok && dir != "" && stem != dir && dir+subagentMark+stem != id {
			items = append(items, sessionItem(dir+subagentMark+stem, record.Bytes()).bytes())
		}
	}
	return items
}

// lastTwo returns the last two names of a path of any system.
func lastTwo(path string) (dir, name string) {
	parts := strings.FieldsFunc(path, func(r rune) bool { return r == '/' || r == '\\' })
	if len(parts) < 2 {
		return "", path
	}
	return parts[len(parts)-2], parts[len(parts)-1]
}

// RowPrints returns the fingerprints that ReadRows would return, and reads no rows.
func RowPrints(tasksDir string) RowsPrint {
	var prints RowsPrint
	there := false
	for i, f := range rowFiles(tasksDir) {
		if f.late && there {
			break
		}
		prints[i] = f.print()
		there = there || prints[i].Size > 80 // a smaller index may be whole and without a row
	}
	return prints
}

// ReadRows reads the indexes of a tasks directory. Missing indexes give no rows. From a damaged index it returns
// every whole row, and an error that describes the damage: the returned rows are usable. It reads a database that
// another program has open in its present state, without a lock.
func ReadRows(tasksDir string) (*Rows, error) {
	r := &Rows{rows: map[string][]byte{}, extension: filepath.Base(filepath.Dir(tasksDir)), Prints: RowPrints(tasksDir)}
	var errs []error
	for _, f := range rowFiles(tasksDir) {
		if f.late && len(r.rows) > 0 {
			break
		}
		if err := f.read(r, f.path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			errs = append(errs, fmt.Errorf("reading the history rows in %s: %w", f.path, err))
		}
	}
	return r, errors.Join(errs...)
}

// ClineHistory is the path of classic Cline's list of all its tasks, beside the folder of task folders.
const ClineHistory = "state/taskHistory.json"

// Rows are the index entries of the tasks in one tasks directory: Roo's _index.json and classic Cline's list; without
// these, the editor's own database, where both kept it before; of sessions, Cline's database. They are derived data
// of another program: a folder without a row is a task, and a row without a folder is none.
type Rows struct {
	// Prints are the fingerprints of the places that were read. Equal fingerprints mean equal rows.
	Prints RowsPrint

	rows      map[string][]byte
	extension string // the folder of the extension that owns these tasks
}

// Row returns the row of a task as the index holds it: a JSON object, nil when there is none.
func (r *Rows) Row(id string) []byte { return r.rows[id] }

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

// add adds a row; the first row with an id counts.
func (r *Rows) add(row []byte) {
	if esjson.TypeOf(row) != esjson.TypeObject {
		return
	}
	if id := esjson.TextOf(row, "id"); id != "" && r.rows[id] == nil {
		r.rows[id] = row
	}
}

// Index is tasks/_index.json: Roo's list of history items. Entries are raw, so unknown members stay. It is not safe
// for several goroutines at once.
type Index struct {
	Version   int64
	UpdatedAt int64 // milliseconds
	Entries   [][]byte
	Print     Fingerprint // of the file that it was read from
	extra     []byte      // the object as it was read, for unknown members
}

// ErrIndex is wrapped when an index file is no index: the file stays as it is, and can be built again from the
// folders.
var ErrIndex = errors.New("not a history index")

// ReadIndex reads the index in a tasks directory. A missing one is an empty index and no error. Entries without an id
// are kept. With an error that wraps ErrIndex, the index holds only Print, with which the broken file can be
// replaced.
func ReadIndex(tasksDir string) (*Index, error) {
	path := filepath.Join(tasksDir, IndexName)
	raw, print, err := readRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return &Index{Version: 1}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history index: %w", err)
	}
	x, err := ParseIndex(raw)
	if err != nil {
		return &Index{Version: 1, Print: print}, fmt.Errorf("reading %s: %w", path, err)
	}
	x.Print = print
	return x, nil
}

// ParseIndex reads the text of an index.
func ParseIndex(raw []byte) (*Index, error) {
	if !esjson.Valid(raw) || esjson.TypeOf(raw) != esjson.TypeObject {
		return nil, fmt.Errorf("not a JSON object: %w", ErrIndex)
	}
	x := &Index{extra: raw}
	x.Version, _ = esjson.GetInt(raw, "version")
	x.UpdatedAt, _ = esjson.GetInt(raw, "updatedAt")
	list, ok := esjson.Get(raw, "entries")
	if x.Version != 1 || !ok || esjson.TypeOf(list) != esjson.TypeArray {
		return nil, fmt.Errorf("version %d, entries %v: %w", x.Version, esjson.TypeOf(list), ErrIndex)
	}
	x.Entries = slices.Collect(esjson.Array(list))
	return x, nil
}

// Get returns the entry of a task.
func (x *Index) Get(id string) ([]byte, bool) {
	for _, e := range x.Entries {
		if esjson.TextOf(e, "id") == id {
			return e, true
		}
	}
	return nil, false
}

// Remove removes the entries of a task, and reports whether there were any.
func (x *Index) Remove(id string) bool {
	n := len(x.Entries)
	x.Entries = slices.DeleteFunc(x.Entries, func(e []byte) bool { return esjson.TextOf(e, "id") == id })
	return len(x.Entries) < n
}

// Bytes returns the index as compact text, with the newest entries first (those without ts last, equal ones in their
// order). now is the time of the change in milliseconds.
func (x *Index) Bytes(now int64) ([]byte, error) {
	entries := slices.Clone(x.Entries)
	slices.SortStableFunc(entries, func(a, b []byte) int {
		ta, _ := esjson.GetFloat(a, "ts")
		tb, _ := esjson.GetFloat(b, "ts")
		return cmp.Compare(tb, ta)
	})
	for i, e := range entries {
		var err error
		if entries[i], err = esjson.Compact(nil, e); err != nil {
			return nil, fmt.Errorf("writing entry %d of the history index: %w", i, err)
		}
	}
	var o esjson.Object
	o.Int("version", 1)
	o.Int("updatedAt", now)
	o.Raw("entries", esjson.List(entries))
	for k, v := range esjson.Members(x.extra) {
		if k != "version" && k != "updatedAt" && k != "entries" {
			o.Raw(k, v)
		}
	}
	return o.Bytes(), nil
}
