package task

// Known is what the model knows of one file: its records, summed up.
type Known struct {
	Path   string
	Source string // of the newest record
	// The newest date of each kind, Unix milliseconds, 0 = never.
	Read, Edit, UserEdit int64
	// Seen is the newest record by which the model learned or made the content: a read,
	// a mention or an edit of its own. Its Path is empty when there is none.
	Seen FileRecord
	Last FileRecord // the newest of all, also of changes that the model was only told of
}

// Gone reports whether a record says that there is no file any more: it was removed by
// the agent, or the model was told that somebody else did.
func (r FileRecord) Gone() bool {
	return r.Hash == "" && r.MTime == 0 && (r.Source == "roo_edited" || r.Source == "user_edited")
}

// Judgeable reports whether a record says enough of a file to tell whether it is
// another one now. Records that other programs made do not.
func (r FileRecord) Judgeable() bool { return r.Hash != "" || r.MTime != 0 || r.Gone() }

// Knowledge sums up records by path. It takes each record once, so that following a
// long task costs what is new. The zero value knows nothing.
type Knowledge struct {
	files []*Known
	paths map[string]*Known
	taken int
	last  FileRecord
}

// Follow takes in the records of a state that were not there before. Where the earlier
// ones are not those that it knows, as after a rewind, it begins anew.
func (k *Knowledge) Follow(records []FileRecord) {
	if k.taken > len(records) || k.taken > 0 && !sameRecord(records[k.taken-1], k.last) {
		*k = Knowledge{}
	}
	for _, r := range records[k.taken:] {
		k.add(r)
		k.last = r
	}
	k.taken = len(records)
}

// sameRecord leaves State out, which changes when a newer record of the path comes.
func sameRecord(a, b FileRecord) bool {
	a.State = b.State
	return a == b
}

func (k *Knowledge) add(r FileRecord) {
	f := k.paths[r.Path]
	if f == nil {
		if k.paths == nil {
			k.paths = map[string]*Known{}
		}
		f = &Known{Path: r.Path}
		k.paths[r.Path] = f
		k.files = append(k.files, f)
	}
	f.Source, f.Last = r.Source, r
	f.Read, f.Edit, f.UserEdit = max(f.Read, r.RooRead), max(f.Edit, r.RooEdit), max(f.UserEdit, r.UserEdit)
	if r.Source != "user_edited" {
		f.Seen = r
	}
}

// Files are the known files, in the order in which they became known. Do not modify
// them; they change when more records are taken in.
func (k *Knowledge) Files() []*Known { return k.files }

// File is one of them, nil when it is not known.
func (k *Knowledge) File(path string) *Known { return k.paths[path] }
