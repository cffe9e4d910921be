// Package known summarises the file records of a task by path: what the model knows of each file.
package known

import "github.com/roost-dev/roost/task"

// File is what the model knows of one file.
type File struct {
	Path   string
	Source string // the Source of the newest record
	// The newest date of each kind, in Unix milliseconds; 0 = never.
	Read, Edit, UserEdit int64
	// Seen is the newest record by which the model learned or wrote the content: a read, a mention or an edit of its
	// own. Its Path is empty when there is none.
	Seen task.FileRecord
	Last task.FileRecord // the newest record, also of a change of which the model was only notified
}

// Files summarises records by path. It takes each record once, so that following a long task costs only the new
// records. The zero value knows no file.
type Files struct {
	files []*File
	paths map[string]*File
	taken int
	last  task.FileRecord
}

// Follow takes in the new records of a state. When the earlier records are not those that it took, as after a rewind,
// it starts again.
func (k *Files) Follow(records []task.FileRecord) {
	if k.taken > len(records) || k.taken > 0 && !sameRecord(records[k.taken-1], k.last) {
		*k = Files{}
	}
	for _, r := range records[k.taken:] {
		k.add(r)
		k.last = r
	}
	k.taken = len(records)
}

// sameRecord compares records without State, which changes when a newer record of the path comes.
func sameRecord(a, b task.FileRecord) bool {
	a.State = b.State
	return a == b
}

func (k *Files) add(r task.FileRecord) {
	f := k.paths[r.Path]
	if f == nil {
		if k.paths == nil {
			k.paths = map[string]*File{}
		}
		f = &File{Path: r.Path}
		k.paths[r.Path] = f
		k.files = append(k.files, f)
	}
	f.Source, f.Last = r.Source, r
	f.Read, f.Edit, f.UserEdit = max(f.Read, r.RooRead), max(f.Edit, r.RooEdit), max(f.UserEdit, r.UserEdit)
	if r.Source != "user_edited" {
		f.Seen = r
	}
}

// All returns the known files, in the order in which they became known. Do not modify them; they change when Follow
// takes more records.
func (k *Files) All() []*File { return k.files }

// File returns one file, nil when it is not known.
func (k *Files) File(path string) *File { return k.paths[path] }
