package roofmt

import "errors"

// ErrNotFolder is returned for a path that is no directory.
var ErrNotFolder = errors.New("not a directory")

// Loss describes what is wrong with a file, and what was recovered from it.
type Loss struct {
	File      string // name inside the folder
	Problem   string
	Recovered string
}

// Other is an entry of the folder that this package does not interpret.
type Other struct {
	Name string
	Size int64 // bytes; 0 for directories
	Dir  bool
}

// Folder is a task folder as it was found. It holds open files: call Close.
type Folder struct {
	Dir string
	ID  string // name of the directory

	UI, API *Document // never nil

	Item     []byte // history_item.json, when it is a JSON object
	Metadata []byte // task_metadata.json, when it is a JSON object
	// Row is what an index beside the folder keeps of the task. Read leaves it nil: indexes are read once for all folders (ReadRows).
	// Of a session of Cline's it is made from the manifest and the messages.
	Row []byte
	// Fingerprints of the two small files under their own names.
	ItemPrint, MetadataPrint Fingerprint

	Others []Other // by name
	Losses []Loss
	Locks  []string // files that another program is writing just now
	Origin Origin
	Cold   bool // its histories were not in memory, as far as the system reports that: see Ahead
	// Abridged: messages that exist were left out, see Losses. Files written from the rest would lack them.
	Abridged bool
	// Unread is the first file of the task that exists and cannot be read; nil when there is none. Its content is not
	// known, so no caller may take it for absent, or replace it.
	Unread *UnreadError

	spoilt bool // a file that may be either history has bytes and no message
}

// Empty reports whether the folder holds no bytes of any message: no message file, or only files without bytes and
// empty lists. Roo leaves such folders behind whenever it gets a request for an unknown id. A damaged file is not
// empty.
func (f *Folder) Empty() bool { return f.UI.blank() && f.API.blank() && !f.spoilt }

// Damaged reports whether something was lost or had to be recovered.
func (f *Folder) Damaged() bool { return len(f.Losses) > 0 }

// Close closes the files. Elements can not be read afterwards.
func (f *Folder) Close() error { return errors.Join(f.UI.close(), f.API.close()) }
