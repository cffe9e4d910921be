package store

import (
	"errors"
	"strings"
	"sync"

	"github.com/roost-dev/roost/roofmt"
	"github.com/roost-dev/roost/roofmt/sqlitefile"
)

// rowCache keeps the entries of other tools' indexes of their tasks, as long as the
// files do not change: one list holds the rows of all tasks, and is read once for
// all of them.
type rowCache struct {
	mu  sync.Mutex
	dir map[string]rowsRead // by tasks folder
}

// row is what an index beside a task folder keeps of it, nil when there is none.
// Salvage needs it: a task whose own files have no title has it there, and
// classic Cline keeps workspaces nowhere else. A damaged index gives what is whole
// of it; that it is damaged is no damage of the task.
func (c *rowCache) row(folder string) []byte {
	tasks, id := roofmt.PlaceOf(folder)
	return c.of(tasks).Row(id)
}

// rowsRead are rows and why there are no more of them.
type rowsRead struct {
	*roofmt.Rows
	err error
}

func (c *rowCache) of(tasks string) rowsRead {
	c.mu.Lock()
	defer c.mu.Unlock()
	got, ok := c.dir[tasks]
	if !ok || got.Prints != roofmt.RowPrints(tasks) {
		got.Rows, got.err = roofmt.ReadRows(tasks)
		if c.dir == nil {
			c.dir = map[string]rowsRead{}
		}
		c.dir[tasks] = got
	}
	return got
}

// problem is what is wrong with the indexes of a folder of tasks, "" when nothing is. One
// that is being written just now is not damaged.
func (c *rowCache) problem(tasks string) string {
	err := c.of(tasks).err
	if err == nil || errors.Is(err, sqlitefile.ErrRestless) {
		return ""
	}
	return strings.ReplaceAll(err.Error(), "\n", "; ")
}

// withRow fills in a folder's row. One that has an item of its own needs none; that
// of a session, made from its manifest and messages, gets what only the index knows.
func (s *Store) withRow(folder *roofmt.Folder) {
	if folder != nil && len(folder.Item) == 0 {
		folder.Row = roofmt.MergeRow(folder.Row, s.rows.row(folder.Dir))
	}
}

// IndexRow is what the index beside a task folder holds of the task; nil when there is none.
func (s *Store) IndexRow(folder string) []byte { return s.rows.row(folder) }
