package api

// Checkup is what a check of tasks found and repaired.
type Checkup struct {
	Tasks    int       `json:"tasks"`
	OK       int       `json:"ok"`
	Damaged  []Finding `json:"damaged"`
	Repaired []Finding `json:"repaired"` // repaired, removed or rebuilt; Damaged holds the rest

	// These lose nothing: derived data that is missing or behind, and what interrupted work left.
	Stale     []Finding `json:"stale"`
	Leftovers []Finding `json:"leftovers"`

	// Tasks that hold something open or settings of their own, and whose journals are not proven to be this root's own:
	// they do not continue by themselves.
	Untrusted []Finding `json:"untrusted"`

	// Contents of checkpoints that were read and compared, and their bytes.
	Contents     int   `json:"contents"`
	ContentBytes int64 `json:"content_bytes"`
}

// Finding is one thing that is wrong, with one task or, when it has no ID, with what is kept for all tasks.
type Finding struct {
	ID        string `json:"id"`
	Path      string `json:"path"`
	File      string `json:"file"`
	Problem   string `json:"problem"`
	Recovered string `json:"recovered"`
	Lost      string `json:"lost"`
	Copy      string `json:"copy,omitempty"` // the bytes that a repair replaced
}

// TrustedRoot is a root that its user declared their own, or would.
type TrustedRoot struct {
	Root  string        `json:"root"`
	Keys  int           `json:"keys"` // that count here from now on
	Tasks []TrustedTask `json:"tasks"`
}

// TrustedTask is a task that may go on since its root is trusted, and what it holds.
type TrustedTask struct {
	ID       string   `json:"id"`
	Source   string   `json:"source"`
	Standing string   `json:"standing"`
	Holds    []string `json:"holds"`
	Problem  string   `json:"problem,omitempty"` // why it could not be done
}
