package local

import (
	"context"

	"github.com/roost-dev/roost/roofmt"
)

// EditorFolders are the folders in which editors and tools of this machine keep their storages; not all of them exist.
func EditorFolders() []string {
	env, err := roofmt.SystemEnv()
	if err != nil {
		return nil
	}
	var out []string
	for _, place := range roofmt.DefaultStorages(env) {
		out = append(out, place.Dir)
	}
	return out
}

// Storage is what a folder holds of other tools' tasks.
type Storage struct {
	Tool  string
	Shape string // of the folder: a storage, its tasks folder, or one task
	Tasks int
}

// FindStorage looks at a folder: a storage, its tasks folder, or one task.
func FindStorage(ctx context.Context, dir string) (Storage, error) {
	found, err := roofmt.Find(ctx, dir)
	if err != nil {
		return Storage{}, err
	}
	return Storage{Tool: string(found.Tool), Shape: found.Shape.String(), Tasks: len(found.Tasks)}, nil
}
