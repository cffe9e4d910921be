package store

import (
	"sync"

	"github.com/roost-dev/roost/roofmt"
)

// rowCache keeps what indexes of other tools say of their tasks, as long as the
// files stand still: one list holds the rows of all tasks, and is read once for
// all of them.
type rowCache struct {
	mu  sync.Mutex
	dir map[string]*roofmt.Rows // by tasks folder
}

// row is what an index beside a task folder keeps of it, nil when there is none.
// Salvage needs it: a task whose own files say nothing has its title there, and
// classic Cline keeps workspaces nowhere else. A damaged index gives what is whole
// of it; that it is damaged is no damage of the task.
func (c *rowCache) row(folder string) []byte {
	tasks, id := roofmt.PlaceOf(folder)
	c.mu.Lock()
	defer c.mu.Unlock()
	rows := c.dir[tasks]
	if rows == nil || rows.Prints != roofmt.RowPrints(tasks) {
		rows, _ = roofmt.ReadRows(tasks)
		if c.dir == nil {
			c.dir = map[string]*roofmt.Rows{}
		}
		c.dir[tasks] = rows
	}
	return rows.Row(id)
}

// withRow fills in a folder's row. One that has an item of its own needs none; that
// of a session, made from its manifest and messages, gets what only the index knows.
func (s *Store) withRow(folder *roofmt.Folder) {
	if folder != nil && len(folder.Item) == 0 {
		folder.Row = roofmt.MergeRow(folder.Row, s.rows.row(folder.Dir))
	}
}
