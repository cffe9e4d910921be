package store

import "errors"

// Names of an import into a root. The importer and the doctor share them.
const (
	ImportLock   = "import.lock"        // in the root; held by the importing process
	ImportStages = ".import"            // among the tasks; copies that are not proven yet
	ImportRecord = ".roost-import.json" // in an imported task; see the importer
)

// ErrImporting: another process imports into the root.
var ErrImporting = errors.New("another import into it is running")
