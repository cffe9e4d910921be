package api

// What to do with a task whose id belongs to a task with other content.
const (
	ConflictSkip = "skip" // leave it out; the import names it
	ConflictFork = "fork" // import it under an id that follows from its content
)

// What became of a task of an import.
const (
	TaskImported = "imported" // under its own id, or under a new one if its folder's name cannot be an id
	TaskForked   = "forked"   // under a new id, because other content has its own id
	TaskSame     = "same"     // the root already had the same content
	TaskConflict = "conflict" // other content has its id; left out
	TaskEmpty    = "empty"    // it has no byte of a message; left out
	TaskFailed   = "failed"   // see Problem; nothing of it is in the root
)

// Import is what an import did or, for a dry run, would do.
type Import struct {
	DryRun    bool           `json:"dry_run"`
	Tasks     int            `json:"tasks"`
	Imported  int            `json:"imported"`
	Forked    int            `json:"forked"`
	Same      int            `json:"same"`
	Conflicts int            `json:"conflicts"`
	Empty     int            `json:"empty"`
	Failed    int            `json:"failed"`
	Files     int            `json:"files"`
	Bytes     int64          `json:"bytes"`
	Items     []ImportedTask `json:"items"`
}

// ImportedTask is one task of an import. ByteEqual: every file of the copy was read back and equals the original byte
// for byte, except for those in Differs.
type ImportedTask struct {
	ID        string     `json:"id"` // in Roost's own root; "" when the task is not there
	Name      string     `json:"name"`
	From      string     `json:"from"`
	Path      string     `json:"path"`
	Outcome   string     `json:"outcome"`
	Files     int        `json:"files"`
	Bytes     int64      `json:"bytes"`
	SHA256    string     `json:"sha256"` // of the list of the original's files and their digests
	ByteEqual bool       `json:"byte_equal"`
	Differs   []FileNote `json:"differs"`
	LeftOut   []FileNote `json:"left_out"`
	Notes     []string   `json:"notes"`
	Problem   string     `json:"problem"`
}

// FileNote is a remark about a file.
type FileNote struct {
	File string `json:"file"`
	What string `json:"what"`
}

// ImportProgress is how far an import has come.
type ImportProgress struct {
	Tasks, Of int
	Files     int
	Bytes     int64 // copied so far
}
